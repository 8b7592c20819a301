import { expect, test } from 'vitest';
import { Heartbeat } from './heartbeat.ts';

/** A heartbeat on a clock that the test moves. */
function heartbeatOf() {
  const clock = { now: 0 };
  return { clock, heartbeat: new Heartbeat(() => clock.now) };
}

test('a child is silent from the oldest ping that it has not answered', () => {
  const { clock, heartbeat } = heartbeatOf();
  expect(heartbeat.silentMs()).toBe(0);

  const first = heartbeat.next();
  clock.now = 300;
  heartbeat.next();
  expect([heartbeat.silentMs(), heartbeat.stalledMs()]).toEqual([300, 300]);

  expect(heartbeat.answer(first)).toBe(true);
  expect(heartbeat.hasAnswered(first)).toBe(true);
  expect(heartbeat.hasAnswered(heartbeat.sent)).toBe(false);
  clock.now = 700;
  expect([heartbeat.silentMs(), heartbeat.stalledMs()]).toEqual([400, 400]);

  heartbeat.showLife();
  clock.now = 800;
  expect([heartbeat.silentMs(), heartbeat.stalledMs()]).toEqual([500, 100]);

  heartbeat.answer(heartbeat.sent);
  expect([heartbeat.silentMs(), heartbeat.stalledMs()]).toEqual([0, 0]);
});

test('an answer without a ping, or out of order, is none', () => {
  const { heartbeat } = heartbeatOf();
  expect(heartbeat.answer(1)).toBe(false);
  heartbeat.next();
  heartbeat.next();
  expect([heartbeat.answer(2), heartbeat.answer(1), heartbeat.answer(1)]).toEqual([
    false,
    true,
    false,
  ]);
});
