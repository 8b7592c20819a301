import { expect, test } from 'vitest';
import type { JobGroup } from '../../core/jobs/queued-jobs/queued-jobs.ts';
import {
  asKnownTo,
  type FoundPlaces,
  holdsOfLimits,
  holdsOfOrganization,
  holdsOfOwn,
  holdsOfQueue,
  holdsOfSkill,
  isBeyondShare,
} from './holds.ts';

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
      isAtLeast: false,
      later: 0,
      suspended: 0,
      oldest: null,
      freeSince: null,
      nextAt: null,
    },
    byQueue: { [queue]: { ...counts, held }, 'scheduled-jobs': none } as JobGroup['byQueue'],
    priorities: new Set(priorities),
    limits: new Map(limits),
    calls: new Map(),
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
const found = (fields: Partial<FoundPlaces> = {}) => ({ othersWait: false, weight: 1, ...fields });
const messages = (holds: readonly { code: string; message: string }[]) =>
  holds.map(({ code, message }) => `${code}: ${message}`);

test('a queue whose slots are all taken names the organizations that run in them', () => {
  const running = ['a', 'b', 'c', 'd'].map((name, i) => group(name, 0, 10 - i));

  expect(messages(holdsOfQueue(group(queue, 5, 16), worker(32, 2), running, []))).toEqual([
    'slots_taken: All 32 slots of 2 worker processes are taken. Under way: a 10, b 9, c 8, and 1 other.',
  ]);
  expect(holdsOfQueue(group(queue, 5, 16), worker(15), running, [])).toEqual([]);
  expect(holdsOfQueue(group(queue, 0, 16), worker(16), running, [])).toEqual([]);
  const one = { workers: 1, slots: 1, kept: 0, taken: 1 };
  expect(messages(holdsOfQueue(group(queue, 1, 1), one, [], []))).toEqual([
    'slots_taken: The one slot of 1 worker process is taken.',
  ]);
});

test('without a live worker nothing begins', () => {
  const noWorkers = { workers: 0, slots: 0, kept: 0, taken: 0 };

  expect(holdsOfQueue(group(queue, 1, 0), noWorkers, [], [])).toMatchObject([
    { code: 'no_worker' },
  ]);
  const ofOrganization = holdsOfOrganization(group('a', 1, 0), places(noWorkers), () => found());
  expect(ofOrganization).toMatchObject([{ code: 'no_worker' }]);
  expect(holdsOfOwn(group('a', 1, 0), false, 0)).toMatchObject([{ code: 'no_worker' }]);
});

test('an organization with more than its share waits only while others wait', () => {
  const wait = (othersWait: boolean, running: number, weight = 1) =>
    holdsOfOrganization(group('a', 9, running), places(worker(12)), () => ({ othersWait, weight }));

  expect(messages(wait(true, 12))).toEqual([
    'organization_share: 12 runs of it are under way in 16 slots: its share, or more, while other organizations wait.',
  ]);
  expect(wait(false, 12)).toEqual([]);
  expect(wait(true, 1)).toEqual([]);
  expect(wait(true, 12, 100)).toEqual([]);
});

test('runs that wait for a model without a slot are not counted against the share', () => {
  const texts = [12, 17].map((taken) =>
    messages(
      holdsOfOrganization(group('a', 9, 100), places(worker(taken)), () =>
        found({ othersWait: true }),
      ),
    ),
  );

  expect(texts).toEqual([
    [
      'organization_share: 12 runs of it are under way in 16 slots: its share, or more, while other organizations wait.',
    ],
    ['slots_taken: All 16 slots are taken, 17 by its own runs.'],
  ]);
});

test('a queue with free slots names the organizations that wait for their share', () => {
  const [a, b] = [group('a', 9, 12), group('b', 9, 1)];
  const names = [a, b]
    .filter((one) => isBeyondShare(one, queue, worker(12), found({ othersWait: true })))
    .map(({ name }) => name);
  const hold = (taken: number) =>
    messages(holdsOfQueue(group(queue, 18, 13), worker(taken), [], names));

  expect(hold(12)).toEqual([
    'organization_share: While other organizations wait, these begin nothing beyond their share of 16 slots: a.',
  ]);
  expect(hold(16)).toEqual(['slots_taken: All 16 slots of 1 worker process are taken.']);
});

test('an organization that runs nothing begins in a kept slot', () => {
  const hold = (taken: number) =>
    holdsOfOrganization(group('a', 1, 0), places(worker(taken)), () => found({ othersWait: true }));

  expect(hold(16)).toEqual([]);
  expect(messages(hold(17))).toEqual([
    'slots_taken: All 16 slots are taken, none by its own runs.',
  ]);
});

test('a key finds its jobs held once the oldest that no limit holds has been due for a second', () => {
  const now = 10_000;
  const holds = (since: number | null, running = 12, limits: [string, number][] = []) =>
    messages(holdsOfOwn({ ...group('a', 9, running, [1], limits), freeSince: since }, true, now));

  const wait = 'slots_taken: Jobs of this organization wait for their turn:';
  expect(holds(now - 1_001)).toEqual([`${wait} 12 of its runs are under way.`]);
  expect(holds(now - 1_001, 1)).toEqual([`${wait} 1 of its runs is under way.`]);
  expect(holds(now - 1_001, 0)).toEqual([`${wait} none of its runs are under way.`]);
  expect(holds(now - 1_000)).toEqual([]);
  expect(holds(null)).toEqual([]);
  const ofLimit = holds(now - 1_001, 12, [['concurrency of web/v1.0/x', 9]]);
  expect(ofLimit).toEqual(['limit: 9 jobs wait for a place: concurrency of web/v1.0/x.']);
});

test('jobs that wait in conversations wait for others, one or several', () => {
  const behind = 'the job before it in its conversation';
  const held = (n: number, name: string) =>
    messages(holdsOfOwn(group('a', n, 0, [1], [[name, n]]), true, 0));

  expect(held(1, behind)).toEqual([`limit: 1 job waits for ${behind}.`]);
  const several = 'the jobs before them in their conversations, which they steer';
  expect(held(5, `${behind}, which it steers`)).toEqual([`limit: 5 jobs wait for ${several}.`]);
});

test('jobs of several priorities wait for those of the highest', () => {
  const held = holdsOfOrganization(group('a', 9, 16, [2, 0]), places(worker(16)), () => found());
  expect(held.map(({ code }) => code)).toEqual(['slots_taken', 'priority']);
});

test('a skill that no worker has loaded is named', () => {
  expect(messages(holdsOfSkill(group('web/v1.0/x', 1, 0), false))).toEqual([
    'skill_not_loaded: No live worker process has loaded web/v1.0/x.',
  ]);
  expect(holdsOfSkill(group('web/v1.0/x', 1, 0), true)).toEqual([]);
  expect(holdsOfSkill(group('web/v1.0/x', 0, 1), false)).toEqual([]);
  // A worker without it puts the job off.
  const putOff = { ...group('web/v1.0/x', 0, 0), later: 1 };
  expect(holdsOfSkill(putOff, false)).toMatchObject([{ code: 'skill_not_loaded' }]);
});

test('jobs at a limit are held there, and by taken slots only where others of them wait', () => {
  const limits: [string, number][] = [
    ['concurrency of web/v1.0/x', 2],
    ['concurrency of web/v1.0/x per user', 7],
  ];
  const full = places(worker(16));
  const held = (waiting: number) =>
    messages(holdsOfOrganization(group('a', waiting, 16, [1], limits), full, () => found()));

  expect(held(9)).toEqual([
    'limit: 7 jobs wait for a place: concurrency of web/v1.0/x per user.',
    'limit: 2 jobs wait for a place: concurrency of web/v1.0/x.',
  ]);
  const paused = group('a', 1, 0, [1], [['pause of organization = a', 1]]);
  expect(holdsOfSkill(paused, true)).toEqual([
    {
      code: 'paused',
      message: '1 job waits for the end of a pause: pause of organization a.',
      subject: { type: 'organization', id: 'a', organizationId: 'a' },
    },
  ]);
  expect(held(11)[0]).toBe('slots_taken: All 16 slots are taken, 16 by its own runs.');
  expect(held(11)[1]).toContain('limit: At least 7 jobs wait');
  const queued = group(queue, 9, 16, [1], limits);
  expect(holdsOfQueue(queued, worker(16), [], []).map(({ code }) => code)).toEqual([
    'limit',
    'limit',
  ]);
  expect(holdsOfSkill(queued, true).map(({ code }) => code)).toEqual(['limit', 'limit']);
});

test('a limit at which calls of running jobs wait holds them, also where no job waits', () => {
  const calls = new Map([
    ['concurrency of web/v1.0/x', 2],
    ['pause of web/v1.0/y', 1],
  ]);

  const holds = holdsOfLimits({ ...group('a', 0, 3), calls });

  expect(holds.map(({ code, message }) => [code, message.split(':', 1)[0]])).toEqual([
    ['limit', '2 calls of running jobs wait for a place'],
    ['paused', '1 call of running jobs waits for a place'],
  ]);
});

test('a key learns the id of no other key', () => {
  const limitOf = (id: string) => `max_concurrency of API key = ${id}`;
  const jobs = group(
    'acme',
    6,
    0,
    [1],
    [
      [limitOf('k1'), 3],
      [limitOf('k2'), 1],
      [limitOf('k3'), 1],
    ],
  );

  const holds = holdsOfLimits(asKnownTo('k1', jobs));

  expect(holds.map(({ message, subject }) => [message, subject?.id])).toEqual([
    [expect.stringContaining('3 jobs wait for a place: max_concurrency of API key k1.'), 'k1'],
    [expect.stringContaining('2 jobs wait for a place: max_concurrency of API key.'), undefined],
  ]);
});
