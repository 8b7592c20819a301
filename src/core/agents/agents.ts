/**
 * Agents: creating, changing, pausing and deleting them. A change of status appends its event in the same
 * transaction. It has more than 300 lines because the verbs share what they check of an agent.
 */
import { randomBytes } from 'node:crypto';
import { type Cap, requireRoom } from '../../adapters/database/caps.ts';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { bind } from '../../kernel/bind.ts';
import type { Clock } from '../../kernel/clock.ts';
import { invalidIn, notFound, PlatformError } from '../../kernel/errors.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { createShortCache, type ShortCache } from '../../kernel/short-cache.ts';
import { appendEvents } from '../events/outbox.ts';
import type { AgentChanges } from './agent-changes.ts';
import { type AgentFields, agentBody, calledModel, columnsOf, emptyAgent } from './agent-rows.ts';
import { versionAfter } from './agent-versions.ts';
import {
  type AgentRow,
  deleteAgent,
  findAgent,
  insertAgent,
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
import { type ModelDefaults, requireTaken } from './model-settings.ts';
import {
  clockSkewMs,
  createAfterRemoval,
  recordRemoval,
  requireReusable,
} from './removed-agents.ts';

/** The agent of requests that name none (docs/decisions/agents.md). */
export const defaultAgentId = 'default';

/** How long an agent's status is cached. */
const cacheMs = 1_000;
/** Statuses in the cache; the oldest is evicted first. */
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

interface AgentsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly slices: {
    readonly skills: KnownSkills;
    /** In the order in which they act. */
    readonly dependents: readonly AgentDependent[];
  };
  readonly settings: {
    /** The model and the context of agents that set none. */
    readonly models: Pick<ModelDefaults, 'model' | 'contextTokens'>;
    /** The most agents of an organization. */
    readonly max: number;
  };
  /** Told of each organization whose agents have changed. */
  readonly changes?: Pick<AgentChanges, 'tell'>;
}

interface AgentsState extends Omit<AgentsDeps, 'settings'> {
  readonly models: AgentsDeps['settings']['models'];
  readonly cap: Cap;
  /** By `keyOf`. */
  readonly statuses: ShortCache<AgentRow['status']>;
}

export type Agents = ReturnType<typeof createAgents>;

export function createAgents({ settings: { models, max }, ...deps }: AgentsDeps) {
  const state: AgentsState = {
    ...deps,
    models,
    cap: { table: 'agents', things: 'agents', max },
    statuses: createShortCache(deps.clock, cacheMs, cachedMax),
  };
  return {
    ...bind(state, {
      find,
      findSince,
      calledBy,
      statusOf,
      memoryOf,
      create,
      createDefault,
      list,
      get,
      update,
      remove,
      requireOverridable,
      requireWritable,
      missingScopesOf,
    }),
    lock,
    statusIn,
  };
}

const keyOf = (organizationId: string, id: string) => `${organizationId}/${id}`;

/** The agent, or `404 not_found`. */
async function find({ database }: AgentsState, organizationId: string, id: string) {
  return found(await findAgent(database.read, { organizationId, id }));
}

function found(row: AgentRow | undefined): AgentRow {
  if (row === undefined) throw notFound('Agent');
  return row;
}

/**
 * The agent, if it existed at `beganAt`, else `404 not_found`: a newer agent with the id of a deleted one
 * must not see the data of the deleted one. A creation time in the future means that the clock was set
 * back since; such an agent is accepted, because its age is unknown.
 */
async function findSince(state: AgentsState, organizationId: string, id: string, beganAt: number) {
  const row = await find(state, organizationId, id);
  return found(isNewer(row, beganAt, state.clock.now()) ? undefined : row);
}

const isNewer = ({ created_at }: AgentRow, beganAt: number, now: number) =>
  created_at > beganAt + clockSkewMs && created_at <= now;

/** The agents that an agent may give tasks to now, without those that are paused. */
async function calledBy({ database }: AgentsState, { organization_id, agents }: AgentRow) {
  const ids = JSON.parse(agents) as string[];
  const called = await listCalledAgents(database.read, organization_id, ids);
  return called.filter(({ status }) => status === 'active');
}

/** The status of an agent, or `404 not_found`. A promise only when the cache has none. */
function statusOf(
  state: AgentsState,
  organizationId: string,
  id: string,
): AgentRow['status'] | Promise<AgentRow['status']> {
  const key = keyOf(organizationId, id);
  const known = state.statuses.get(key);
  if (known !== undefined) return known;
  return state.statuses.read(key, async () => (await find(state, organizationId, id)).status);
}

/**
 * What a run that was accepted at `acceptedAt` may do with the memory of its agent. Changes of a deleted agent are
 * dropped when the run completes. Rejects if a newer agent has its id, whose memories are not the run's.
 */
async function memoryOf(
  { database, clock }: AgentsState,
  organizationId: string,
  id: string,
  acceptedAt: number,
): Promise<AgentRow['memory']> {
  const row = await findAgent(database.read, { organizationId, id });
  if (row !== undefined && isNewer(row, acceptedAt, clock.now())) {
    throw permanentError(`the agent ${id} of this run was deleted, so it has no memory any more`);
  }
  return row?.memory ?? 'read_write';
}

/** Creates an agent; `403` unless the writer's scopes cover what it may do. */
async function create(
  { database, clock, slices, models, cap, changes }: AgentsState,
  writer: Writer,
  fields: AgentFields & { id?: string },
) {
  const { organizationId } = writer;
  const id = fields.id ?? `agent-${randomBytes(8).toString('hex')}`;
  const empty = emptyAgent(organizationId, id, clock.now());
  const given: AgentRow = { ...empty, ...columnsOf(fields) };
  requireTaken(calledModel(given), models);
  const row = await createAfterRemoval(id, (waitedFor) =>
    database.write(async (tx) => {
      await requireCovered(tx, slices.skills, writer, [given]);
      requireApprovals(writer, empty, given);
      await requireRoom(tx, organizationId, [cap]);
      await requireCallable(tx, organizationId, id, fields.agents ?? []);
      const now = clock.now();
      const created: AgentRow = { ...given, created_at: now, updated_at: now };
      if (!(await addAgent(tx, slices.dependents, created))) return null;
      await requireReusable(tx, created, waitedFor);
      return created;
    }),
  );
  if (row === null) throw new PlatformError('conflict', `There is an agent ${id} already`);
  changes?.tell(organizationId);
  return agentBody(row);
}

async function list({ database }: AgentsState, organizationId: string, page: PageAsked) {
  const { agents, total, next } = await listAgents(database.read, organizationId, page);
  return { agents: agents.map(agentBody), total, next };
}

async function get(state: AgentsState, organizationId: string, id: string) {
  return agentBody(await find(state, organizationId, id));
}

/**
 * Changes the given fields. A changed status appends an event; a changed field of a version makes one. `403` unless the
 * writer's scopes cover what the agent may do before and after it; pausing and resuming need none.
 */
async function update(
  { database, clock, slices, models, statuses, changes }: AgentsState,
  writer: Writer,
  id: string,
  fields: AgentFields,
  restoredFrom: number | null = null,
) {
  const { organizationId } = writer;
  const row = await database.write(async (tx) => {
    const before = await lock(tx, organizationId, id);
    const columns = columnsOf(fields);
    if (Object.keys(columns).length === 0) return before;
    const wanted = { ...before, ...columns };
    if (changesMore(before, columns)) {
      await requireCovered(tx, slices.skills, writer, [before, wanted]);
    }
    requireApprovals(writer, before, wanted);
    await requireCallable(tx, organizationId, id, fields.agents ?? []);
    if ('model' in columns || 'model_settings' in columns || 'fallback_models' in columns) {
      requireTaken(calledModel(wanted), models);
    }
    const now = clock.now();
    const version = await versionAfter(tx, before, wanted, { now, restoredFrom });
    const stored = { ...columns, version, updated_at: now };
    const after = found(await updateAgent(tx, organizationId, id, stored));
    if (after.status !== before.status) {
      const data = { previous_status: before.status, status: after.status };
      const event = { type: 'agent.status_changed', organizationId, agentId: id, data } as const;
      await appendEvents(tx, [event], now);
    }
    return after;
  });
  statuses.forget(keyOf(organizationId, id));
  changes?.tell(organizationId);
  return agentBody(row);
}

/** Whether other columns than the status get another value. */
function changesMore(before: AgentRow, columns: Partial<AgentRow>): boolean {
  const names = Object.keys(columns) as (keyof AgentRow)[];
  return names.some((name) => name !== 'status' && columns[name] !== before[name]);
}

/** Throws `403` unless the writer may change the agent. */
async function requireWritable(state: AgentsState, writer: Writer, id: string): Promise<void> {
  const row = await find(state, writer.organizationId, id);
  await requireCovered(state.database.read, state.slices.skills, writer, [row]);
}

/** The scopes that the writer lacks to change the agent. */
async function missingScopesOf(state: AgentsState, writer: Writer, id: string): Promise<string[]> {
  const row = await find(state, writer.organizationId, id);
  return missingScopes(state.database.read, state.slices.skills, writer, [row]);
}

/** Throws `400 validation_error` for overrides that an update of the agent would refuse. */
async function requireOverridable(
  state: AgentsState,
  organizationId: string,
  id: string,
  fields: AgentFields,
): Promise<void> {
  const row = { ...(await find(state, organizationId, id)), ...columnsOf(fields) };
  try {
    requireTaken(calledModel(row), state.models);
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
async function remove(
  { database, clock, slices, statuses, changes }: AgentsState,
  writer: Writer,
  id: string,
): Promise<void> {
  const { organizationId } = writer;
  const { dependents, skills } = slices;
  await database.write(async (tx) => {
    const row = await lock(tx, organizationId, id);
    await requireCovered(tx, skills, writer, [row]);
    // Another agent of this id would have no approvals.
    requireApprovals(writer, row, emptyAgent(organizationId, id, 0));
    const blockers = dependents.flatMap(({ blocker }) => blocker ?? []);
    for (const { names } of blockers) {
      if (await names(tx, organizationId, id)) throw stillNamed(id, blockers);
    }
    for (const dependent of dependents) await dependent.remove?.(tx, organizationId, id, writer);
    await deleteAgent(tx, organizationId, id);
    const data = { name: row.name };
    const event = { type: 'agent.deleted', organizationId, agentId: id, data } as const;
    await appendEvents(tx, [event], clock.now());
    await recordRemoval(tx, organizationId, id, clock.now());
  });
  statuses.forget(keyOf(organizationId, id));
  changes?.tell(organizationId);
}

function stillNamed(id: string, blockers: readonly { noun: string }[]): PlatformError {
  const list = blockers.map(({ noun }) => noun).join(', ');
  const nouns = list.replace(/, ([^,]*)$/, ' or $1');
  return new PlatformError(
    'conflict',
    `${nouns.charAt(0).toUpperCase()}${nouns.slice(1)} name the agent ${id}: delete or change those first`,
  );
}

/** The agent, locked until the transaction ends, or `404 not_found`. */
async function lock(tx: Transaction, organizationId: string, id: string): Promise<AgentRow> {
  return found(await lockAgent(tx, { organizationId, id }));
}

/** The status of an agent; undefined where there is none. */
async function statusIn(
  tx: Transaction,
  organizationId: string,
  id: string,
): Promise<AgentRow['status'] | undefined> {
  return (await findAgent(tx, { organizationId, id }))?.status;
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

/** Creates the agent with which every organization starts (docs/decisions/agents.md). */
async function createDefault(
  { slices }: AgentsState,
  tx: Transaction,
  organizationId: string,
  now: number,
): Promise<void> {
  await addAgent(tx, slices.dependents, emptyAgent(organizationId, defaultAgentId, now));
}
