/**
 * Triggers: addresses at which external senders start runs (docs/decisions/triggers.md). Each has a token,
 * which is shown once and stored as a hash, and acts for the key that created it. A change takes effect
 * at once in this process and within a second in every other one.
 */
import { hash, randomBytes } from 'node:crypto';
import type { Agents } from '../agents/agents.ts';
import { type Cap, requireRoom } from '../database/caps.ts';
import type { Database } from '../database/database.ts';
import type { SecretOwner, SigningSecrets } from '../database/signing-secrets.ts';
import { type Readiness, type ReadinessDeps, readinessOf, refusalView } from '../jobs/readiness.ts';
import { type Caller, hasScopes, requireScopes } from '../kernel/caller.ts';
import { type Clock, timestamp } from '../kernel/clock.ts';
import { invalid, notFound, PlatformError } from '../kernel/errors.ts';
import { isId, newId } from '../kernel/ids.ts';
import { createShortCache } from '../kernel/short-cache.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import { deleteCallsOf } from './calls.store.ts';
import type { Mappings } from './mapping.ts';
import {
  deleteTrigger,
  findCreatorScopes,
  findTrigger,
  findTriggerByHash,
  insertTrigger,
  listTriggers,
  lockTrigger,
  type TriggerRow,
  updateTrigger,
} from './triggers.store.ts';

/** How long a cached trigger is used without another query. */
const cachedMs = 1_000;
/** Triggers in the cache; above it, the oldest is dropped. */
const cachedMax = 1_000;

/** The fields of a trigger that a client sets. */
export interface TriggerFields {
  agent_id?: string;
  name?: string;
  skill_category?: string;
  skill_name?: string;
  skill_version?: string;
  input?: Readonly<Record<string, unknown>>;
  /** JSONata, null for the default. */
  mapping?: string | null;
  rate_limit?: number;
  /** Null when requests need not be signed. */
  signing_secret?: string | null;
  active?: boolean;
}

export type NewTrigger = TriggerFields & Required<Pick<TriggerFields, 'agent_id' | 'name'>>;

/** The skill of a trigger that names none: the agent handles the event by its instructions. */
const defaultSkill = { skill_category: 'agent', skill_name: 'handle-event' };

/** The columns of a trigger whose calls need not be signed. */
const unsigned = { signing_secret: null, secret_sealed: 0 };

/** A trigger, as the handling of its calls needs it. */
export type CalledTrigger = TriggerRow;

type SkillOf = Pick<TriggerRow, 'skill_category' | 'skill_name' | 'skill_version'>;

/** The key that created a trigger, for which the trigger acts. */
type Creator = Pick<Caller, 'scopes'>;

export type Triggers = ReturnType<typeof createTriggers>;

export function createTriggers(parts: {
  database: Database;
  clock: Clock;
  agents: Pick<Agents, 'statusOf' | 'lock'>;
  apiKeys: ReadinessDeps['apiKeys'];
  skills: SkillRegistry;
  mappings: Pick<Mappings, 'check'>;
  secrets: Pick<SigningSecrets, 'seal'>;
  /** How many triggers an organization may have. */
  max?: number;
}) {
  const { database, clock, agents, apiKeys, skills, mappings, secrets } = parts;
  const cap: Cap = {
    table: 'agent_triggers',
    owner: 'The organization',
    things: 'triggers',
    remedy: 'delete one first',
    max: parts.max ?? Number.POSITIVE_INFINITY,
  };
  const cache = createShortCache<CalledTrigger>(clock, cachedMs, cachedMax);

  async function find(organizationId: string, id: string): Promise<TriggerRow> {
    const row = isId(id) ? await findTrigger(database.read, organizationId, id) : undefined;
    if (row === undefined) throw triggerNotFound();
    return row;
  }

  /** The scopes that a skill requires. The skill may be inactive by now. */
  function scopesFor(skill: SkillOf): readonly string[] {
    const tuple = [skill.skill_category, skill.skill_version, skill.skill_name] as const;
    const known = skills.findActive(...tuple) ?? skills.definition(...tuple);
    return known?.requiredScopes ?? [skill.skill_category];
  }

  /** Throws `403` unless the caller may run the skill. */
  function requireScopesOf(caller: Caller, skill: SkillOf): void {
    requireScopes(caller.scopes, scopesFor(skill));
  }

  /**
   * Checks the skill of a trigger. A new skill must be active (404), and the caller must be allowed to
   * run it; for a new skill, the creator must be allowed to run it as well (403).
   */
  function checkSkill(
    caller: Caller,
    creator: Creator,
    after: TriggerRow,
    before?: TriggerRow,
  ): void {
    const isNew = before === undefined || !isSameSkill(before, after);
    if (isNew) skills.active(after.skill_category, after.skill_version, after.skill_name);
    requireScopesOf(caller, after);
    if (isNew) requireScopesOfCreator(creator, scopesFor(after));
  }

  /** Checks agent and skill (404), scope (403) and mapping (400) of a trigger. */
  async function check(
    caller: Caller,
    creator: Creator,
    after: TriggerRow,
    before?: TriggerRow,
  ): Promise<void> {
    if (after.agent_id !== before?.agent_id) {
      await agents.statusOf(caller.organizationId, after.agent_id);
    }
    checkSkill(caller, creator, after, before);
    if (after.mapping !== null && after.mapping !== before?.mapping) {
      await mappings.check(caller.organizationId, after.mapping);
    }
  }

  async function creatorOf(trigger: TriggerRow): Promise<Creator> {
    const scopes = await findCreatorScopes(database.read, trigger);
    return { scopes: JSON.parse(scopes ?? '[]') as string[] };
  }

  /** The columns of the signing secret that a body sets. */
  function secretColumns(owner: SecretOwner, { signing_secret }: TriggerFields) {
    if (signing_secret === undefined) return {};
    if (signing_secret === null) return unsigned;
    const { secret, secret_sealed } = secrets.seal('agent_triggers', owner, signing_secret);
    return { signing_secret: secret, secret_sealed };
  }

  /** What an input would be only its call says, so inputs are not judged. */
  async function withRefusals(rows: readonly TriggerRow[]) {
    const readiness = await readinessOf({ apiKeys, skills, agents }, rows);
    return rows.map((row, i) => ({
      ...triggerBody(row),
      refusal: refusalView(readiness[i] as Readiness),
    }));
  }

  async function storedByHash(tokenHash: string): Promise<CalledTrigger> {
    const row = await findTriggerByHash(database.read, tokenHash);
    if (row === undefined) throw triggerNotFound();
    return row;
  }

  return {
    /**
     * The trigger of a token, also when it is switched off; throws `404` for an unknown token. Returns a
     * promise only when it has to query the database.
     */
    byToken(token: string): CalledTrigger | Promise<CalledTrigger> {
      const tokenHash = hash('sha256', token);
      const known = cache.get(tokenHash);
      // Only active triggers are cached, so a trigger can be called as soon as it is switched on.
      const isOn = ({ active }: CalledTrigger) => active === 1;
      return known ?? cache.read(tokenHash, () => storedByHash(tokenHash), isOn);
    },

    /** `404` when there is no such trigger, `403` when the caller may not run its skill. */
    async requireChangeable(caller: Caller, id: string): Promise<void> {
      requireScopesOf(caller, await find(caller.organizationId, id));
    },

    /** `404` when there is no such trigger. */
    find,

    /** Creates a trigger. Only this answer shows its token. */
    async create(caller: Caller, fields: NewTrigger) {
      refuseHalfSkill(fields);
      const token = `trg_${randomBytes(32).toString('base64url')}`;
      const now = clock.now();
      const id = newId();
      const owner = { id, organization_id: caller.organizationId };
      const row: TriggerRow = {
        id,
        organization_id: caller.organizationId,
        api_key_id: caller.keyId,
        agent_id: fields.agent_id,
        name: fields.name,
        ...defaultSkill,
        skill_version: 'v1.0',
        input: '{}',
        mapping: null,
        rate_limit: 60,
        ...unsigned,
        active: 1,
        ...columnsOf(fields),
        ...secretColumns(owner, fields),
        token_hash: hash('sha256', token),
        created_at: now,
        updated_at: now,
      };
      await check(caller, caller, row);
      await database.write(async (tx) => {
        await requireRoom(tx, row.organization_id, [cap]);
        await agents.lock(tx, row.organization_id, row.agent_id);
        await insertTrigger(tx, row);
      });
      return { ...triggerBody(row), token };
    },

    async list(organizationId: string, page: { limit: number; offset: number }) {
      const { triggers, total, next } = await listTriggers(database.read, organizationId, page);
      return { triggers: triggers.map(triggerBody), total, next };
    },

    /** Like `list`, each with why its calls would start no job now. */
    async listWithRefusals(organizationId: string, page: { limit: number; offset: number }) {
      const { triggers, total, next } = await listTriggers(database.read, organizationId, page);
      return { triggers: await withRefusals(triggers), total, next };
    },

    async get(organizationId: string, id: string) {
      return triggerBody(await find(organizationId, id));
    },

    /** Like `get`, with why its calls would start no job now. */
    async getWithRefusal(organizationId: string, id: string) {
      const [trigger] = await withRefusals([await find(organizationId, id)]);
      return trigger as ShownTrigger;
    },

    /** Changes the fields that `fields` names; the trigger still acts for the key that created it. */
    async update(caller: Caller, id: string, fields: TriggerFields) {
      const { organizationId } = caller;
      const columns = {
        ...columnsOf(fields),
        ...secretColumns({ id, organization_id: organizationId }, fields),
      };
      const known = await find(organizationId, id);
      const creator = await creatorOf(known);
      await check(caller, creator, { ...known, ...columns }, known);
      const row = await database.write(async (tx) => {
        const before = await lockTrigger(tx, organizationId, id);
        if (before === undefined) throw triggerNotFound();
        if (Object.keys(columns).length === 0) return before;
        // Another request may have changed the trigger since the check.
        requireScopesOf(caller, before);
        checkSkill(caller, creator, { ...before, ...columns }, before);
        if (columns.agent_id !== undefined) await agents.lock(tx, organizationId, columns.agent_id);
        const changes = { ...columns, updated_at: clock.now() };
        const after = await updateTrigger(tx, organizationId, id, changes);
        if (after === undefined) throw triggerNotFound();
        return after;
      });
      cache.forget(row.token_hash);
      return triggerBody(row);
    },

    async remove(organizationId: string, id: string): Promise<void> {
      const tokenHash = isId(id)
        ? await database.write(async (tx) => {
            const deleted = await deleteTrigger(tx, organizationId, id);
            if (deleted !== undefined) await deleteCallsOf(tx, id);
            return deleted;
          })
        : undefined;
      if (tokenHash === undefined) throw triggerNotFound();
      cache.forget(tokenHash);
    },
  };
}

/**
 * `404`, with the same message for a trigger that is unknown, is switched off or may not run any more.
 * Only the trigger's owner sees `why`, in the log of calls.
 */
export function triggerNotFound(why?: string): PlatformError {
  const { code, message } = notFound('Trigger');
  return new PlatformError(code, message, why === undefined ? {} : { cause: why });
}

/** The reason of a refusal for the trigger's owner, also where the sender does not see it. */
export function reasonOf({ cause, message }: PlatformError): string {
  return typeof cause === 'string' ? cause : message;
}

/** `404` for a trigger that is switched off. */
export function requireActive({ active }: CalledTrigger): void {
  if (active === 0) throw triggerNotFound('The trigger is switched off');
}

/** Throws `403` for a skill that the creating key may not run: such a trigger would never run. */
function requireScopesOfCreator({ scopes }: Creator, required: readonly string[]): void {
  if (hasScopes(scopes, required)) return;
  const missing = required.filter((scope) => !scopes.includes(scope));
  throw new PlatformError(
    'insufficient_scope',
    `The key that made this trigger, in whose name it works, lacks the scope ${missing.join(', ')}`,
  );
}

function refuseHalfSkill({ skill_category, skill_name, skill_version }: TriggerFields): void {
  const isNamed = skill_category !== undefined && skill_name !== undefined;
  if (isNamed || (skill_category ?? skill_name ?? skill_version) === undefined) return;
  const field = skill_category === undefined ? 'skill_category' : 'skill_name';
  throw invalid(field, 'is required: a skill is named by its category and its name');
}

function isSameSkill(a: SkillOf, b: SkillOf): boolean {
  return (
    a.skill_category === b.skill_category &&
    a.skill_name === b.skill_name &&
    a.skill_version === b.skill_version
  );
}

/** The columns of a trigger, except for its secret. */
function columnsOf({
  input,
  active,
  signing_secret: _,
  ...same
}: TriggerFields): Partial<TriggerRow> {
  const columns = {
    ...same,
    input: input && JSON.stringify(input),
    active: active === undefined ? undefined : Number(active),
  };
  const given = Object.entries(columns).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as Partial<TriggerRow>;
}

type ShownTrigger = ReturnType<typeof triggerBody> & { refusal: ReturnType<typeof refusalView> };

/** A trigger as the API shows it, without its token and its secret. */
function triggerBody(row: TriggerRow) {
  return {
    id: row.id,
    agent_id: row.agent_id,
    name: row.name,
    skill_category: row.skill_category,
    skill_name: row.skill_name,
    skill_version: row.skill_version,
    input: JSON.parse(row.input) as Record<string, unknown>,
    mapping: row.mapping,
    rate_limit: row.rate_limit,
    has_signing_secret: row.signing_secret !== null,
    active: row.active === 1,
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
  };
}
