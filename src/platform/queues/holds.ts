/** Why jobs wait: what holds the jobs of a queue, an organization or a skill, in words. Pure. */
import type { JobGroup } from '../../core/jobs/queued-jobs.ts';
import { type JobQueue, jobQueues } from '../../core/jobs/queues.ts';
import { mayBegin } from '../../core/jobs/turns.ts';

export const holdCodes = [
  'no_worker',
  'slots_taken',
  'organization_share',
  'skill_not_loaded',
  'limit',
  'paused',
  'priority',
] as const;

/** One reason for which jobs wait. */
export interface Hold {
  readonly code: (typeof holdCodes)[number];
  /** For people. */
  readonly message: string;
}

/** The slots of the live workers of one queue. */
export interface QueuePlaces {
  readonly workers: number;
  /** By `WORKER_CONCURRENCY` of each. */
  readonly slots: number;
  /** Those beyond them, in which only organizations begin that run nothing. */
  readonly kept: number;
  readonly taken: number;
}

export type Places = Readonly<Record<JobQueue, QueuePlaces>>;

/** Gates that an operator has closed (``). */
const pausePrefix = 'pause of ';
/** Organizations that the reason for taken slots names. */
const namedMax = 3;

const plural = (n: number, noun: string, many = `${noun}s`) => `${n} ${n === 1 ? noun : many}`;
const allSlots = (n: number) => (n === 1 ? 'The one slot' : `All ${n} slots`);
const areTaken = (n: number) => (n === 1 ? 'is taken' : 'are taken');
const noWorker: Hold = {
  code: 'no_worker',
  message: 'No process with the role worker is live, so no job begins.',
};

/** What holds the waiting jobs of a queue; `organizations` are those that run jobs. */
export function holdsOfQueue(
  group: JobGroup,
  places: QueuePlaces,
  organizations: readonly JobGroup[],
): Hold[] {
  const queue = group.name as JobQueue;
  if (group.waiting === 0) return [];
  if (places.workers === 0) return [noWorker];
  const limits = holdsOfLimits(group);
  if (places.taken < places.slots || isHeld(group.byQueue[queue])) return limits;
  const by = organizations
    .filter(({ byQueue }) => byQueue[queue].running > 0)
    .toSorted((a, b) => b.byQueue[queue].running - a.byQueue[queue].running);
  const names = by
    .slice(0, namedMax)
    .map(({ name, byQueue }) => `${name} ${byQueue[queue].running}`);
  const others = by.length > namedMax ? `, and ${by.length - namedMax} others` : '';
  const runs = names.length === 0 ? '' : ` Running: ${names.join(', ')}${others}.`;
  const workers = plural(places.workers, 'worker process', 'worker processes');
  const message = `${allSlots(places.slots)} of ${workers} ${areTaken(places.slots)}.${runs}`;
  return [{ code: 'slots_taken', message }, ...limits];
}

/**
 * What holds the waiting jobs of an organization. `othersWait` by queue: whether jobs of another one wait. The reader of
 * an organization alone (`isOwn`) does not learn what others do.
 */
export function holdsOfOrganization(
  group: JobGroup,
  places: Places,
  othersWait: (queue: JobQueue) => boolean,
  { weight, isOwn }: { readonly weight: number; readonly isOwn: boolean },
): Hold[] {
  const holds: Hold[] = [];
  for (const queue of jobQueues) {
    const { running: own } = group.byQueue[queue];
    if (isHeld(group.byQueue[queue])) continue;
    const { workers, slots, kept, taken } = places[queue];
    if (workers === 0) {
      holds.push(noWorker);
      continue;
    }
    const use = { slots, taken, own, weight, othersWait: othersWait(queue) };
    if (own === 0 ? taken < slots + kept : mayBegin(use)) continue;
    holds.push(isOwn ? noSlotFor(own) : taken < slots ? share(own, slots) : allTaken(own, slots));
  }
  const [first = undefined, ...lower] = [...group.priorities].toSorted((a, b) => a - b);
  if (first !== undefined && lower.length > 0 && holds.length > 0) {
    holds.push({ code: 'priority', message: 'Its jobs of a higher priority begin first.' });
  }
  return [
    ...holds.filter(
      ({ message }, i) => holds.findIndex((other) => other.message === message) === i,
    ),
    ...holdsOfLimits(group),
  ];
}

const noSlotFor = (own: number): Hold => ({
  code: 'slots_taken',
  message: `No slot is free for this organization now: ${plural(own, 'job')} of it ${own === 1 ? 'runs' : 'run'}.`,
});
const allTaken = (own: number, slots: number): Hold => ({
  code: 'slots_taken',
  message: `${allSlots(slots)} ${areTaken(slots)}, ${own} by its own runs.`,
});
const share = (own: number, slots: number): Hold => ({
  code: 'organization_share',
  message: `It runs ${plural(own, 'job')} in ${plural(slots, 'slot')}: more than its share while other organizations wait.`,
});

/** Whether no job of a queue waits for anything but a place at a limit. */
export const isHeld = ({ waiting, held }: JobGroup['byQueue'][JobQueue]) => waiting <= held;

/** The limits at which waiting jobs are held, those that hold the most first. */
export function holdsOfLimits({ limits, waiting, read }: JobGroup): Hold[] {
  const most = [...limits].toSorted(([, a], [, b]) => b - a).slice(0, namedMax);
  return most.map(([limit, n]) => {
    const jobs = `${plural(n, 'job')} ${n === 1 ? 'waits' : 'wait'}`;
    const isPause = limit.startsWith(pausePrefix);
    // Of more jobs than were read, more may be held there.
    const counted = waiting > read ? `At least ${jobs}` : jobs;
    const message = `${counted} ${isPause ? 'for the end of a pause' : 'for a place'}: ${limit}.`;
    return { code: isPause ? 'paused' : 'limit', message };
  });
}

/** What holds the waiting jobs of a skill: that no live worker has loaded it, or its limits. */
export function holdsOfSkill(group: JobGroup, isLoaded: boolean): Hold[] {
  if (group.waiting === 0 || isLoaded) return holdsOfLimits(group);
  const message = `No live worker process has loaded ${group.name}.`;
  return [{ code: 'skill_not_loaded', message }];
}
