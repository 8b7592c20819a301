import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  deliveryTransitions,
  type Ending,
  isFinal,
  type Standing,
  verdictOn,
  type WebhookState,
  webhookTransitions,
} from './states.ts';

const now = 1_000_000;
const delaysMs = [30_000, 120_000, 600_000, 3_600_000, 21_600_000];
const healthy: Standing = { isActive: true, isFailing: false, consecutiveFailures: 0 };
const judge = (ending: Ending, attempts: number, standing = healthy, isTest = false, lost = 0) =>
  verdictOn(ending, { attempts, lost, isTest }, standing, delaysMs, now);
const judgeWithLost = (ending: Ending, attempts: number, lost: number) =>
  judge(ending, attempts, healthy, false, lost);

describe('an attempt that the receiver did not take', () => {
  test.each(delaysMs.map((delay, i) => [i + 1, delay]))(
    'the %ith is followed by another after %i ms exactly',
    (attempts, delay) => {
      expect(judge('refused', attempts)).toEqual({
        status: 'pending',
        lost: 0,
        dueAt: now + delay,
        standing: healthy,
      });
    },
  );

  test('the sixth is the last: the delivery has failed, the webhook is failing', () => {
    expect(judge('refused', 6)).toEqual({
      status: 'failed',
      lost: 0,
      dueAt: null,
      standing: { isActive: true, isFailing: true, consecutiveFailures: 1 },
    });
  });

  test('with 410 is the last', () => {
    expect(judge('gone', 1)).toMatchObject({ status: 'failed', standing: { isFailing: true } });
  });

  test('and got lost is repeated at once, and uses up no retry', () => {
    expect(judge('lost', 1)).toMatchObject({ status: 'pending', lost: 1, dueAt: now });
    expect(judgeWithLost('lost', 9, 3)).toMatchObject({ status: 'pending', lost: 4, dueAt: now });
    expect(judgeWithLost('refused', 9, 4)).toMatchObject({
      status: 'pending',
      dueAt: now + 21_600_000,
    });
    expect(judgeWithLost('refused', 10, 4)).toMatchObject({ status: 'failed' });
  });

  test('and got lost counts as refused after 20 that did not', () => {
    expect(judgeWithLost('lost', 20, 19)).toMatchObject({ status: 'pending', dueAt: now });
    expect(judgeWithLost('lost', 21, 20)).toMatchObject({
      status: 'pending',
      lost: 20,
      dueAt: now + 30_000,
    });
    expect(judgeWithLost('lost', 26, 20)).toMatchObject({ status: 'failed' });
  });

  test('is not repeated once the webhook is inactive', () => {
    const inactive = { ...healthy, isActive: false };

    expect(judge('refused', 1, inactive)).toMatchObject({ status: 'cancelled', dueAt: null });
    expect(judge('lost', 1, inactive)).toMatchObject({ status: 'cancelled', dueAt: null });
  });
});

describe('a delivery', () => {
  test('that arrives ends the failing and the count', () => {
    const standing = { isActive: true, isFailing: true, consecutiveFailures: 9 };

    expect(judge('taken', 6, standing)).toEqual({
      status: 'delivered',
      lost: 0,
      dueAt: null,
      standing: healthy,
    });
  });

  test('that fails as the tenth in a row deactivates, the ninth does not', () => {
    const standingAfter = (consecutiveFailures: number) =>
      judge('gone', 1, { ...healthy, isFailing: true, consecutiveFailures }).standing;

    expect(standingAfter(8)).toEqual({ isActive: true, isFailing: true, consecutiveFailures: 9 });
    expect(standingAfter(9)).toEqual({ isActive: false, isFailing: true, consecutiveFailures: 10 });
  });

  test('that was a test never counts as failed', () => {
    const standing = { ...healthy, consecutiveFailures: 9 };

    expect(judge('gone', 1, standing, true)).toMatchObject({ status: 'failed', standing });
  });

  test('that fails once its webhook is inactive does not raise the count', () => {
    const standing = { isActive: false, isFailing: true, consecutiveFailures: 10 };

    expect(judge('gone', 1, standing)).toMatchObject({ status: 'failed', standing });
  });
});

test('whatever happens, delivery and webhook go where their tables say', () => {
  const stateOf = ({ isActive, isFailing }: Standing): WebhookState =>
    isActive ? (isFailing ? 'failing' : 'active') : 'inactive';
  const standings = fc.record({
    isActive: fc.boolean(),
    isFailing: fc.boolean(),
    consecutiveFailures: fc.nat(12),
  });
  const endings = fc.constantFrom<Ending>('taken', 'refused', 'gone', 'lost');
  fc.assert(
    fc.property(endings, fc.integer({ min: 1, max: 6 }), standings, fc.boolean(), (...given) => {
      const [ending, attempts, standing, isTest] = given;
      const verdict = judge(ending, attempts, standing, isTest);

      expect(deliveryTransitions.delivering).toContain(verdict.status);
      expect(verdict.dueAt === null).toBe(isFinal(verdict.status));
      const [from, to] = [stateOf(standing), stateOf(verdict.standing)];
      if (from !== to) expect(webhookTransitions[from]).toContain(to);
      expect(verdict.standing.isActive && !standing.isActive).toBe(false);
    }),
  );
});
