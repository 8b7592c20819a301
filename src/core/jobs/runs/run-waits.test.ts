import { expect, test } from 'vitest';
import { manualClock } from '../../../../test/support/manual-clock.ts';
import { RunObservers } from '../../context/run-observer.ts';
import { Journal } from '../../journal/journal.ts';
import type { OpenWait, WaitEnd } from '../../journal/waits.ts';
import { type Attempt, runPace } from './attempt.ts';
import { RunWaits } from './run-waits.ts';

const hour = 3_600_000;
const wanted = {
  key: 'k',
  kind: 'event',
  name: 'paid',
  nth: 1,
  parent: null,
  payload: {},
} as const;
const never = new AbortController().signal;

/** The waits of a run, with a journal in the test's hand. */
function waitsOf() {
  const begun = Promise.withResolvers<OpenWait>();
  const clock = manualClock('1970-01-01T00:00:00.000Z');
  const ends = new Map<number, WaitEnd>();
  let suspensions = 0;
  const journal: Journal = Object.create(Journal.prototype, {
    beginWait: { value: () => begun.promise },
    endsOfWaits: { value: async () => ends },
  });
  const waits = new RunWaits({
    runs: {
      context: { clock, observers: new RunObservers() },
      waitKinds: new Map(),
      pace: runPace,
    },
    journal,
    handle: { suspend: () => void suspensions++ },
  } as unknown as Attempt);
  const isOpen = () =>
    begun.resolve({
      n: 1,
      kind: 'event',
      name: 'paid',
      parent: null,
      dueAt: hour,
      isOnRecord: false,
    });
  return { waits, ends, isOpen, clock, suspensions: () => suspensions };
}

/** A turn of the event loop in which all that is ready happens, and one for what follows. */
async function turns(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise(setImmediate);
}

test('a wait that ends before the run is known to wait is answered', async () => {
  const { waits, ends, isOpen, suspensions } = waitsOf();
  const answer = waits.wait(wanted, waits.scope, never);
  ends.set(1, { value: 'paid', at: 5, place: null });

  await waits.checkWaits();
  isOpen();

  expect(await answer).toEqual({ value: 'paid', at: 5 });
  expect(suspensions()).toBe(0);
  waits.stop();
});

test('a wait whose deadline passes while other work is under way is answered when that ends', async () => {
  const { waits, ends, isOpen, clock } = waitsOf();
  const done = waits.scope.work();
  const answer = waits.wait(wanted, waits.scope, never);
  isOpen();
  await turns();

  clock.advance(2 * hour);
  ends.set(1, { value: null, at: hour, place: null });
  done();

  expect(await answer).toEqual({ value: null, at: hour });
  waits.stop();
});

test('a run that only waits is asked to be unloaded', async () => {
  const { waits, isOpen, suspensions } = waitsOf();
  void waits.wait(wanted, waits.scope, never).catch(() => {});

  isOpen();
  await turns();

  expect(suspensions()).toBe(1);
  expect(waits.open()).toEqual([1]);
  waits.stop();
});

test('an end before the run was asked to be unloaded counts as told', async () => {
  const { waits, ends, isOpen } = waitsOf();
  const answer = waits.wait(wanted, waits.scope, never);
  isOpen();
  ends.set(1, { value: null, at: 5, place: null });
  await Promise.resolve();
  await waits.checkWaits();
  await answer;

  expect(waits.open()).toEqual([]);
  waits.stop();
});

test('a run that was asked to be unloaded gets no answer, unless it asks something else', async () => {
  const { waits, ends, isOpen, suspensions } = waitsOf();
  let isAnswered = false;
  const answer = waits.wait(wanted, waits.scope, never).then(() => {
    isAnswered = true;
  });
  isOpen();
  await turns();
  expect(suspensions()).toBe(1);
  ends.set(1, { value: null, at: 5, place: null });

  await waits.checkWaits();
  await turns();
  expect({ isAnswered, open: waits.open() }).toEqual({ isAnswered: false, open: [1] });
  waits.requestMade();
  await answer;

  expect(waits.open()).toEqual([]);
  waits.stop();
});

test('one that is still there after a second gets its answer, and may not have got it', async () => {
  const { waits, ends, isOpen, clock } = waitsOf();
  const answer = waits.wait(wanted, waits.scope, never);
  isOpen();
  await turns();
  ends.set(1, { value: null, at: 5, place: null });
  clock.advance(1_000);

  await waits.checkWaits();
  await answer;

  expect(waits.open()).toEqual([1]);
  waits.requestMade();
  expect(waits.open()).toEqual([]);
  waits.stop();
});
