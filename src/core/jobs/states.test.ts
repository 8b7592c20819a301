import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JobStatus } from '../../adapters/database/tables.ts';
import { runErrorCodes } from '../../kernel/errors.ts';
import {
  type AttemptOutcome,
  cancelledError,
  failureOf,
  isFinal,
  jobTransitions,
  nextState,
  runsAlone,
  withoutRetry,
} from './states.ts';

const backoff = { baseMs: 1_000, maxMs: 3_600_000 };
const now = Date.parse('2026-11-20T12:00:00.000Z');
const error = { code: 'skill_execution_failed', message: 'it broke' } as const;

const failed = (retryable: boolean): AttemptOutcome => ({ kind: 'failed', ...error, retryable });
const job = (attempt: number, max_attempts: number, deaths = 0) => ({
  attempt,
  max_attempts,
  deaths,
});

describe('the life of a job', () => {
  test('completed, failed and cancelled are final, and nothing follows them', () => {
    const statuses = Object.keys(jobTransitions) as JobStatus[];

    expect(statuses.filter(isFinal)).toEqual(['completed', 'failed', 'cancelled']);
  });

  test('a queued or waiting job becomes active or is cancelled; only an active one completes or fails', () => {
    expect(jobTransitions.queued).toEqual(['active', 'waiting', 'cancelled']);
    expect([...jobTransitions.active].sort()).toEqual([
      'cancelled',
      'completed',
      'failed',
      'queued',
      'waiting',
    ]);
    expect(jobTransitions.waiting).toEqual(['active', 'completed', 'failed', 'cancelled']);
  });

  test('every state can be reached from queued and leads to an end', () => {
    const reached = new Set<JobStatus>(['queued']);
    for (const status of reached) for (const next of jobTransitions[status]) reached.add(next);

    expect([...reached].sort()).toEqual(Object.keys(jobTransitions).sort());
  });
});

describe('what an attempt makes of its job', () => {
  test('completed: the output', () => {
    expect(nextState({ kind: 'completed', output: '{"a":1}' }, job(1, 3), backoff, now)).toEqual({
      status: 'completed',
      output: '{"a":1}',
    });
  });

  test('cancelled: error.code cancelled, whatever attempts are left', () => {
    expect(nextState({ kind: 'cancelled' }, job(1, 3), backoff, now)).toEqual({
      status: 'cancelled',
      error: cancelledError,
    });
    expect(cancelledError.code).toBe('cancelled');
  });

  test.each([
    [1, 1_000],
    [2, 2_000],
    [3, 4_000],
  ])('failed at attempt %i of 4: again after %i ms', (attempt, ms) => {
    expect(nextState(failed(true), job(attempt, 4), backoff, now, 0)).toEqual({
      status: 'queued',
      runAt: now + ms,
      error,
      refund: 0,
      unattributedDeaths: 0,
    });
  });

  test('failed at the last attempt, or not retryable: failed for good', () => {
    expect(nextState(failed(true), job(3, 3), backoff, now)).toEqual({ status: 'failed', error });
    expect(nextState(failed(true), job(4, 3), backoff, now).status).toBe('failed');
    expect(nextState(failed(false), job(1, 3), backoff, now).status).toBe('failed');
  });

  test.each<[AttemptOutcome, { wait: number; deaths: 0 | 1 }]>([
    [{ kind: 'aborted' }, { wait: 0, deaths: 0 }],
    [
      { kind: 'displaced', suspect: false },
      { wait: 0, deaths: 0 },
    ],
    [
      { kind: 'displaced', suspect: true },
      { wait: 0, deaths: 1 },
    ],
    [
      { kind: 'deferred', afterMs: 2_000 },
      { wait: 2_000, deaths: 0 },
    ],
  ])('%j: queued again and not charged, at the last attempt too', (outcome, { wait, deaths }) => {
    expect(nextState(outcome, job(3, 3), backoff, now)).toEqual({
      status: 'queued',
      runAt: now + wait,
      error: null,
      refund: 1,
      unattributedDeaths: deaths,
    });
  });

  test('timed out: tried again, with skill_timeout', () => {
    const outcome = { kind: 'timeout', message: 'too long' } as const;
    const error = { code: 'skill_timeout', message: 'too long' };

    expect(nextState(outcome, job(1, 3, 5), backoff, now)).toMatchObject({
      status: 'queued',
      error,
    });
    expect(nextState(outcome, job(3, 3), backoff, now)).toEqual({ status: 'failed', error });
  });

  test('lost with its executor: tried again with worker_lost, unless it ran alone already', () => {
    const outcome = { kind: 'lost', message: 'gone' } as const;
    const error = { code: 'worker_lost', message: 'gone' };
    const neighboured = job(1, 3, 1);
    const alone = job(1, 3, 2);

    expect([runsAlone(neighboured), runsAlone(alone)]).toEqual([false, true]);
    expect(nextState(outcome, neighboured, backoff, now)).toMatchObject({
      status: 'queued',
      refund: 0,
      error,
    });
    expect(nextState(outcome, alone, backoff, now)).toEqual({ status: 'failed', error });
  });

  test('without a retry, a failure is final, and an attempt that was not charged is cancelled', () => {
    const retried = nextState(failed(true), job(1, 3), backoff, now);
    const returned = nextState({ kind: 'aborted' }, job(1, 3), backoff, now);
    const done = nextState({ kind: 'completed', output: '1' }, job(1, 3), backoff, now);

    expect(withoutRetry(retried)).toEqual({ status: 'failed', error });
    expect(withoutRetry(returned)).toEqual({ status: 'cancelled', error: cancelledError });
    expect(withoutRetry(done)).toBe(done);
  });

  test.each([
    ['at once', 0, 1_000],
    ['sooner than it would be anyhow', 400, 1_000],
    ['later', 30_000, 30_000],
    ['later than the longest backoff', 7_200_000, 3_600_000],
  ])(
    'failed by a server that asks for a pause until %s: not tried again sooner',
    (_, retryAfterMs, ms) => {
      const outcome: AttemptOutcome = { kind: 'failed', ...error, retryable: true, retryAfterMs };

      expect(nextState(outcome, job(1, 4), backoff, now, 0)).toEqual({
        status: 'queued',
        runAt: now + ms,
        error,
        refund: 0,
        unattributedDeaths: 0,
      });
      expect(nextState(outcome, job(4, 4), backoff, now)).toEqual({ status: 'failed', error });
      expect(nextState({ ...outcome, retryable: false }, job(1, 4), backoff, now).status).toBe(
        'failed',
      );
    },
  );

  test('is always a transition that the table allows, within the backoff', () => {
    const message = fc.string();
    const outcomes: fc.Arbitrary<AttemptOutcome> = fc.oneof(
      fc.record({ kind: fc.constant('completed' as const), output: fc.json() }),
      fc.record(
        {
          kind: fc.constant('failed' as const),
          code: fc.constantFrom(...runErrorCodes),
          message,
          retryable: fc.boolean(),
          retryAfterMs: fc.nat(),
        },
        { requiredKeys: ['kind', 'code', 'message', 'retryable'] },
      ),
      fc.record({ kind: fc.constantFrom('timeout' as const, 'lost' as const), message }),
      fc.constantFrom({ kind: 'cancelled' as const }, { kind: 'aborted' as const }),
      fc.record({ kind: fc.constant('displaced' as const), suspect: fc.boolean() }),
      fc.record({ kind: fc.constant('deferred' as const), afterMs: fc.nat({ max: 60_000 }) }),
    );
    const attempts = fc.integer({ min: 1, max: 25 });
    const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(outcomes, attempts, attempts, chance, (outcome, attempt, max, random) => {
        const transition = nextState(outcome, job(attempt, max), backoff, now, random);

        expect(jobTransitions.active).toContain(transition.status);
        if (transition.status === 'queued') {
          const wait = transition.runAt - now;
          expect(wait).toBeGreaterThanOrEqual(0);
          expect(wait).toBeLessThanOrEqual(backoff.maxMs);
          // Only what is charged may be repeated, and only while attempts are left.
          expect(transition.refund === 1 || attempt < max).toBe(true);
        }
        const mayRetry =
          outcome.kind === 'failed' ? outcome.retryable : failureOf(outcome) !== null;
        const isReturned = ['aborted', 'displaced', 'deferred'].includes(outcome.kind);
        expect(transition.status === 'queued').toBe((mayRetry && attempt < max) || isReturned);
      }),
    );
  });
});
