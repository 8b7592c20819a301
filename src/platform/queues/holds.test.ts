import { expect, test } from 'vitest';
import type { JobGroup } from '../../core/jobs/queued-jobs.ts';
import { holdsOfOrganization, holdsOfQueue, holdsOfSkill } from './holds.ts';

const queue = 'skill-execution';
const none = { waiting: 0, running: 0, held: 0 };
function group(
  name: string,
  waiting: number,
  running: number,
  priorities = [1],
  limits: [string, number][] = [],
): JobGroup {
  const held = limits.reduce((sum, [, n]) => sum + n, 0);
  const counts = { waiting, running };
  return {
    ...{
      name,
      organizationId: null,
      ...counts,
      later: 0,
      suspended: 0,
      oldest: null,
      nextAt: null,
    },
    byQueue: { [queue]: { ...counts, held }, 'scheduled-jobs': none } as JobGroup['byQueue'],
    priorities: new Set(priorities),
    limits: new Map(limits),
    read: 10,
  };
}
const worker = (taken: number, workers = 1) => ({
  workers,
  slots: 16 * workers,
  kept: workers,
  taken,
});
const places = (of: ReturnType<typeof worker>) => ({ [queue]: of, 'scheduled-jobs': of }) as never;
const messages = (holds: readonly { code: string; message: string }[]) =>
  holds.map(({ code, message }) => `${code}: ${message}`);

test('a queue whose slots are all taken names the organizations that run in them', () => {
  const running = ['a', 'b', 'c', 'd'].map((name, i) => group(name, 0, 10 - i));

  expect(messages(holdsOfQueue(group(queue, 5, 16), worker(32, 2), running))).toEqual([
    'slots_taken: All 32 slots of 2 worker processes are taken. Running: a 10, b 9, c 8, and 1 others.',
  ]);
  expect(holdsOfQueue(group(queue, 5, 16), worker(15), running)).toEqual([]);
  expect(holdsOfQueue(group(queue, 0, 16), worker(16), running)).toEqual([]);
});

test('without a live worker nothing begins', () => {
  const noWorkers = { workers: 0, slots: 0, kept: 0, taken: 0 };

  expect(holdsOfQueue(group(queue, 1, 0), noWorkers, [])).toMatchObject([{ code: 'no_worker' }]);
  const ofOrganization = holdsOfOrganization(group('a', 1, 0), places(noWorkers), () => false, {
    weight: 1,
    isOwn: true,
  });
  expect(ofOrganization).toMatchObject([{ code: 'no_worker' }]);
});

test('an organization with more than its share waits only while others wait', () => {
  const wait = (isAnother: boolean, running: number, weight = 1) =>
    holdsOfOrganization(group('a', 9, running), places(worker(12)), () => isAnother, {
      weight,
      isOwn: false,
    });

  expect(messages(wait(true, 12))).toEqual([
    'organization_share: It runs 12 jobs in 16 slots: more than its share while other organizations wait.',
  ]);
  expect(wait(false, 12)).toEqual([]);
  expect(wait(true, 1)).toEqual([]);
  expect(wait(true, 12, 100)).toEqual([]);
});

test('an organization that runs nothing begins in a kept slot', () => {
  const hold = (taken: number) =>
    holdsOfOrganization(group('a', 1, 0), places(worker(taken)), () => true, {
      weight: 1,
      isOwn: false,
    });

  expect(hold(16)).toEqual([]);
  expect(messages(hold(17))).toEqual(['slots_taken: All 16 slots are taken, 0 by its own runs.']);
});

test('the reader of one organization learns nothing of the slots and of others', () => {
  const texts = [12, 16].map((taken) =>
    messages(
      holdsOfOrganization(group('a', 9, 12), places(worker(taken)), () => true, {
        weight: 1,
        isOwn: true,
      }),
    ),
  );

  const text = 'slots_taken: No slot is free for this organization now: 12 jobs of it run.';
  expect(texts).toEqual([[text], [text]]);
});

test('jobs of several priorities wait for those of the highest', () => {
  const held = holdsOfOrganization(group('a', 9, 16, [2, 0]), places(worker(16)), () => false, {
    weight: 1,
    isOwn: false,
  });
  expect(held.map(({ code }) => code)).toEqual(['slots_taken', 'priority']);
});

test('a skill that no worker has loaded is named', () => {
  expect(messages(holdsOfSkill(group('web/v1.0/x', 1, 0), false))).toEqual([
    'skill_not_loaded: No live worker process has loaded web/v1.0/x.',
  ]);
  expect(holdsOfSkill(group('web/v1.0/x', 1, 0), true)).toEqual([]);
  expect(holdsOfSkill(group('web/v1.0/x', 0, 1), false)).toEqual([]);
});

test('jobs at a limit are held there, and by taken slots only where others of them wait', () => {
  const limits: [string, number][] = [
    ['concurrency of web/v1.0/x', 2],
    ['concurrency of web/v1.0/x per user', 7],
  ];
  const full = places(worker(16));
  const held = (waiting: number) =>
    messages(
      holdsOfOrganization(group('a', waiting, 16, [1], limits), full, () => false, {
        weight: 1,
        isOwn: false,
      }),
    );

  expect(held(9)).toEqual([
    'limit: 7 jobs wait for a place: concurrency of web/v1.0/x per user.',
    'limit: 2 jobs wait for a place: concurrency of web/v1.0/x.',
  ]);
  const paused = group('a', 1, 0, [1], [['pause of organization', 1]]);
  expect(holdsOfSkill(paused, true)).toEqual([
    { code: 'paused', message: '1 job waits for the end of a pause: pause of organization.' },
  ]);
  expect(held(11)[0]).toBe('slots_taken: All 16 slots are taken, 16 by its own runs.');
  expect(held(11)[1]).toContain('limit: At least 7 jobs wait');
  const queued = group(queue, 9, 16, [1], limits);
  expect(holdsOfQueue(queued, worker(16), []).map(({ code }) => code)).toEqual(['limit', 'limit']);
  expect(holdsOfSkill(queued, true).map(({ code }) => code)).toEqual(['limit', 'limit']);
});
