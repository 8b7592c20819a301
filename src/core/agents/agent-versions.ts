/**
 * Versions of an agent: each change of a field in `versionedFields` gets a number, and records which fields changed.
 * A version is recorded when the next one is made or when a client reads it, so an agent without changes has none.
 * Unchanged values make no version.
 */
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { timestamp } from '../../kernel/clock.ts';
import { notFound } from '../../kernel/errors.ts';
import { canonicalJson } from '../../kernel/text.ts';
import type { Context } from '../context/context.ts';
import { agentBody, emptyAgent } from './agent-rows.ts';
import {
  deleteUnnamed,
  deleteVersions,
  findVersion,
  findVersionBefore,
  insertVersion,
  listVersions,
  type OfAgent,
  type VersionRow,
} from './agent-versions.store.ts';
import { type VersionedField, versionedFields } from './agents.schemas.ts';
import type { AgentRow } from './agents.store.ts';
import type { AgentDependent, Agents } from './agents.ts';
import type { Writer } from './covered.ts';

/** Versions kept of an agent; older ones are deleted unless a job names them. */
const keptMax = 1_000;
/** Versions that one change deletes at most. */
const deletedMax = 20;

export type VersionFields = Pick<ReturnType<typeof agentBody>, VersionedField>;

export const versionsOfAgent: AgentDependent = {
  remove: (tx, organizationId, agentId) => deleteVersions(tx, { organizationId, agentId }),
};

const ofAgent = ({ organization_id, id }: AgentRow): OfAgent => ({
  organizationId: organization_id,
  agentId: id,
});

function fieldsOf(row: AgentRow): VersionFields {
  const body = agentBody(row);
  return Object.fromEntries(versionedFields.map((name) => [name, body[name]])) as VersionFields;
}

function changedFields(before: VersionFields, after: VersionFields): VersionedField[] {
  return versionedFields.filter(
    (name) => canonicalJson(before[name]) !== canonicalJson(after[name]),
  );
}

/**
 * The number of the agent's version after a change, which is recorded where it is a new one. The agent is
 * locked; `before` and `after` are its rows.
 */
export async function versionAfter(
  tx: Transaction,
  before: AgentRow,
  after: AgentRow,
  { now, restoredFrom }: { readonly now: number; readonly restoredFrom: number | null },
): Promise<number> {
  const fields = fieldsOf(after);
  const changed = changedFields(fieldsOf(before), fields);
  if (changed.length === 0) return before.version;
  await recordCurrent(tx, before);
  const n = before.version + 1;
  await insertVersion(tx, {
    organization_id: before.organization_id,
    agent_id: before.id,
    n,
    fields: JSON.stringify(fields),
    changed: JSON.stringify(changed),
    restored_from: restoredFrom,
    created_at: now,
  });
  await deleteUnnamed(tx, ofAgent(before), n - keptMax + 1, deletedMax);
  return n;
}

/** Records the present state of the agent under its version number, unless that is recorded. */
async function recordCurrent(tx: Transaction, row: AgentRow): Promise<void> {
  await insertVersion(tx, {
    organization_id: row.organization_id,
    agent_id: row.id,
    n: row.version,
    fields: JSON.stringify(fieldsOf(row)),
    changed: '[]',
    restored_from: null,
    created_at: row.version === 1 ? row.created_at : row.updated_at,
  });
}

/** The versions of the agents of all organizations. */
export class AgentVersions {
  readonly #database: Database;
  readonly #agents: Agents;

  constructor({ database }: Context, agents: Agents) {
    this.#database = database;
    this.#agents = agents;
  }

  async list(organizationId: string, id: string, page: PageAsked) {
    const agent = await this.#findRecorded(organizationId, id);
    const { rows, total } = await listVersions(this.#database.read, ofAgent(agent), page);
    const versions = rows.map((row) => ({
      ...summaryOf(row),
      is_current: row.n === agent.version,
    }));
    return { versions, total };
  }

  /** A version, and how it differs from another one: the one before it, where `compare` names none. */
  async get(
    organizationId: string,
    id: string,
    { n, compare }: { readonly n: number; readonly compare?: number | undefined },
  ) {
    const agent = await this.#findRecorded(organizationId, id);
    const version = await this.#findVersion(ofAgent(agent), n);
    const other =
      compare === undefined
        ? await findVersionBefore(this.#database.read, ofAgent(agent), n)
        : await this.#findVersion(ofAgent(agent), compare);
    const fields = readFields(version);
    const before = other === undefined ? fields : readFields(other);
    return {
      ...summaryOf(version),
      is_current: n === agent.version,
      fields,
      compared_to: other?.n ?? null,
      differences: changedFields(before, fields).map((field) => ({
        field,
        before: before[field],
        after: fields[field],
      })),
    };
  }

  /** Gives the agent the fields of a version again, as a new version. */
  async restore(writer: Writer, id: string, n: number) {
    const agent = await this.#findRecorded(writer.organizationId, id);
    const fields = readFields(await this.#findVersion(ofAgent(agent), n));
    return this.#agents.update(writer, id, fields, n);
  }

  /** The agent; its present version is recorded. */
  async #findRecorded(organizationId: string, id: string) {
    const row = await this.#agents.find(organizationId, id);
    const present = { organizationId, agentId: id, n: row.version };
    if ((await findVersion(this.#database.read, present)) !== undefined) return row;
    await this.#database.write(async (tx) =>
      recordCurrent(tx, await this.#agents.lock(tx, organizationId, id)),
    );
    return row;
  }

  async #findVersion(agent: OfAgent, n: number): Promise<VersionRow> {
    const row = await findVersion(this.#database.read, { ...agent, n });
    if (row === undefined) throw notFound('Version');
    return row;
  }
}

/** Fields that are newer than the recorded version get their defaults. */
function readFields({ organization_id, agent_id, fields }: VersionRow): VersionFields {
  const defaults = fieldsOf(emptyAgent(organization_id, agent_id, 0));
  return { ...defaults, ...(JSON.parse(fields) as VersionFields) };
}

function summaryOf(row: Pick<VersionRow, 'n' | 'changed' | 'restored_from' | 'created_at'>) {
  return {
    version: row.n,
    changed: JSON.parse(row.changed) as VersionedField[],
    restored_from: row.restored_from,
    created_at: timestamp(row.created_at),
  };
}
