/**
 * What waits in the queues of jobs: by queue, organization, skill and agent. It reads the kept counts and a bounded number of
 * jobs, however many wait.
 */

import { priorities } from '../../kernel/priority.ts';
import type { Context } from '../context/context.ts';
import { skillKey } from '../skills/registry.ts';
import { waitingFor } from './gates.ts';
import {
  type CountedKind,
  countLater,
  countUnendedKinds,
  findEnds,
  findQueued,
  findWoken,
  laterMax,
  type WaitingJob,
} from './queued-jobs.store.ts';
import { type JobQueue, jobQueues, queueOf } from './queues.ts';

/** Jobs that are read of all organizations together, and of one at least. */
const readMax = 1_000;
const readOfEachMin = 10;
/** Groups that are shown of each kind, those with the most jobs. */
export const groupsMax = 100;
/** Jobs that begin later, of each of many organizations. */
const laterOfEachMax = 1_000;

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
  /** Queued jobs whose time has not come. */
  later: number;
  running: number;
  /** Runs that wait for something outside the queue. */
  suspended: number;
  oldest: OldestJob | null;
  /** Since when the oldest of those is due that no limit holds, as far as they were read. */
  freeSince: number | null;
  /** When the next of the later ones begins. */
  nextAt: number | null;
  /** Waiting and running ones, by queue; of the waiting ones that were read, those that a limit holds. */
  readonly byQueue: Record<JobQueue, { waiting: number; running: number; held: number }>;
  /** Of the waiting ones that were read, how many each limit holds, in words. */
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
  const [kinds, woken] = await Promise.all([
    countUnendedKinds(read, organizationId),
    findWoken(read, organizationId, now, readMax),
  ]);
  const grouping = new Grouping();
  for (const kind of kinds) grouping.count(kind);
  const ids = top(grouping.groups.organizations).map(({ name }) => name);
  const isOne = organizationId !== null;
  const ofEach = isOne ? readMax : Math.max(readOfEachMin, Math.ceil(readMax / (ids.length || 1)));
  const [{ due, later }, laterOf, ends] = await Promise.all([
    findQueued(read, ids, now, ofEach),
    countLater(read, ids, now, isOne ? laterMax : laterOfEachMax),
    isOne ? null : findEnds(read, now),
  ]);
  for (const job of woken) grouping.wake(job);
  for (const job of due) grouping.wait(job);
  for (const job of later) grouping.delay(job);
  for (const [id, n] of laterOf) grouping.setLater('organizations', id, n);
  for (const queue of ends === null ? [] : jobQueues) {
    const { oldest, later: n } = ends?.[queue] ?? { oldest: undefined, later: 0 };
    grouping.setLater('queues', queue, n);
    if (oldest !== undefined) grouping.setOldest('queues', queue, oldest);
  }
  const { queues, organizations, skills, agents } = grouping.groups;
  return {
    queues: jobQueues.map((name) => queues.get(name) ?? newGroup(name, null)),
    organizations: groupsOf(organizations),
    skills: groupsOf(skills),
    agents: groupsOf(agents),
  };
}

function newGroup(name: string, organizationId: string | null): JobGroup {
  const none = () => ({ waiting: 0, running: 0, held: 0 });
  return {
    name,
    organizationId,
    waiting: 0,
    later: 0,
    running: 0,
    suspended: 0,
    oldest: null,
    freeSince: null,
    nextAt: null,
    byQueue: { 'skill-execution': none(), 'scheduled-jobs': none() },
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

  /** Counts jobs of a kind; queued ones as waiting, until they are known to begin later. */
  count(counted: CountedKind): void {
    const queue = queueOf(counted.trigger_type);
    for (const group of this.#groupsOf(counted)) {
      if (counted.status === 'active') {
        group.running += counted.n;
        group.byQueue[queue].running += counted.n;
      } else if (counted.status === 'queued') {
        group.waiting += counted.n;
        group.byQueue[queue].waiting += counted.n;
      } else group.suspended += counted.n;
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

  wait(job: WaitingJob): void {
    for (const group of this.#groupsOf(job)) {
      group.priorities.add(job.priority);
      group.read += 1;
      if (job.held_by !== null) hold(group, job.trigger_type, waitingFor(job.held_by));
      else group.freeSince = Math.min(group.freeSince ?? job.due_at, job.due_at);
      const isOldest = group.oldest === null || job.due_at < group.oldest.since;
      if (isOldest) group.oldest = oldestOf(job);
    }
  }

  delay(job: WaitingJob): void {
    for (const group of this.#groupsOf(job)) {
      group.later += 1;
      group.nextAt ??= job.due_at;
      group.waiting = Math.max(0, group.waiting - 1);
      const ofQueue = group.byQueue[queueOf(job.trigger_type)];
      ofQueue.waiting = Math.max(0, ofQueue.waiting - 1);
    }
  }

  /** More of them than were read begin later. */
  setLater(key: GroupKey, name: string, later: number): void {
    const group = this.groups[key].get(name);
    if (group === undefined || later <= group.later) return;
    group.waiting = Math.max(0, group.waiting - (later - group.later));
    group.later = later;
  }

  setOldest(key: GroupKey, name: string, job: Parameters<typeof oldestOf>[0]): void {
    const group = this.groups[key].get(name);
    const isOlder = group?.oldest == null || Number(job.due_at) < group.oldest.since;
    if (group !== undefined && isOlder) group.oldest = oldestOf(job);
  }

  #groupsOf(kind: Omit<WaitingJob, 'id' | 'priority' | 'due_at' | 'held_by'>): JobGroup[] {
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
