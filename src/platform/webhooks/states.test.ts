import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type AttemptOutcome,
  deliveryTransitions,
  isFinal,
  nextState,
  type WebhookHealth,
  type WebhookState,
  webhookTransitions,
} from './states.ts';

const now = 1_000_000;
const delaysMs = [30_000, 120_000, 600_000, 3_600_000, 21_600_000];
const healthy: WebhookHealth = { isActive: true, isFailing: false, consecutiveFailures: 0 };
const next = (
  outcome: AttemptOutcome,
  attempts: number,
  health = healthy,
  isTest = false,
  lost = 0,
) => nextState(outcome, { attempts, lost, isTest }, health, delaysMs, now);
const nextWithLost = (outcome: AttemptOutcome, attempts: number, lost: number) =>
  next(outcome, attempts, healthy, false, lost);

describe('an attempt that the receiver did not accept', () => {
  test.each(delaysMs.map((delay, i) => [i + 1, delay]))(
    'the %ith is followed by another after %i ms exactly',
    (attempts, delay) => {
      expect(next('refused', attempts)).toEqual({
        status: 'pending',
        lost: 0,
        dueAt: now + delay,
        health: healthy,
      });
    },
  );

  test('the sixth is the last: the delivery has failed, the webhook is failing', () => {
    expect(next('refused', 6)).toEqual({
      status: 'failed',
      lost: 0,
      dueAt: null,
      health: { isActive: true, isFailing: true, consecutiveFailures: 1 },
    });
  });

  test('with 410 is the last', () => {
    expect(next('gone', 1)).toMatchObject({ status: 'failed', health: { isFailing: true } });
  });

  test('and that was lost is repeated at once, and uses up no retry', () => {
    expect(next('lost', 1)).toMatchObject({ status: 'pending', lost: 1, dueAt: now });
    expect(nextWithLost('lost', 9, 3)).toMatchObject({ status: 'pending', lost: 4, dueAt: now });
    expect(nextWithLost('refused', 9, 4)).toMatchObject({
      status: 'pending',
      dueAt: now + 21_600_000,
    });
    expect(nextWithLost('refused', 10, 4)).toMatchObject({ status: 'failed' });
  });

  test('and that was lost counts as refused after 20 lost ones', () => {
    expect(nextWithLost('lost', 20, 19)).toMatchObject({ status: 'pending', dueAt: now });
    expect(nextWithLost('lost', 21, 20)).toMatchObject({
      status: 'pending',
      lost: 20,
      dueAt: now + 30_000,
    });
    expect(nextWithLost('lost', 26, 20)).toMatchObject({ status: 'failed' });
  });

  test('is not repeated once the webhook is inactive', () => {
    const inactive = { ...healthy, isActive: false };

    expect(next('refused', 1, inactive)).toMatchObject({ status: 'cancelled', dueAt: null });
    expect(next('lost', 1, inactive)).toMatchObject({ status: 'cancelled', dueAt: null });
  });
});

describe('a delivery', () => {
  test('that is accepted ends the failing state and resets the count', () => {
    const health = { isActive: true, isFailing: true, consecutiveFailures: 9 };

    expect(next('accepted', 6, health)).toEqual({
      status: 'delivered',
      lost: 0,
      dueAt: null,
      health: healthy,
    });
  });

  test('that fails as the tenth in a row deactivates, the ninth does not', () => {
    const healthAfter = (consecutiveFailures: number) =>
      next('gone', 1, { ...healthy, isFailing: true, consecutiveFailures }).health;

    expect(healthAfter(8)).toEqual({ isActive: true, isFailing: true, consecutiveFailures: 9 });
    expect(healthAfter(9)).toEqual({ isActive: false, isFailing: true, consecutiveFailures: 10 });
  });

  test('that was a test never counts as failed', () => {
    const health = { ...healthy, consecutiveFailures: 9 };

    expect(next('gone', 1, health, true)).toMatchObject({ status: 'failed', health });
  });

  test('that fails once its webhook is inactive does not raise the count', () => {
    const health = { isActive: false, isFailing: true, consecutiveFailures: 10 };

    expect(next('gone', 1, health)).toMatchObject({ status: 'failed', health });
  });
});

test('every outcome leads delivery and webhook to a state that their tables allow', () => {
  const stateOf = ({ isActive, isFailing }: WebhookHealth): WebhookState =>
    isActive ? (isFailing ? 'failing' : 'active') : 'inactive';
  const healths = fc.record({
    isActive: fc.boolean(),
    isFailing: fc.boolean(),
    consecutiveFailures: fc.nat(12),
  });
  const outcomes = fc.constantFrom<AttemptOutcome>('accepted', 'refused', 'gone', 'lost');
  fc.assert(
    fc.property(outcomes, fc.integer({ min: 1, max: 6 }), healths, fc.boolean(), (...given) => {
      const [outcome, attempts, health, isTest] = given;
      const after = next(outcome, attempts, health, isTest);

      expect(deliveryTransitions.delivering).toContain(after.status);
      expect(after.dueAt === null).toBe(isFinal(after.status));
      const [from, to] = [stateOf(health), stateOf(after.health)];
      if (from !== to) expect(webhookTransitions[from]).toContain(to);
      expect(after.health.isActive && !health.isActive).toBe(false);
    }),
  );
});
