/**
 * Agents: creating, changing, pausing and deleting them. A change of status appends its event in the same
 * transaction.
 */
import { randomBytes } from 'node:crypto';
import { type Cap, requireRoom } from '../database/caps.ts';
import type { Database, Transaction } from '../database/database.ts';
import { appendEvents } from '../events/outbox.ts';
import { type Clock, timestamp } from '../kernel/clock.ts';
import { notFound, PlatformError } from '../kernel/errors.ts';
import { createShortCache } from '../kernel/short-cache.ts';
import {
  type AgentRow,
  deleteAgent,
  findAgent,
  insertAgent,
  listAgents,
  lockAgent,
  updateAgent,
} from './agents.store.ts';

/** The agent of requests that name none (docs/decisions/agents.md). */
export const defaultAgentId = 'default';

/** The assumed clock skew between two processes. */
const clockSkewMs = 100;

/** How long an agent's status is cached. */
const cacheMs = 1_000;
/** Statuses in the cache; the oldest is evicted first. */
const cachedMax = 10_000;

/** The fields of an agent that a client may set. */
export interface AgentFields {
  name?: string;
  description?: string;
  status?: 'active' | 'paused';
  instructions?: string;
  model?: string | null;
  skills?: readonly string[];
  metadata?: Readonly<Record<string, unknown>>;
}

export type Agents = ReturnType<typeof createAgents>;

/** What other slices store about an agent. */
export interface AgentDependents {
  /** Whether a resource refers to the agent and prevents its deletion (docs/decisions/agents.md). */
  areThere(tx: Transaction, organizationId: string, agentId: string): Promise<boolean>;
  /** Sets aside what is left of a deleted agent with the id of a new one. */
  begin?(tx: Transaction, organizationId: string, agentId: string): Promise<void>;
  /** Deletes the data that belongs to the agent. */
  remove(tx: Transaction, organizationId: string, agentId: string): Promise<void>;
}

/** `max` is how many agents an organization may have. */
export function createAgents(
  database: Database,
  clock: Clock,
  dependents: AgentDependents,
  max?: number,
) {
  const cap: Cap = { table: 'agents', things: 'agents', max };
  const statuses = createShortCache<AgentRow['status']>(clock, cacheMs, cachedMax);
  const keyOf = (organizationId: string, id: string) => `${organizationId}/${id}`;

  async function find(organizationId: string, id: string): Promise<AgentRow> {
    const row = await findAgent(database.read, organizationId, id);
    if (row === undefined) throw notFound('Agent');
    return row;
  }

  async function locked(tx: Transaction, organizationId: string, id: string): Promise<AgentRow> {
    const row = await lockAgent(tx, organizationId, id);
    if (row === undefined) throw notFound('Agent');
    return row;
  }

  return {
    find,

    /**
     * The agent, if it existed at `beganAt`, else `404 not_found`: a newer agent with the id of a deleted
     * one must not see the data of the deleted one. A creation time in the future means that the clock
     * was set back since; such an agent is accepted, because its age is unknown.
     */
    async findSince(organizationId: string, id: string, beganAt: number): Promise<AgentRow> {
      const row = await find(organizationId, id);
      const { created_at } = row;
      if (created_at > beganAt + clockSkewMs && created_at <= clock.now()) throw notFound('Agent');
      return row;
    },

    /** The status of an agent, or `404 not_found`. A promise only when the cache has none. */
    statusOf(organizationId: string, id: string): AgentRow['status'] | Promise<AgentRow['status']> {
      const key = keyOf(organizationId, id);
      const known = statuses.get(key);
      if (known !== undefined) return known;
      return statuses.read(key, async () => (await find(organizationId, id)).status);
    },

    async create(organizationId: string, fields: AgentFields & { id?: string }) {
      const now = clock.now();
      const id = fields.id ?? `agent-${randomBytes(8).toString('hex')}`;
      const row: AgentRow = {
        ...emptyAgent(organizationId, id, now),
        ...columnsOf(fields),
      };
      const created = await database.write(async (tx) => {
        await requireRoom(tx, organizationId, [cap]);
        const isNew = await insertAgent(tx, row);
        if (isNew) await dependents.begin?.(tx, organizationId, id);
        return isNew;
      });
      if (!created) throw new PlatformError('conflict', `There is an agent ${id} already`);
      return agentBody(row);
    },

    async list(organizationId: string, page: { limit: number; offset: number }) {
      const { agents, total, next } = await listAgents(database.read, organizationId, page);
      return { agents: agents.map(agentBody), total, next };
    },

    async get(organizationId: string, id: string) {
      return agentBody(await find(organizationId, id));
    },

    /** Changes the given fields; a changed status appends an event. */
    async update(organizationId: string, id: string, fields: AgentFields) {
      const row = await database.write(async (tx) => {
        const before = await lockAgent(tx, organizationId, id);
        if (before === undefined) throw notFound('Agent');
        const columns = columnsOf(fields);
        if (Object.keys(columns).length === 0) return before;
        const now = clock.now();
        const after = await updateAgent(tx, organizationId, id, { ...columns, updated_at: now });
        if (after === undefined) throw notFound('Agent');
        if (after.status !== before.status) {
          const data = { previous_status: before.status, status: after.status };
          const event = {
            type: 'agent.status_changed',
            organizationId,
            agentId: id,
            data,
          } as const;
          await appendEvents(tx, [event], now);
        }
        return after;
      });
      statuses.forget(keyOf(organizationId, id));
      return agentBody(row);
    },

    async remove(organizationId: string, id: string): Promise<void> {
      await database.write(async (tx) => {
        if ((await lockAgent(tx, organizationId, id)) === undefined) throw notFound('Agent');
        if (await dependents.areThere(tx, organizationId, id)) {
          throw new PlatformError(
            'conflict',
            `Schedules or triggers name the agent ${id}: delete or change those first`,
          );
        }
        await dependents.remove(tx, organizationId, id);
        await deleteAgent(tx, organizationId, id);
      });
      statuses.forget(keyOf(organizationId, id));
    },

    /** Locks the agent until the transaction ends, and returns its status; `404` when it does not exist. */
    async hold(tx: Transaction, organizationId: string, id: string): Promise<AgentRow['status']> {
      return (await locked(tx, organizationId, id)).status;
    },

    /** Like `hold`, but returns the creation time, which distinguishes agents of the same id. */
    async holdSince(tx: Transaction, organizationId: string, id: string): Promise<number> {
      return (await locked(tx, organizationId, id)).created_at;
    },
  };
}

/** Every organization starts with an agent (docs/decisions/agents.md). */
export async function insertDefaultAgent(
  tx: Transaction,
  organizationId: string,
  now: number,
): Promise<void> {
  await insertAgent(tx, emptyAgent(organizationId, defaultAgentId, now));
}

function emptyAgent(organizationId: string, id: string, now: number): AgentRow {
  return {
    organization_id: organizationId,
    id,
    name: id,
    description: '',
    status: 'active',
    instructions: '',
    model: null,
    skills: '[]',
    metadata: '{}',
    created_at: now,
    updated_at: now,
  };
}

function columnsOf({
  skills,
  metadata,
  name,
  description,
  status,
  instructions,
  model,
}: AgentFields) {
  const columns = {
    name,
    description,
    status,
    instructions,
    model,
    skills: skills && JSON.stringify(skills),
    metadata: metadata && JSON.stringify(metadata),
  };
  const given = Object.entries(columns).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as Partial<AgentRow>;
}

function agentBody(row: AgentRow) {
  const { id, name, description, status, instructions, model } = row;
  return {
    id,
    name,
    description,
    status,
    instructions,
    model,
    skills: JSON.parse(row.skills) as string[],
    metadata: JSON.parse(row.metadata) as Record<string, unknown>,
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
  };
}
