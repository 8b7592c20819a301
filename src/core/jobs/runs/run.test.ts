import { expect, test } from 'vitest';
import { contextOf } from '../../../../test/support/context.ts';
import type { Database } from '../../../adapters/database/database.ts';
import type { RunHandlers } from '../../executors/run.ts';
import type { RunMemories, RunMemory } from '../../memories/run-memory.ts';
import type { Generated } from '../../skills/definition.ts';
import type { ClaimedJob } from '../jobs.store.ts';
import { type Attempt, type Runs, runPace, streamOf } from './attempt.ts';
import type { Reports } from './reports.ts';
import { startRun } from './run.ts';
import type { RunThinking, Thinking } from './thinking.ts';

test('a first report that is made while the thinking ends is recorded before the run has ended', async () => {
  const flushed = Promise.withResolvers<void>();
  let isFlushing = false;
  const stream = {
    add() {},
    flushed() {
      isFlushing = true;
      return flushed.promise;
    },
  };
  const { start, handlers } = runsOf({
    thinking: thinkingOf((attempt) => ({
      ...idleThinking,
      async ended() {
        streamOf(attempt).add({ type: 'token', data: { step: 1, text: 'late' } });
      },
    })),
    reports: { open: () => stream } as unknown as Reports,
  });
  const run = start({ id: 'a', started_at: 1, created_at: 0, resumes: null } as ClaimedJob);
  await handlers().onAsk('generate', {}, new AbortController().signal, null);
  let hasEnded = false;

  const ended = run.ended()?.then(() => {
    hasEnded = true;
  });
  await new Promise(setImmediate);
  expect({ isFlushing, hasEnded }).toEqual({ isFlushing: true, hasEnded: false });
  flushed.resolve();
  await ended;
});

test('a run that asks its memory alone leaves no steps to be ended', async () => {
  const { start, handlers } = runsOf({
    memories: {
      begin: () => ({ ask: async () => 'remembered' }) as Partial<RunMemory> as RunMemory,
    } as Partial<RunMemories> as RunMemories,
  });
  const run = start({
    id: 'a',
    started_at: 1,
    epoch: 1,
    created_at: 0,
    resumes: null,
  } as ClaimedJob);
  const ask = (kind: string) => handlers().onAsk(kind, {}, new AbortController().signal, null);

  expect(await ask('recall')).toBe('remembered');
  expect(run.openedJournal).toBe(false);
  await expect(ask('wait')).rejects.toThrow();
  expect(run.openedJournal).toBe(true);
});

const options = { timeoutMs: 1_000, alone: false, answerField: null, configured: null };

/** Thinking whose attempts are made so. */
const thinkingOf = (begin: (attempt: Attempt) => RunThinking): Thinking => ({ begin });

const idleThinking = {
  generate: async () => ({}) as Generated,
  ended: async () => {},
  answer: null,
  retryAfterMs: null,
};

/** Runs in executors that run nothing; `handlers` are those of the last run. */
function runsOf(parts: Partial<Runs>) {
  let handlers: RunHandlers | undefined;
  const executors = {
    run(_request: unknown, of: RunHandlers) {
      handlers = of;
      return { outcome: new Promise(() => {}), abort() {}, suspend() {} };
    },
  };
  const context = contextOf({ database: {} as Database });
  const runs = { context, executors, pace: runPace, ...parts } as unknown as Runs;
  return {
    start: (job: ClaimedJob) => startRun(runs, job, options),
    handlers: () => handlers as RunHandlers,
  };
}
