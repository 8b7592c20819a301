/**
 * What waits in the queues of jobs: by queue, organization, skill and agent. It reads the kept counts and a bounded number of
 * jobs, however many wait. It has more than 300 lines because all of it is sorted into the same groups.
 */

import { priorities } from '../../../kernel/priority.ts';
import type { Context } from '../../context/context.ts';
import { skillKey } from '../../skills/registry.ts';
import { limitNameOf } from '../gates/gate-subjects.ts';
import { type JobQueue, jobQueues, queueOf } from '../queues.ts';
import { countByKind, countedMax, type QueuedCounts } from './queued-counts.ts';
import {
  type CallingJob,
  type CountedKind,
  countQueues,
  countUnendedKinds,
  findCalling,
  findFirst,
  findOldest,
  findWoken,
  type JobKind,
  type WaitingJob,
} from './queued-jobs.store.ts';
import { type BusyOrganization, findBusyOrganizations } from './queued-organizations.store.ts';

/** Jobs that are read of all organizations together, and of one at least. */
const readMax = 1_000;
const readOfEachMin = 10;
/** Groups that are shown of each kind, those with the most jobs. */
export const groupsMax = 100;
/** Of them those that run the most. */
const busiestMax = 10;
/** Kept counts that are read. */
const keptMax = 30_000;

/** The job of a group that has waited the longest. */
export interface OldestJob {
  readonly id: string;
  readonly since: number;
  readonly priority: (typeof priorities)[number];
}

/** The jobs of a queue, an organization, a skill or an agent. */
export interface JobGroup {
  /** Of a skill `category/version/name`. */
  readonly name: string;
  /** Null where it is of several. */
  readonly organizationId: string | null;
  /** Jobs that wait for a slot. */
  waiting: number;
  /** Whether more than these may wait and begin later. */
  isAtLeast: boolean;
  /** Queued jobs whose time has not come. */
  later: number;
  running: number;
  /** Calls of running jobs that wait for places, by gate, as far as they were read. */
  readonly calls: Map<string, number>;
  /** Runs that wait for something outside the queue. */
  suspended: number;
  oldest: OldestJob | null;
  /** Since when the oldest of those is due that no limit holds, as far as they were read. */
  freeSince: number | null;
  /** When the next of the later ones begins. */
  nextAt: number | null;
  /** Waiting and running ones, by queue; of the waiting ones that were read, those that a limit holds. */
  readonly byQueue: Record<JobQueue, { waiting: number; running: number; held: number }>;
  /** Of the waiting ones that were read, how many each limit holds, by `limitNameOf`. */
  readonly limits: Map<string, number>;
  /** Waiting ones that were read. */
  read: number;
  /** Priorities of the waiting jobs that were read. */
  readonly priorities: Set<number>;
}

export interface QueuedJobs {
  readonly queues: readonly JobGroup[];
  readonly organizations: Groups;
  readonly skills: Groups;
  readonly agents: Groups;
}

/** The groups with the most jobs, and how many there are. */
export interface Groups {
  readonly data: readonly JobGroup[];
  readonly total: number;
}

type GroupKey = keyof QueuedJobs;

/** The jobs of an organization that have not ended, or of all of them where it is null. */
export async function readQueuedJobs(
  { database, clock }: Context,
  organizationId: string | null,
): Promise<QueuedJobs> {
  const { read } = database;
  const now = clock.now();
  const busy = organizationId === null ? await findBusyOrganizations(read, now) : null;
  const ids = organizationId === null ? choose(busy ?? []) : [organizationId];
  const isPart = busy !== null && busy.length > ids.length;
  const ofEach = Math.max(readOfEachMin, Math.ceil(readMax / (ids.length || 1)));
  const [kept, woken, calling, queued, { due, later }, oldest, ofQueues] = await Promise.all([
    countUnendedKinds(read, ids, keptMax),
    findWoken(read, organizationId, now, readMax),
    findCalling(read, organizationId, readMax),
    countByKind(read, ids, now),
    findFirst(read, ids, now, ofEach),
    organizationId === null ? findOldest(read, now, readMax) : null,
    isPart ? countQueues(read, now, countedMax) : null,
  ]);
  const grouping = new Grouping();
  for (const kind of kept.kinds) grouping.count(kind, queued);
  for (const id of ids) grouping.setOrganization(id, queued.ofOrganization(id));
  const isRead = new Set(ids);
  for (const job of woken) if (isRead.has(job.organization_id)) grouping.wake(job);
  for (const job of calling) if (isRead.has(job.organization_id)) grouping.call(job);
  for (const kind of queued.later) grouping.delay(kind, kind.first);
  for (const job of due) grouping.wait(job);
  for (const job of later) grouping.delay(job, job.due_at);
  for (const queue of jobQueues) {
    if (oldest?.[queue] !== undefined) grouping.setOldest(queue, oldest[queue]);
    if (ofQueues !== null) grouping.setQueue(queue, ofQueues[queue]);
  }
  if (kept.isCut) grouping.cut();
  const { queues, organizations, skills, agents } = grouping.groups;
  const ofOrganizations = groupsOf(organizations);
  return {
    queues: jobQueues.map((name) => queues.get(name) ?? newGroup(name, null)),
    organizations: {
      ...ofOrganizations,
      total: isPart ? busy.length : ofOrganizations.total,
    },
    skills: groupsOf(skills),
    agents: groupsOf(agents),
  };
}

/** Those that run the most, then those with the most due jobs, of as many those that have waited the longest. */
function choose(organizations: readonly BusyOrganization[]): string[] {
  const since = ({ first }: BusyOrganization) => first ?? Number.POSITIVE_INFINITY;
  const busiest = organizations
    .toSorted((a, b) => b.running - a.running)
    .slice(0, busiestMax)
    .filter(({ running }) => running > 0);
  const longest = organizations.toSorted(
    (a, b) => b.due - a.due || since(a) - since(b) || b.running - a.running,
  );
  return [...new Set([...busiest, ...longest].map(({ id }) => id))].slice(0, groupsMax);
}
function newGroup(name: string, organizationId: string | null): JobGroup {
  const none = () => ({ waiting: 0, running: 0, held: 0 });
  return {
    name,
    organizationId,
    waiting: 0,
    isAtLeast: false,
    later: 0,
    running: 0,
    suspended: 0,
    oldest: null,
    freeSince: null,
    nextAt: null,
    byQueue: { 'skill-execution': none(), 'scheduled-jobs': none() },
    calls: new Map(),
    limits: new Map(),
    read: 0,
    priorities: new Set(),
  };
}

/** Sorts jobs and counts into their groups. */
class Grouping {
  readonly groups: Readonly<Record<GroupKey, Map<string, JobGroup>>> = {
    queues: new Map(),
    organizations: new Map(),
    skills: new Map(),
    agents: new Map(),
  };

  /** Counts jobs of a kind. */
  count(counted: CountedKind, queued: QueuedCounts): void {
    const { status, n } = counted;
    const { due, later, isAtLeast } =
      status === 'queued' ? queued.of(counted, n) : { due: 0, later: 0, isAtLeast: false };
    for (const group of this.#groupsOf(counted)) {
      const ofQueue = group.byQueue[queueOf(counted.trigger_type)];
      if (status === 'active') {
        group.running += n;
        ofQueue.running += n;
      } else if (status === 'queued') {
        group.waiting += due;
        ofQueue.waiting += due;
        group.later += later;
        group.isAtLeast ||= isAtLeast;
      } else group.suspended += n;
    }
  }

  /** A job whose wait has ended waits for a slot. */
  wake(job: WaitingJob): void {
    for (const group of this.#groupsOf(job)) {
      group.suspended = Math.max(0, group.suspended - 1);
      group.waiting += 1;
      group.byQueue[queueOf(job.trigger_type)].waiting += 1;
    }
    this.wait(job);
  }

  /** A call of a running job waits at a gate. */
  call({ gate, ...kind }: CallingJob): void {
    const limit = limitNameOf(gate);
    for (const { calls } of this.#groupsOf(kind)) calls.set(limit, (calls.get(limit) ?? 0) + 1);
  }

  wait(job: WaitingJob): void {
    for (const group of this.#groupsOf(job)) {
      group.priorities.add(job.priority);
      group.read += 1;
      if (job.held_by !== null) hold(group, job.trigger_type, limitNameOf(job.held_by));
      else group.freeSince = Math.min(group.freeSince ?? job.due_at, job.due_at);
      const isOldest = group.oldest === null || job.due_at < group.oldest.since;
      if (isOldest) group.oldest = oldestOf(job);
    }
  }

  /** One of the kind begins then. */
  delay(kind: JobKind, at: number): void {
    for (const group of this.#groupsOf(kind)) group.nextAt = Math.min(group.nextAt ?? at, at);
  }

  /** An organization has so many jobs at least. */
  setOrganization(id: string, { due, later }: ReturnType<QueuedCounts['ofOrganization']>): void {
    const group = this.groups.organizations.get(id);
    if (group === undefined) return;
    group.waiting = Math.max(group.waiting, due);
    group.later = Math.max(group.later, later);
  }

  /** Some of the kept counts were not read: each group may have more jobs. */
  cut(): void {
    for (const queue of jobQueues) groupOf(this.groups.queues, queue, queue, null);
    for (const groups of Object.values(this.groups)) {
      for (const group of groups.values()) group.isAtLeast = true;
    }
  }

  /** A queue of more organizations than those that were read. */
  setQueue(
    queue: JobQueue,
    { due, later, isCut }: Awaited<ReturnType<typeof countQueues>>[JobQueue],
  ): void {
    const group = groupOf(this.groups.queues, queue, queue, null);
    group.isAtLeast = isCut;
    group.waiting = Math.max(group.waiting, due);
    group.later = Math.max(group.later, later);
  }

  setOldest(queue: JobQueue, job: Parameters<typeof oldestOf>[0]): void {
    const group = groupOf(this.groups.queues, queue, queue, null);
    const isOlder = group.oldest === null || Number(job.due_at) < group.oldest.since;
    if (isOlder) group.oldest = oldestOf(job);
  }

  #groupsOf(kind: JobKind): JobGroup[] {
    const { organization_id, agent_id } = kind;
    const skill = skillKey(kind.skill_category, kind.skill_version, kind.skill_name);
    const { queues, organizations, skills, agents } = this.groups;
    const queue = queueOf(kind.trigger_type);
    return [
      groupOf(queues, queue, queue, null),
      groupOf(organizations, organization_id, organization_id, organization_id),
      groupOf(skills, skill, skill, null),
      groupOf(agents, `${organization_id} ${agent_id}`, agent_id, organization_id),
    ];
  }
}

function groupOf(
  groups: Map<string, JobGroup>,
  key: string,
  name: string,
  organizationId: string | null,
): JobGroup {
  const known = groups.get(key);
  if (known !== undefined) return known;
  const group = newGroup(name, organizationId);
  groups.set(key, group);
  return group;
}

function hold(group: JobGroup, triggerType: WaitingJob['trigger_type'], limit: string): void {
  group.byQueue[queueOf(triggerType)].held += 1;
  group.limits.set(limit, (group.limits.get(limit) ?? 0) + 1);
}

function oldestOf({
  id,
  due_at,
  priority,
}: Pick<WaitingJob, 'id' | 'due_at' | 'priority'>): OldestJob {
  return { id, since: Number(due_at), priority: priorities[priority] ?? 'normal' };
}

/** Those with the most waiting jobs, then those with the most running ones. */
function top(groups: ReadonlyMap<string, JobGroup>): JobGroup[] {
  return [...groups.values()]
    .toSorted(
      (a, b) => b.waiting - a.waiting || b.running - a.running || (a.name < b.name ? -1 : 1),
    )
    .slice(0, groupsMax);
}

const groupsOf = (groups: ReadonlyMap<string, JobGroup>): Groups => ({
  data: top(groups),
  total: groups.size,
});
