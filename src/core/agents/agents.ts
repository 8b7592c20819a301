/**
 * Agents: creating, changing, pausing and deleting them. A change of status appends its event in the same
 * transaction. It has more than 300 lines because the verbs share what they check of an agent.
 */
import { randomBytes } from 'node:crypto';
import { type Cap, requireRoom } from '../../adapters/database/caps.ts';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { Expressions } from '../../adapters/sandbox/expressions.ts';
import type { Clock } from '../../kernel/clock.ts';
import { invalidIn, notFound, PlatformError } from '../../kernel/errors.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { ShortCache } from '../../kernel/short-cache.ts';
import type { Context } from '../context/context.ts';
import { appendEvents } from '../events/outbox.ts';
import { limitOfAgent } from '../limits/limit-names.ts';
import type { LimitSettings } from '../limits/limit-settings.ts';
import type { AgentChanges } from './agent-changes.ts';
import {
  type AgentFields,
  agentBody,
  calledModel,
  columnsOf,
  emptyAgent,
  type ProfileSetting,
  profileOf,
  variablesOf,
} from './agent-rows.ts';
import { versionAfter } from './agent-versions.ts';
import {
  type AgentRow,
  deleteAgent,
  findAgent,
  insertAgent,
  type LimitedAgent,
  listAgents,
  listCalledAgents,
  lockAgent,
  updateAgent,
} from './agents.store.ts';
import { requireCallable } from './called-agents.ts';
import {
  type KnownSkills,
  missingScopes,
  requireApprovals,
  requireCovered,
  type Writer,
} from './covered.ts';
import { requireGuards } from './guards.ts';
import { requireVariables, warningsOf } from './instruction-values.ts';
import { requireTaken } from './model-settings.ts';
import {
  clockSkewMs,
  createAfterRemoval,
  recordRemoval,
  requireReusable,
} from './removed-agents.ts';
import { requireRules } from './tool-rules.ts';

/** The agent of requests that name none (docs/decisions/agents.md). */
export const defaultAgentId = 'default';

/** How long an agent's state is cached. */
const cacheMs = 1_000;
/** States in the cache; the oldest is evicted first. */
const cachedMax = 10_000;

/** What a slice does about an agent, in the transaction that creates or deletes it. */
export interface AgentDependent {
  /** Resources that prevent the deletion of an agent that they name (docs/decisions/agents.md). */
  readonly blocker?: {
    /** In the plural, such as `triggers`. */
    readonly noun: string;
    names(tx: Transaction, organizationId: string, agentId: string): Promise<boolean>;
  };
  /** Hides the remaining data of a deleted agent with the same id. */
  begin?(tx: Transaction, organizationId: string, agentId: string): Promise<void>;
  /** Deletes the data that belongs to the agent; throws `403` where the writer may not delete them. */
  remove?(tx: Transaction, organizationId: string, agentId: string, writer: Writer): Promise<void>;
}

/** What requests to an agent depend on. */
export type AgentState = Pick<AgentRow, 'status' | 'priority'>;

/** The agents of all organizations. */
export class Agents {
  readonly #database: Database;
  readonly #clock: Clock;
  /** The limits and pauses that operators set. */
  readonly limits: LimitSettings;
  readonly #skills: KnownSkills;
  readonly #dependents: readonly AgentDependent[];
  readonly #changes: AgentChanges;
  readonly #expressions: Expressions;
  readonly #config: Context['config'];
  readonly #cap: Cap;
  /** By `keyOf`. */
  readonly #states: ShortCache<AgentState>;

  /** `dependents` act in their order. */
  constructor(
    { config, database, clock }: Context,
    slices: {
      readonly skills: KnownSkills;
      readonly limits: LimitSettings;
      readonly dependents: readonly AgentDependent[];
      readonly changes: AgentChanges;
      /** What evaluates the conditions of rules. */
      readonly expressions: Expressions;
    },
  ) {
    this.#database = database;
    this.#clock = clock;
    this.#skills = slices.skills;
    this.limits = slices.limits;
    this.#dependents = slices.dependents;
    this.#changes = slices.changes;
    this.#expressions = slices.expressions;
    this.#config = config;
    this.#cap = { table: 'agents', things: 'agents', max: config.agentsMax };
    this.#states = new ShortCache(clock, cacheMs, cachedMax);
  }

  /** The agent, or `404 not_found`. */
  async find(organizationId: string, id: string) {
    return found(await findAgent(this.#database.read, keyOfAgent(organizationId, id)));
  }

  /**
   * The agent, if it existed at `beganAt`, else `404 not_found`: a newer agent with the id of a deleted one
   * must not see the data of the deleted one. A creation time in the future means that the clock was set
   * back since; such an agent is accepted, because its age is unknown.
   */
  async findSince(organizationId: string, id: string, beganAt: number) {
    const row = await this.find(organizationId, id);
    return found(isNewer(row, beganAt, this.#clock.now()) ? undefined : row);
  }

  /** The agents that an agent may give tasks to now, without those that are paused. */
  async calledBy({ organization_id, agents }: AgentRow) {
    const ids = JSON.parse(agents) as string[];
    const called = await listCalledAgents(this.#database.read, organization_id, ids);
    return called.filter(({ status }) => status === 'active');
  }

  /** Whether an agent takes work and with which priority, or `404 not_found`. A promise only when the cache has none. */
  stateOf(organizationId: string, id: string): AgentState | Promise<AgentState> {
    const key = keyOf(organizationId, id);
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    return this.#states.read(key, async () => {
      const { status, priority, max_concurrency: max } = await this.find(organizationId, id);
      // Another process may have created it with a limit just now.
      if (max !== null) await this.limits.follow(limitOfAgent(organizationId, id), max);
      return { status, priority };
    });
  }

  /**
   * What a run that was accepted at `acceptedAt` may do with the memory of its agent. Changes of a deleted agent are
   * dropped when the run completes. Rejects if a newer agent has its id, whose memories are not the run's.
   */
  async memoryOf(
    organizationId: string,
    id: string,
    acceptedAt: number,
  ): Promise<{ mode: AgentRow['memory']; profile: ProfileSetting | null }> {
    const row = await findAgent(this.#database.read, keyOfAgent(organizationId, id));
    if (row !== undefined && isNewer(row, acceptedAt, this.#clock.now())) {
      throw permanentError(`the agent ${id} of this run was deleted, so it has no memory any more`);
    }
    return row === undefined
      ? { mode: 'read_write', profile: null }
      : { mode: row.memory, profile: profileOf(row) };
  }

  /** Creates an agent; `403` unless the writer's scopes cover what it may do. */
  async create(writer: Writer, fields: AgentFields & { id?: string }) {
    const { organizationId } = writer;
    const id = fields.id ?? `agent-${randomBytes(8).toString('hex')}`;
    const empty = emptyAgent(organizationId, id, this.#clock.now());
    const given: AgentRow = { ...empty, ...columnsOf(fields) };
    requireTaken(calledModel(given), this.#config);
    requireVariables(fields.variables ?? {});
    await this.#requireControls(organizationId, fields);
    const row = await createAfterRemoval(id, (waitedFor) =>
      this.#database.write(async (tx) => {
        await requireCovered(tx, this.#skills, writer, [given]);
        requireApprovals(writer, empty, given);
        await requireRoom(tx, organizationId, [this.#cap]);
        await requireCallable(tx, organizationId, id, fields.agents ?? []);
        const now = this.#clock.now();
        const created: AgentRow = { ...given, created_at: now, updated_at: now };
        if (!(await addAgent(tx, this.#dependents, created))) return null;
        await this.#limit(tx, created, fields);
        await requireReusable(tx, created, waitedFor);
        return created;
      }),
    );
    if (row === null) throw new PlatformError('conflict', `There is an agent ${id} already`);
    this.#changes.report(organizationId);
    return savedBody({ ...row, max_concurrency: fields.max_concurrency ?? null });
  }

  async list(organizationId: string, page: PageAsked) {
    const { agents, total, next } = await listAgents(
      this.#database.read,
      organizationId,
      page,
      limitOfAgent(organizationId, ''),
    );
    return { agents: agents.map(agentBody), total, next };
  }

  async get(organizationId: string, id: string) {
    return agentBody(await this.find(organizationId, id));
  }

  /**
   * Changes the given fields. A changed status appends an event; a changed field of a version makes one. `403` unless the
   * writer's scopes cover what the agent may do before and after it; pausing and resuming need none.
   */
  async update(
    writer: Writer,
    id: string,
    fields: AgentFields,
    restoredFrom: number | null = null,
  ) {
    const { organizationId } = writer;
    requireVariables(fields.variables ?? {});
    await this.#requireControls(organizationId, fields);
    const row = await this.#database.write(async (tx) => {
      const before = await this.lock(tx, organizationId, id);
      const columns = columnsOf(fields);
      const { max_concurrency = before.max_concurrency } = fields;
      const isLimited = max_concurrency !== before.max_concurrency;
      if (Object.keys(columns).length === 0 && !isLimited) return before;
      const changed = { ...before, ...columns };
      if (isLimited || changesMore(before, columns)) {
        await requireCovered(tx, this.#skills, writer, [before, changed]);
      }
      requireApprovals(writer, before, changed);
      await requireCallable(tx, organizationId, id, fields.agents ?? []);
      if ('model' in columns || 'model_settings' in columns || 'fallback_models' in columns) {
        requireTaken(calledModel(changed), this.#config);
      }
      const now = this.#clock.now();
      const version = await versionAfter(tx, before, changed, { now, restoredFrom });
      const stored = { ...columns, version, updated_at: now };
      const after = found(await updateAgent(tx, organizationId, id, stored));
      await this.#limit(tx, after, fields);
      if (after.status !== before.status) {
        const data = { previous_status: before.status, status: after.status };
        const event = { type: 'agent.status_changed', organizationId, agentId: id, data } as const;
        await appendEvents(tx, [event], now);
      }
      return { ...after, max_concurrency };
    });
    this.#states.forget(keyOf(organizationId, id));
    this.#changes.report(organizationId);
    return savedBody(row);
  }

  /** Throws `403` unless the writer may change the agent. */
  async requireWritable(writer: Writer, id: string): Promise<void> {
    const row = await this.find(writer.organizationId, id);
    await requireCovered(this.#database.read, this.#skills, writer, [row]);
  }

  /** The scopes that the writer lacks to change the agent. */
  async missingScopesOf(writer: Writer, id: string): Promise<string[]> {
    const row = await this.find(writer.organizationId, id);
    return missingScopes(this.#database.read, this.#skills, writer, [row]);
  }

  /** Throws `400 validation_error` for rules and guards that could not be applied. */
  async #requireControls(
    organizationId: string,
    { tool_rules = [], guards = [] }: AgentFields,
  ): Promise<void> {
    await requireRules(this.#expressions, organizationId, tool_rules);
    requireGuards(this.#skills, organizationId, guards);
  }

  /**
   * Throws `400 validation_error` for overrides that an update of the agent would refuse, and `403` for those that the
   * writer may not make.
   */
  async requireOverridable(writer: Writer, id: string, fields: AgentFields): Promise<void> {
    const { organizationId } = writer;
    const before = await this.find(organizationId, id);
    const row = { ...before, ...columnsOf(fields) };
    requireApprovals(writer, before, row);
    await requireCovered(this.#database.read, this.#skills, writer, [row]);
    try {
      requireVariables(fields.variables ?? {});
      requireTaken(calledModel(row), this.#config);
      await this.#requireControls(organizationId, fields);
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      const details = error.extras.details?.map((one) => ({ ...one, field: `agent.${one.field}` }));
      throw details === undefined ? error : invalidIn(details);
    }
  }

  /**
   * Deletes an agent with all that belongs to it; `403` for a writer that may not change it, `409 conflict` while a resource
   * names it.
   */
  async remove(writer: Writer, id: string): Promise<void> {
    const { organizationId } = writer;
    await this.#database.write(async (tx) => {
      const row = await this.lock(tx, organizationId, id);
      await requireCovered(tx, this.#skills, writer, [row]);
      // Another agent of this id would have no approvals.
      requireApprovals(writer, row, emptyAgent(organizationId, id, 0));
      const blockers = this.#dependents.flatMap(({ blocker }) => blocker ?? []);
      for (const { names } of blockers) {
        if (await names(tx, organizationId, id)) throw stillNamed(id, blockers);
      }
      await this.limits.forgetAgent(tx, organizationId, id);
      for (const dependent of this.#dependents)
        await dependent.remove?.(tx, organizationId, id, writer);
      await deleteAgent(tx, organizationId, id);
      const data = { name: row.name };
      const event = { type: 'agent.deleted', organizationId, agentId: id, data } as const;
      await appendEvents(tx, [event], this.#clock.now());
      await recordRemoval(tx, organizationId, id, this.#clock.now());
    });
    this.#states.forget(keyOf(organizationId, id));
    this.#changes.report(organizationId);
  }

  /** The agent, locked until the transaction ends, or `404 not_found`. */
  async lock(tx: Transaction, organizationId: string, id: string): Promise<LimitedAgent> {
    return found(await lockAgent(tx, keyOfAgent(organizationId, id)));
  }

  /** Like `lock`; undefined where there is none. */
  lockIfPresent(tx: Transaction, organizationId: string, id: string) {
    return lockAgent(tx, keyOfAgent(organizationId, id));
  }

  /** The status of an agent; undefined where there is none. */
  async statusIn(
    tx: Transaction,
    organizationId: string,
    id: string,
  ): Promise<AgentRow['status'] | undefined> {
    return (await findAgent(tx, keyOfAgent(organizationId, id)))?.status;
  }

  /** Sets how many runs of an agent go on at a time, where that is given. */
  async #limit(tx: Transaction, agent: AgentRow, fields: AgentFields): Promise<void> {
    const { organization_id: organizationId, id } = agent;
    const { max_concurrency: max } = fields;
    if (max === undefined) return;
    const limit = limitOfAgent(organizationId, id);
    if (max !== null) this.limits.requireRoomForAgent(organizationId, limit);
    await this.limits.setWithin(tx, limit, max);
  }

  /** Creates the agent with which every organization starts (docs/decisions/agents.md). */
  async createDefault(tx: Transaction, organizationId: string, now: number): Promise<void> {
    await addAgent(tx, this.#dependents, emptyAgent(organizationId, defaultAgentId, now));
  }
}

/** An agent as its writer sees it, with what is likely a mistake. */
function savedBody<Row extends AgentRow>(row: Row) {
  const warnings = warningsOf(row.instructions, variablesOf(row));
  return { ...agentBody(row), ...(warnings.length > 0 && { warnings }) };
}

const keyOf = (organizationId: string, id: string) => `${organizationId}/${id}`;

const keyOfAgent = (organizationId: string, id: string) => ({
  organizationId,
  id,
  limits: limitOfAgent(organizationId, ''),
});

function found<T extends AgentRow>(row: T | undefined): T {
  if (row === undefined) throw notFound('Agent');
  return row;
}

const isNewer = ({ created_at }: AgentRow, beganAt: number, now: number) =>
  created_at > beganAt + clockSkewMs && created_at <= now;

/** Whether other columns than the status get another value. */
function changesMore(before: AgentRow, columns: Partial<AgentRow>): boolean {
  const names = Object.keys(columns) as (keyof AgentRow)[];
  return names.some((name) => name !== 'status' && columns[name] !== before[name]);
}

function stillNamed(id: string, blockers: readonly { noun: string }[]): PlatformError {
  const list = blockers.map(({ noun }) => noun).join(', ');
  const nouns = list.replace(/, ([^,]*)$/, ' or $1');
  return new PlatformError(
    'conflict',
    `${nouns.charAt(0).toUpperCase()}${nouns.slice(1)} name the agent ${id}: delete or change those first`,
  );
}

/** Adds an agent, with all that other slices begin for it: the one way to create one. False for an id that is taken. */
async function addAgent(
  tx: Transaction,
  dependents: readonly AgentDependent[],
  row: AgentRow,
): Promise<boolean> {
  const { organization_id: organizationId, id: agentId, name, status, created_at: now } = row;
  if (!(await insertAgent(tx, row))) return false;
  for (const { begin } of dependents) await begin?.(tx, organizationId, agentId);
  const data = { name, status };
  await appendEvents(tx, [{ type: 'agent.created', organizationId, agentId, data }], now);
  return true;
}
