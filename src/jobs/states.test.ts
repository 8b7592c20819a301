import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JobStatus } from '../database/tables.ts';
import { runErrorCodes } from '../kernel/errors.ts';
import { cancelledError, type Ending, isFinal, jobTransitions, nextState } from './states.ts';

const backoff = { baseMs: 1_000, maxMs: 3_600_000 };
const now = Date.parse('2026-11-20T12:00:00.000Z');
const error = { code: 'skill_execution_failed', message: 'it broke' } as const;

const failed = (retryable: boolean): Ending => ({ kind: 'failed', error, retryable });
const job = (attempt: number, max_attempts: number) => ({ attempt, max_attempts });

describe('the life of a job', () => {
  test('completed, failed and cancelled are final, and nothing follows them', () => {
    const statuses = Object.keys(jobTransitions) as JobStatus[];

    expect(statuses.filter(isFinal)).toEqual(['completed', 'failed', 'cancelled']);
  });

  test('a queued job becomes active or is cancelled; only an active one completes or fails', () => {
    expect(jobTransitions.queued).toEqual(['active', 'cancelled']);
    expect([...jobTransitions.active].sort()).toEqual([
      'cancelled',
      'completed',
      'failed',
      'queued',
    ]);
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

  test('returned: at once again and the attempt is not charged, at the last one too', () => {
    const returned = (unattributedDeath: boolean) =>
      nextState({ kind: 'returned', unattributedDeath }, job(3, 3), backoff, now);

    expect(returned(false)).toEqual({
      status: 'queued',
      runAt: now,
      error: null,
      refund: 1,
      unattributedDeaths: 0,
    });
    expect(returned(true)).toMatchObject({ status: 'queued', refund: 1, unattributedDeaths: 1 });
  });

  test.each([
    ['at once', 0, 1_000],
    ['sooner than it would be anyhow', 400, 1_000],
    ['later', 30_000, 30_000],
    ['later than the longest backoff', 7_200_000, 3_600_000],
  ])(
    'failed by a server that asks for a pause until %s: not tried again sooner',
    (_, retryAfterMs, ms) => {
      const ending: Ending = { kind: 'failed', error, retryable: true, retryAfterMs };

      expect(nextState(ending, job(1, 4), backoff, now, 0)).toEqual({
        status: 'queued',
        runAt: now + ms,
        error,
        refund: 0,
        unattributedDeaths: 0,
      });
      expect(nextState(ending, job(4, 4), backoff, now)).toEqual({ status: 'failed', error });
      expect(nextState({ ...ending, retryable: false }, job(1, 4), backoff, now).status).toBe(
        'failed',
      );
    },
  );

  test('is always a transition that the table allows, within the backoff', () => {
    const errors = fc.record({ code: fc.constantFrom(...runErrorCodes), message: fc.string() });
    const endings: fc.Arbitrary<Ending> = fc.oneof(
      fc.record({ kind: fc.constant('completed' as const), output: fc.json() }),
      fc.record(
        {
          kind: fc.constant('failed' as const),
          error: errors,
          retryable: fc.boolean(),
          retryAfterMs: fc.nat(),
        },
        { requiredKeys: ['kind', 'error', 'retryable'] },
      ),
      fc.constant({ kind: 'cancelled' as const }),
      fc.record({ kind: fc.constant('returned' as const), unattributedDeath: fc.boolean() }),
    );
    const attempts = fc.integer({ min: 1, max: 25 });
    const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(endings, attempts, attempts, chance, (ending, attempt, max, random) => {
        const transition = nextState(ending, job(attempt, max), backoff, now, random);

        expect(jobTransitions.active).toContain(transition.status);
        if (transition.status === 'queued') {
          const wait = transition.runAt - now;
          expect(wait).toBeGreaterThanOrEqual(0);
          expect(wait).toBeLessThanOrEqual(backoff.maxMs);
          // Only what is charged may be repeated, and only while attempts are left.
          expect(transition.refund === 1 || attempt < max).toBe(true);
        }
        const isRetried = ending.kind === 'failed' && ending.retryable && attempt < max;
        expect(transition.status === 'queued').toBe(isRetried || ending.kind === 'returned');
      }),
    );
  });
});
