/** Why jobs wait: what holds the jobs of a queue, an organization or a skill, in words. Pure. */
import {
  type GateSubject,
  limitInWords,
  subjectOf,
  withoutOtherKeys,
} from '../../core/jobs/gates/gate-subjects.ts';
import {
  behindInPlural,
  isOfConversation,
} from '../../core/jobs/in-conversation/conversation-gates.ts';
import type { JobGroup } from '../../core/jobs/queued-jobs/queued-jobs.ts';
import { type JobQueue, jobQueues } from '../../core/jobs/queues.ts';
import { hasFreeShare } from '../../core/jobs/turns/turns.ts';

export const holdCodes = [
  'no_worker',
  'slots_taken',
  'organization_share',
  'skill_not_loaded',
  'limit',
  'paused',
  'priority',
  'provider',
] as const;

/** One reason for which jobs wait. */
export interface Hold {
  readonly code: (typeof holdCodes)[number];
  /** For people. */
  readonly message: string;
  /** What has the limit or the pause, is not loaded, or has the slots. */
  readonly subject: GateSubject | null;
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

/** Gates that an operator has closed. */
const pausePrefix = 'pause of ';
/** Organizations that a reason names. */
const namedMax = 3;
/** A job that is due begins within some milliseconds where nothing holds it. */
const beginsWithinMs = 1_000;

const plural = (n: number, noun: string, many = `${noun}s`) => `${n} ${n === 1 ? noun : many}`;
const allSlots = (n: number) => (n === 1 ? 'The one slot' : `All ${n} slots`);
const areTaken = (n: number) => (n === 1 ? 'is taken' : 'are taken');
const noWorker: Hold = {
  code: 'no_worker',
  message: 'No process with the role worker is live, so no job begins.',
  subject: null,
};

const organizationOf = (id: string | undefined): GateSubject | null =>
  id === undefined ? null : { type: 'organization', id, organizationId: id };

/** The first of the names, and how many there are beside them. */
function listed(names: readonly string[]): string {
  const others = names.length - namedMax;
  const first = names.slice(0, namedMax).join(', ');
  return others > 0 ? `${first}, and ${plural(others, 'other')}` : first;
}

/**
 * What holds the waiting jobs of a queue; `organizations` are those that run jobs, `beyondShare` names those whose jobs wait
 * because they have their share.
 */
export function holdsOfQueue(
  group: JobGroup,
  places: QueuePlaces,
  organizations: readonly JobGroup[],
  beyondShare: readonly string[],
): Hold[] {
  const queue = group.name as JobQueue;
  if (group.waiting === 0) return [];
  if (places.workers === 0) return [noWorker];
  const limits = holdsOfLimits(group);
  if (isHeld(group.byQueue[queue])) return limits;
  if (places.taken < places.slots) {
    if (beyondShare.length === 0) return limits;
    const slots = plural(places.slots, 'slot');
    const message = `While other organizations wait, these begin nothing beyond their share of ${slots}: ${listed(beyondShare)}.`;
    return [
      { code: 'organization_share', message, subject: organizationOf(beyondShare[0]) },
      ...limits,
    ];
  }
  const busy = organizations
    .filter(({ byQueue }) => byQueue[queue].running > 0)
    .toSorted((a, b) => b.byQueue[queue].running - a.byQueue[queue].running);
  const names = busy.map(({ name, byQueue }) => `${name} ${byQueue[queue].running}`);
  const runs = names.length === 0 ? '' : ` Under way: ${listed(names)}.`;
  const workers = plural(places.workers, 'worker process', 'worker processes');
  const message = `${allSlots(places.slots)} of ${workers} ${areTaken(places.slots)}.${runs}`;
  return [{ code: 'slots_taken', message, subject: organizationOf(busy[0]?.name) }, ...limits];
}

/** What an organization finds in a queue. */
export interface FoundPlaces {
  /** Whether jobs of another one wait. */
  readonly othersWait: boolean;
  readonly weight: number;
}

/** Whether taken slots or its share hold the jobs of an organization that wait in a queue. */
function holdOfSlots(
  { byQueue }: JobGroup,
  queue: JobQueue,
  places: QueuePlaces,
  { othersWait, weight }: FoundPlaces,
): Hold | null {
  if (isHeld(byQueue[queue])) return null;
  const { workers, slots, kept, taken } = places;
  if (workers === 0) return noWorker;
  // Runs that wait for a model are under way without a slot.
  const own = Math.min(byQueue[queue].running, taken);
  const use = { slots, taken, own, weight, othersWait };
  if (own === 0 ? taken < slots + kept : hasFreeShare(use)) return null;
  return taken < slots ? share(own, slots) : allTaken(own, slots);
}

/** Whether an organization has its share of a queue, so that jobs of it wait. */
export function isBeyondShare(...found: Parameters<typeof holdOfSlots>): boolean {
  return holdOfSlots(...found)?.code === 'organization_share';
}

/** What holds the waiting jobs of an organization, for the administrator. */
export function holdsOfOrganization(
  group: JobGroup,
  places: Places,
  foundIn: (queue: JobQueue) => FoundPlaces,
): Hold[] {
  const holds = jobQueues
    .map((queue) => holdOfSlots(group, queue, places[queue], foundIn(queue)))
    .filter((hold) => hold !== null);
  const isFirst = ({ message }: Hold, i: number) =>
    holds.findIndex((other) => other.message === message) === i;
  return withLimits(group, holds.filter(isFirst));
}

/**
 * What holds the waiting jobs of an organization, for a key of it: known by these jobs alone. Slots that others take, and
 * whether others wait, have no part in it.
 */
export function holdsOfOwn(group: JobGroup, hasWorkers: boolean, now: number): Hold[] {
  const waits = jobQueues.some((queue) => !isHeld(group.byQueue[queue]));
  if (waits && !hasWorkers) return withLimits(group, [noWorker]);
  const isLong = group.freeSince !== null && now - group.freeSince > beginsWithinMs;
  return withLimits(group, waits && isLong ? [waitForTurn(group.running)] : []);
}

/** With what follows from these: jobs of a higher priority go first; and with the limits. */
function withLimits(group: JobGroup, holds: readonly Hold[]): Hold[] {
  const isByPriority = group.priorities.size > 1 && holds.length > 0;
  return [...holds, ...(isByPriority ? [higherFirst] : []), ...holdsOfLimits(group)];
}

const higherFirst: Hold = {
  code: 'priority',
  message: 'Its jobs of a higher priority begin first.',
  subject: null,
};
const waitForTurn = (running: number): Hold => ({
  code: 'slots_taken',
  message: `Jobs of this organization wait for their turn: ${running === 0 ? 'none' : running} of its runs ${running === 1 ? 'is' : 'are'} under way.`,
  subject: null,
});
const allTaken = (own: number, slots: number): Hold => ({
  code: 'slots_taken',
  message: `${allSlots(slots)} ${areTaken(slots)}, ${own === 0 ? 'none' : own} by its own runs.`,
  subject: null,
});
const share = (own: number, slots: number): Hold => ({
  code: 'organization_share',
  message: `${plural(own, 'run')} of it ${own === 1 ? 'is' : 'are'} under way in ${plural(slots, 'slot')}: its share, or more, while other organizations wait.`,
  subject: null,
});

/** Whether no job of a queue waits for anything but a place at a limit. */
export const isHeld = ({ waiting, held }: JobGroup['byQueue'][JobQueue]) => waiting <= held;

/** The jobs as a key knows them: ids of other keys are left out of their limits. */
export function asKnownTo(keyId: string, group: JobGroup): JobGroup {
  const known = (gates: ReadonlyMap<string, number>) => {
    const counted = new Map<string, number>();
    for (const [gate, n] of gates) {
      const name = withoutOtherKeys(gate, keyId);
      counted.set(name, (counted.get(name) ?? 0) + n);
    }
    return counted;
  };
  return { ...group, limits: known(group.limits), calls: known(group.calls) };
}

/** Runs that wait for providers of models, without a slot. */
export function holdsOfProviders(
  waits: readonly { readonly inWords: string; readonly runs: number }[],
): Hold[] {
  return waits.map(({ inWords, runs }) => {
    const message = `${plural(runs, 'run')} ${runs === 1 ? 'waits' : 'wait'} for ${inWords}.`;
    return { code: 'provider', message, subject: null };
  });
}

/** The limits at which waiting jobs are held, and calls of running ones; those that hold the most first. */
export function holdsOfLimits({ limits, calls, waiting, read }: JobGroup): Hold[] {
  const ofJobs = mostOf(limits).map(([limit, n]) => {
    const jobs = `${plural(n, 'job')} ${n === 1 ? 'waits' : 'wait'}`;
    const isPause = limit.startsWith('pause ');
    // Of more jobs than were read, more may be held there.
    const counted = waiting > read ? `At least ${jobs}` : jobs;
    if (isOfConversation(limit)) {
      const behind = n === 1 ? limit : behindInPlural(limit);
      return holdAt(limit, `${counted} for ${behind}.`);
    }
    const message = `${counted} ${isPause ? 'for the end of a pause' : 'for a place'}: ${limitInWords(limit)}.`;
    return holdAt(limit, message);
  });
  const ofCalls = mostOf(calls).map(([limit, n]) => {
    const waits = `${plural(n, 'call')} of running jobs ${n === 1 ? 'waits' : 'wait'}`;
    return holdAt(limit, `${waits} for a place: ${limitInWords(limit)}.`);
  });
  return [...ofJobs, ...ofCalls];
}

const mostOf = (gates: ReadonlyMap<string, number>) =>
  [...gates].toSorted(([, a], [, b]) => b - a).slice(0, namedMax);

function holdAt(gate: string, message: string): Hold {
  const code = gate.startsWith(pausePrefix) ? 'paused' : 'limit';
  return { code, message, subject: subjectOf(gate) };
}

/**
 * What holds the queued jobs of a skill: that no live worker has loaded it, or its limits. A worker without the skill puts its
 * jobs off, so these count as later ones.
 */
export function holdsOfSkill(group: JobGroup, isLoaded: boolean): Hold[] {
  if (group.waiting + group.later === 0 || isLoaded) return holdsOfLimits(group);
  const message = `No live worker process has loaded ${group.name}.`;
  const subject = { type: 'skill', id: group.name, organizationId: null } as const;
  return [{ code: 'skill_not_loaded', message, subject }];
}
