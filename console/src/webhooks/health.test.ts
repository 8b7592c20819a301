import { expect, test } from 'vitest';
import type { Webhook } from '../api/webhooks.ts';
import { healthOf } from './health.ts';

const failing = (consecutive_failures: number) =>
  healthOf({
    active: true,
    failing: true,
    consecutive_failures,
    last_delivery_at: '2026-01-01T00:00:00.000Z',
  } as Webhook).words;

test('a failing webhook says how many deliveries have failed', () => {
  expect(failing(1)).toMatch(/^One delivery used up all retries/);
  expect(failing(3)).toMatch(/^3 deliveries in a row used up all retries/);
});

test('a webhook that was enabled again after failures does not mention a count of zero', () => {
  expect(failing(0)).toBe(
    'It was enabled again after failures, and no delivery has succeeded since.',
  );
});
