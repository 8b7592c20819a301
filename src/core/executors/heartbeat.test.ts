import { expect, test } from 'vitest';
import { Heartbeat } from './heartbeat.ts';

/** A heartbeat on a clock and a mark that the test moves. */
function heartbeatOf() {
  const child = { now: 0, marked: 0, looks: 0 };
  const marked = () => {
    child.looks += 1;
    return child.marked;
  };
  return { child, heartbeat: new Heartbeat(() => child.now, marked) };
}

test('a line that the child has marked may have begun, before it is answered', () => {
  const { child, heartbeat } = heartbeatOf();
  const [first, second] = [heartbeat.next(), heartbeat.next()];
  expect([first, second].map((ping) => heartbeat.hasAnswered(ping))).toEqual([false, false]);

  child.marked = first;

  expect([first, second].map((ping) => heartbeat.hasAnswered(ping))).toEqual([true, false]);
  expect(heartbeat.answer(first)).toBe(true);
  expect(heartbeat.hasAnswered(first)).toBe(true);
});

test('a line that was not sent has not begun, whatever the mark says', () => {
  const { child, heartbeat } = heartbeatOf();
  child.marked = 1_000;

  expect(heartbeat.hasAnswered(heartbeat.upcoming)).toBe(false);
});

test('a child that handles a line is silent from the next line on', () => {
  const { child, heartbeat } = heartbeatOf();
  child.marked = heartbeat.next();
  child.now = 300;
  expect([heartbeat.silentMs(), heartbeat.stalledMs()]).toEqual([0, 0]);

  heartbeat.next();
  child.now = 700;
  expect([heartbeat.silentMs(), heartbeat.stalledMs()]).toEqual([400, 400]);

  heartbeat.showLife();
  child.now = 800;
  expect([heartbeat.silentMs(), heartbeat.stalledMs()]).toEqual([500, 100]);

  child.marked = 2;
  expect(heartbeat.silentMs()).toBe(0);
});

test('the mark is not looked at while all lines are answered, or none can have waited for long', () => {
  const { child, heartbeat } = heartbeatOf();
  heartbeat.answer(heartbeat.next());
  expect(heartbeat.silentMs()).toBe(0);
  child.now = 1_000;
  expect(heartbeat.hasAnsweredWithin(500)).toBe(true);
  heartbeat.next();
  child.now = 1_500;
  expect(heartbeat.hasAnsweredWithin(500)).toBe(true);
  child.now = 1_501;
  expect(heartbeat.hasAnsweredWithin(500)).toBe(false);
  expect(child.looks).toBe(0);
});

test('an answer without a line, or out of order, is none', () => {
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
