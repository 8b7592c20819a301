import { expect, test } from 'vitest';
import type { Thinking } from '../agents/thinking.ts';
import type { RunHandlers } from '../executors/run.ts';
import type { Journal } from '../journal/journal.ts';
import type { RunMemory } from '../memories/run-memory.ts';
import type { Generated } from '../skills/definition.ts';
import type { RunDeps } from './attempt.ts';
import type { ClaimedJob } from './jobs.store.ts';
import { createRuns } from './run.ts';

test('a first report that is made while the thinking ends is recorded before the run has ended', async () => {
  const flushed = Promise.withResolvers<void>();
  let isFlushing = false;
  const { startRun, handlers } = runs({
    waits: {
      thinking: ({ say }) => ({
        ...idleThinking,
        async ended() {
          say({ type: 'token', data: { step: 1, text: 'late' } });
        },
      }),
    },
    records: {
      reports: () => ({
        add() {},
        flushed() {
          isFlushing = true;
          return flushed.promise;
        },
      }),
    },
  });
  const run = startRun({ id: 'a', started_at: 1 } as ClaimedJob, options);
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
  const { startRun, handlers } = runs({
    records: {
      startMemory: () => ({ ask: async () => 'remembered' }) as Partial<RunMemory> as RunMemory,
    },
  });
  const run = startRun({ id: 'a', started_at: 1, epoch: 1 } as ClaimedJob, options);
  const ask = (kind: string) => handlers().onAsk(kind, {}, new AbortController().signal, null);

  expect(await ask('recall')).toBe('remembered');
  expect(run.openedJournal).toBe(false);
  await expect(ask('wait')).rejects.toThrow();
  expect(run.openedJournal).toBe(true);
});

const options = { timeoutMs: 1_000, alone: false, answerField: null, configured: null };

const idleThinking: ReturnType<Thinking> = {
  generate: async () => ({}) as Generated,
  ended: async () => {},
  answer: null,
  retryAfterMs: null,
};

/** Runs in executors that run nothing; `handlers` are those of the last run. */
function runs(deps: {
  readonly records: Partial<RunDeps['records']>;
  readonly waits?: Partial<RunDeps['waits']>;
}) {
  let handlers: RunHandlers | undefined;
  const startRun = createRuns({
    base: {},
    waits: {},
    ...deps,
    executors: {
      run(_request: unknown, of: RunHandlers) {
        handlers = of;
        return { outcome: new Promise(() => {}), abort() {}, suspend() {} };
      },
    },
    records: { ...deps.records, openJournal: () => ({}) as Journal },
  } as unknown as RunDeps);
  return { startRun, handlers: () => handlers as RunHandlers };
}
