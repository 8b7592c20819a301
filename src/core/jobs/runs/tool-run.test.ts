import { expect, test } from 'vitest';
import { contextOf } from '../../../../test/support/context.ts';
import type { Database } from '../../../adapters/database/database.ts';
import { wholeRun } from '../../journal/run-part.ts';
import { WaitScope } from '../../journal/wait-scope.ts';
import type { ClaimedJob } from '../jobs.store.ts';
import { newAttempt, type Runs } from './attempt.ts';
import { runToolSkill } from './tool-run.ts';

const context = contextOf({ database: {} as Database });

test.each([
  ['that a person has approved runs once', true, 1],
  ['that needs no approval runs three times', false, 3],
])('a tool %s while its executors die', async (_, isOnce, times) => {
  let runs = 0;
  const parts = {
    context,
    skills: { definition: () => ({ timeoutMs: 1_000, timeoutField: null, remoteSourceId: null }) },
    executors: {
      run() {
        runs += 1;
        const outcome = Promise.resolve({ kind: 'displaced', suspect: true });
        return { outcome, abort() {}, suspend() {} };
      },
    },
    places: { limits: { gatesOf: () => [] } },
  } as unknown as Runs;
  const attempt = newAttempt(parts, { id: 'a', created_at: 0, resumes: null } as ClaimedJob);
  const call = { skill: 'test/v1.0/tool', input: '{}', isOnce, wasInterrupted: false };
  const { signal } = new AbortController();

  const result = await runToolSkill(attempt, call, wholeRun, signal, new WaitScope(() => {}));

  expect(runs).toBe(times);
  expect(result).toMatchObject({ kind: 'failed', code: 'worker_lost' });
});

test.each([
  ['has the time that its input gives it', '{"limit":7200000}', 7_200_000],
  ['without a time in its input has that of its skill', '{}', 1_000],
])('a tool %s', async (_, input, expected) => {
  const limits: number[] = [];
  const skill = { timeoutMs: 1_000, timeoutField: 'limit', remoteSourceId: null };
  const parts = {
    context,
    skills: { definition: () => skill },
    executors: {
      run({ timeoutMs }: { timeoutMs: number }) {
        limits.push(timeoutMs);
        const outcome = Promise.resolve({ kind: 'completed', output: '1' });
        return { outcome, abort() {}, suspend() {} };
      },
    },
    places: { limits: { gatesOf: () => [] } },
  } as unknown as Runs;
  await runToolSkill(
    newAttempt(parts, { id: 'a', created_at: 0, resumes: null } as ClaimedJob),
    { skill: 'test/v1.0/tool', input, isOnce: false, wasInterrupted: false },
    wholeRun,
    new AbortController().signal,
    new WaitScope(() => {}),
  );
  expect(limits).toEqual([expected]);
});

test.each([
  ['may be called twice', 3, 1],
  ['may not be called twice', 1, 0],
])(
  'a tool of a service outside that %s after an attempt that was lost',
  async (_, maxAttempts, times) => {
    let runs = 0;
    const skill = { timeoutMs: 1_000, timeoutField: null, remoteSourceId: 'a', maxAttempts };
    const parts = {
      context,
      skills: { definition: () => skill },
      executors: {
        run() {
          runs += 1;
          const outcome = Promise.resolve({ kind: 'completed', output: '1' });
          return { outcome, abort() {}, suspend() {} };
        },
      },
      places: { limits: { gatesOf: () => [] } },
    } as unknown as Runs;
    const call = { skill: 'mcp-a/v1.0/tool', input: '{}', isOnce: false, wasInterrupted: true };
    const result = await runToolSkill(
      newAttempt(parts, { id: 'a', created_at: 0, resumes: null } as ClaimedJob),
      call,
      wholeRun,
      new AbortController().signal,
      new WaitScope(() => {}),
    );
    expect(runs).toBe(times);
    expect(result.kind).toBe(times === 1 ? 'completed' : 'failed');
  },
);
