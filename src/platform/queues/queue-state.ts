/**
 * The state of the queues: what waits, runs and holds, for the administrator over all organizations, for a key of its own
 * organization alone. It shows a key nothing of the platform's slots and processes, nor of other organizations.
 */
import type { Context } from '../../core/context/context.ts';
import {
  type Groups,
  groupsMax,
  type JobGroup,
  readQueuedJobs,
} from '../../core/jobs/queued-jobs/queued-jobs.ts';
import { type JobQueue, jobQueues } from '../../core/jobs/queues.ts';
import type { Weights } from '../../core/jobs/turns/weights.ts';
import { waitsForProviders } from '../../core/journal/provider-waits.ts';
import {
  limitOfAgent,
  limitOfOrganization,
  pauseOfAgent,
  pauseOfOrganization,
  pauseOfSkill,
} from '../../core/limits/limit-names.ts';
import type { LimitSettings } from '../../core/limits/limit-settings.ts';
import type { LimitScope } from '../../core/skills/definition.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import type { Caller } from '../../kernel/caller.ts';
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import type { ThisProcess } from '../processes/this-process.ts';
import { readQueuedDeliveries } from '../webhooks/queued-deliveries.ts';
import {
  asKnownTo,
  type Hold,
  holdsOfLimits,
  holdsOfOrganization,
  holdsOfOwn,
  holdsOfProviders,
  holdsOfQueue,
  holdsOfSkill,
  isBeyondShare,
  isHeld,
  type Places,
  type QueuePlaces,
} from './holds.ts';

/** What has limits and pauses: of a skill `category/version/name`. */
type Limited = 'skill' | 'organization' | 'agent';
type Limits = {
  readonly limit: number;
  readonly per: LimitScope;
  readonly per_seconds: number | null;
}[];

interface QueueStateParts {
  /** The limits and pauses that operators set. */
  readonly settings: LimitSettings;
  readonly processes: ThisProcess;
  readonly skills: SkillRegistry;
  readonly weights: Weights;
}

export class QueueState {
  readonly #context: Context;
  readonly #parts: QueueStateParts;

  constructor(context: Context, parts: QueueStateParts) {
    this.#context = context;
    this.#parts = parts;
  }

  /** What the organization of a key has in the queues. */
  async ofOrganization({ organizationId, keyId }: Pick<Caller, 'organizationId' | 'keyId'>) {
    const [jobs, { hasWorkers, isLoaded }, ofProviders] = await Promise.all([
      readQueuedJobs(this.#context, organizationId),
      this.#places(),
      this.#providerHolds(organizationId),
    ]);
    const now = this.#context.clock.now();
    const known = (group: JobGroup) => asKnownTo(keyId, group);
    const holdsOf = (group: JobGroup) => holdsOfOwn(known(group), hasWorkers, now);
    const ofSkill = skillHolds(isLoaded);
    const [own] = jobs.organizations.data;
    return {
      as_of: timestamp(now),
      queues: jobs.queues.map((group) => ({
        ...queueOf(group),
        held_by: holdsOf(group).map(shownHold),
      })),
      organizations: this.#groupsOf('organization', jobs.organizations, holdsOf),
      skills: this.#groupsOf('skill', jobs.skills, (group) => ofSkill(known(group))),
      agents: this.#groupsOf('agent', jobs.agents, (group) => holdsOfLimits(known(group))),
      held_by: [...(own === undefined ? [] : holdsOf(own)), ...ofProviders].map(shownHold),
    };
  }

  /** What all organizations have in the queues. */
  async ofAll() {
    const { database, clock } = this.#context;
    const [jobs, { places, isLoaded }, deliveries, ofProviders] = await Promise.all([
      readQueuedJobs(this.#context, null),
      this.#places(),
      readQueuedDeliveries(database.read, clock.now()),
      this.#providerHolds(null),
    ]);
    const { data: organizations } = jobs.organizations;
    const waits = (queue: JobQueue) =>
      organizations.filter(({ byQueue }) => !isHeld(byQueue[queue])).length;
    const waiting = Object.fromEntries(jobQueues.map((queue) => [queue, waits(queue)]));
    const weightOf = (id: string) => this.#parts.weights.byOrganization.get(id) ?? 1;
    const foundBy = (group: JobGroup) => (queue: JobQueue) => ({
      othersWait: (waiting[queue] ?? 0) > (isHeld(group.byQueue[queue]) ? 0 : 1),
      weight: weightOf(group.name),
    });
    const holdsOf = (group: JobGroup) => holdsOfOrganization(group, places, foundBy(group));
    const beyondShare = (queue: JobQueue) =>
      organizations
        .filter((group) => isBeyondShare(group, queue, places[queue], foundBy(group)(queue)))
        .map(({ name }) => name);
    const queues = jobs.queues.map((group) => {
      const name = group.name as JobQueue;
      const holds = holdsOfQueue(group, places[name], organizations, beyondShare(name));
      return { ...queueOf(group), slots: places[name], held_by: holds.map(shownHold) };
    });
    return {
      as_of: timestamp(clock.now()),
      queues: [...queues, webhooksOf(deliveries)],
      organizations: this.#groupsOf('organization', jobs.organizations, holdsOf, weightOf),
      skills: this.#groupsOf('skill', jobs.skills, skillHolds(isLoaded)),
      agents: this.#groupsOf('agent', jobs.agents, holdsOfLimits),
      held_by: [...queues.flatMap(({ held_by }) => held_by), ...ofProviders.map(shownHold)],
    };
  }

  #groupsOf(
    kind: Limited,
    { data, total }: Groups,
    holdsOf: (group: JobGroup) => Hold[],
    weightOf: (name: string) => number | null = () => null,
  ) {
    const shown = data.map((group) => ({
      name: group.name,
      organization_id: group.organizationId,
      weight: weightOf(group.name),
      ...this.#limitsOf(kind, group),
      ...countsOf(group),
      held_by: holdsOf(group).map(shownHold),
    }));
    return { data: shown, total, limit: groupsMax };
  }

  /** How many runs of a group go on at a time or start within a time, and whether it is paused. */
  #limitsOf(
    kind: Limited,
    { name, organizationId }: JobGroup,
  ): { limits: Limits; paused: boolean } {
    const { settings, skills } = this.#parts;
    if (kind === 'skill') {
      const limits = (skills.limits.get(name) ?? [])
        .filter(({ afterRefusal }) => afterRefusal === undefined)
        .map(({ limit, per, perSeconds = null }) => ({ limit, per, per_seconds: perSeconds }));
      return { limits, paused: settings.byName.has(pauseOfSkill(name)) };
    }
    const isAgent = kind === 'agent';
    const id = organizationId ?? '';
    const limit = settings.byName.get(isAgent ? limitOfAgent(id, name) : limitOfOrganization(id));
    const pause = isAgent ? pauseOfAgent(id, name) : pauseOfOrganization(id);
    return {
      limits: limit === undefined ? [] : [{ limit, per: kind, per_seconds: null }],
      paused: settings.byName.has(pause),
    };
  }

  async #providerHolds(organizationId: string | null): Promise<Hold[]> {
    return holdsOfProviders(await waitsForProviders(this.#context.database.read, organizationId));
  }

  /** The slots of all live workers, and what they have loaded. */
  async #places() {
    const { processes, skills } = this.#parts;
    const workers = await processes.workers();
    const loaded = new Set(workers.flatMap((worker) => worker.skills));
    const placesOf = (queue: JobQueue): QueuePlaces => {
      const recorded = workers.flatMap(({ slots }) => slots[queue] ?? []);
      return {
        workers: workers.length,
        slots: sum(recorded.map(({ slots }) => slots)),
        kept: sum(recorded.map(({ kept }) => kept)),
        taken: sum(recorded.map(({ taken }) => taken)),
      };
    };
    return {
      hasWorkers: workers.length > 0,
      places: Object.fromEntries(jobQueues.map((queue) => [queue, placesOf(queue)])) as Places,
      // Every process can call a service outside.
      isLoaded: (skill: string) => loaded.has(skill) || skills.sourceOf(skill) !== null,
    };
  }
}

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);

const skillHolds = (isLoaded: (skill: string) => boolean) => (group: JobGroup) =>
  holdsOfSkill(group, isLoaded(group.name));

function countsOf(group: JobGroup) {
  const { waiting, later, isAtLeast, running, suspended, oldest, nextAt } = group;
  return {
    waiting,
    later,
    at_least: isAtLeast,
    running,
    suspended,
    oldest:
      oldest === null
        ? null
        : { job_id: oldest.id, since: timestamp(oldest.since), priority: oldest.priority },
    next_at: timestampOrNull(nextAt),
  };
}

const shownHold = ({ code, message, subject }: Hold) => ({
  code,
  message,
  subject:
    subject === null
      ? null
      : { type: subject.type, id: subject.id, organization_id: subject.organizationId },
});

const queueOf = (group: JobGroup) => ({ queue: group.name as JobQueue, ...countsOf(group) });

function webhooksOf({
  due,
  later,
  isAtLeast,
  running,
  oldest,
}: Awaited<ReturnType<typeof readQueuedDeliveries>>) {
  return {
    queue: 'webhooks' as const,
    waiting: due,
    later,
    at_least: isAtLeast,
    running,
    suspended: 0,
    oldest:
      oldest === undefined ? null : { job_id: null, since: timestamp(oldest), priority: null },
    next_at: null,
    slots: null,
    held_by: [],
  };
}
