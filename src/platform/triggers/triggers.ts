/**
 * Triggers: addresses at which external senders start runs (docs/decisions/triggers.md). Each has a token,
 * which is shown once and stored as a hash, and acts for the key that created it or last changed its skill, event or input. A change
 * takes effect at once in this process and within a second in every other one.
 */
import { hash, randomBytes } from 'node:crypto';
import { requireRoom } from '../../adapters/database/caps.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { SecretOwner, SigningSecrets } from '../../adapters/database/signing-secrets.ts';
import type { Expressions } from '../../adapters/sandbox/expressions.ts';
import type { Agents } from '../../core/agents/agents.ts';
import type { ApiKeys } from '../../core/api-keys/api-keys.ts';
import { keyOfRuns } from '../../core/api-keys/key-of-runs.ts';
import type { Context } from '../../core/context/context.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import type { Caller } from '../../kernel/caller.ts';
import { invalid } from '../../kernel/errors.ts';
import { isId, newId } from '../../kernel/ids.ts';
import { ShortCache } from '../../kernel/short-cache.ts';
import { deleteCallsOf } from './calls.store.ts';
import { triggerNotFound, triggerRefusals } from './refusals.ts';
import type { NewTrigger, TriggerChanges } from './triggers.schemas.ts';
import {
  deleteTrigger,
  findTrigger,
  findTriggerByHash,
  insertTrigger,
  listTriggers,
  lockTrigger,
  type TriggerRow,
  updateTrigger,
} from './triggers.store.ts';
import {
  refuseHalfSkill,
  requireTriggerScopes,
  requireValidTarget,
  requireValidTrigger,
} from './validity.ts';
import { type TriggerView, triggerView } from './views.ts';

/** How long a cached trigger is used without another query. */
const cachedMs = 1_000;
/** Triggers in the cache; above it, the oldest is dropped. */
const cachedMax = 1_000;

/** The skill of a trigger without one: the agent handles the event by its instructions. */
const defaultSkill = { skill_category: 'agent', skill_name: 'handle-event' };

/** Calls per minute where a trigger sets none; every key may allow its triggers as many. */
const usualRate = 60;

/** The columns of a trigger whose calls need not be signed. */
const unsigned = { signing_secret: null, secret_sealed: 0 };

/** The parts of the platform that triggers use. */
export interface TriggersParts {
  readonly agents: Agents;
  readonly apiKeys: ApiKeys;
  readonly skills: SkillRegistry;
  readonly secrets: SigningSecrets;
  readonly mappings: Expressions;
}

export class Triggers {
  readonly context: Context;
  readonly parts: TriggersParts;
  /** Recently called active triggers by the hash of their token. */
  readonly cache: ShortCache<TriggerRow>;

  constructor(context: Context, parts: TriggersParts) {
    this.context = context;
    this.parts = parts;
    this.cache = new ShortCache(context.clock, cachedMs, cachedMax);
  }

  /**
   * The trigger of a token, also when it is switched off; throws `404` for an unknown token. Returns a
   * promise only when it has to query the database.
   */
  byToken(token: string): TriggerRow | Promise<TriggerRow> {
    const tokenHash = hash('sha256', token);
    const known = this.cache.get(tokenHash);
    if (known !== undefined) return known;
    const stored = async () =>
      found(await findTriggerByHash(this.context.database.read, { token_hash: tokenHash }));
    // Only active triggers are cached, so a trigger can be called as soon as it is switched on.
    return this.cache.read(tokenHash, stored, ({ active }) => active === 1);
  }

  /** `404` when there is no such trigger, `403` when the caller may not run its skill or send its event. */
  async admitChange(caller: Caller, id: string): Promise<void> {
    requireTriggerScopes(this.parts.skills, caller, await this.find(caller.organizationId, id));
  }

  /** `404` when there is no such trigger. */
  async find(organizationId: string, id: string): Promise<TriggerRow> {
    return found(
      isId(id) ? await findTrigger(this.context.database.read, organizationId, id) : undefined,
    );
  }

  /** Creates a trigger. Only this response shows its token. */
  async create(caller: Caller, fields: NewTrigger) {
    refuseHalfSkill(fields);
    const token = `trg_${randomBytes(32).toString('base64url')}`;
    const now = this.context.clock.now();
    const owner = { id: newId(), organization_id: caller.organizationId };
    const row: TriggerRow = {
      ...owner,
      api_key_id: caller.keyId,
      agent_id: fields.agent_id,
      name: fields.name,
      ...defaultSkill,
      skill_version: 'v1.0',
      input: '{}',
      mapping: null,
      event_name: null,
      event_key_mapping: null,
      job_key: null,
      priority: null,
      rate_limit: rateByDefault(caller.rateLimit),
      ...unsigned,
      active: 1,
      ...columnsOf(this.parts.secrets, owner, fields),
      token_hash: hash('sha256', token),
      created_at: now,
      updated_at: now,
    };
    requireRate(fields.rate_limit, caller.rateLimit);
    await requireValidTrigger(this.parts, caller, row);
    await this.context.database.write(async (tx) => {
      const cap = {
        table: 'agent_triggers',
        things: 'triggers',
        max: this.context.config.triggersMax,
      } as const;
      await requireRoom(tx, row.organization_id, [cap]);
      await this.parts.agents.lock(tx, row.organization_id, row.agent_id);
      await insertTrigger(tx, row);
    });
    return { ...triggerView(row), token };
  }

  /** A page, newest first; on request with the refusal that a call would get now. */
  async list(organizationId: string, page: PageAsked, include?: 'refusal') {
    const { data, ...rest } = await listTriggers(this.context.database.read, organizationId, page);
    return { data: await this.#viewsOf(data, include), ...rest };
  }

  /** One trigger; on request with the refusal that a call would get now. */
  async get(organizationId: string, id: string, include?: 'refusal') {
    const [view] = await this.#viewsOf([await this.find(organizationId, id)], include);
    return view as TriggerView;
  }

  async #viewsOf(rows: readonly TriggerRow[], include?: 'refusal'): Promise<TriggerView[]> {
    const refusals = include === undefined ? [] : await triggerRefusals(this.parts, rows);
    return rows.map((row, i) => ({ ...triggerView(row), ...refusals[i] }));
  }

  /** Changes the given fields. Its calls use the key of the last change of skill, event or input (`keyOfRuns`). */
  async update(caller: Caller, id: string, fields: TriggerChanges) {
    const { skills, agents } = this.parts;
    const { organizationId } = caller;
    const columns = columnsOf(this.parts.secrets, { id, organization_id: organizationId }, fields);
    const known = await this.find(organizationId, id);
    await requireValidTrigger(this.parts, caller, { ...known, ...columns }, known);
    const row = await this.context.database.write(async (tx) => {
      const before = found(await lockTrigger(tx, organizationId, id));
      if (Object.keys(fields).length === 0) return before;
      // Another request may have changed the trigger since it was checked.
      requireTriggerScopes(skills, caller, before);
      requireValidTarget(skills, caller, { ...before, ...columns }, before);
      if (columns.agent_id !== undefined) await agents.lock(tx, organizationId, columns.agent_id);
      const key = await keyOfRuns(tx, caller, before, columns);
      requireRate(fields.rate_limit, key.rateLimit);
      return found(
        await updateTrigger(tx, organizationId, id, {
          ...columns,
          api_key_id: key.id,
          rate_limit: rateAfter(fields.rate_limit, before.rate_limit, key.rateLimit),
          updated_at: this.context.clock.now(),
        }),
      );
    });
    this.cache.forget(row.token_hash);
    return triggerView(row);
  }

  async remove(organizationId: string, id: string): Promise<void> {
    if (!isId(id)) throw triggerNotFound();
    const tokenHash = await this.context.database.write(async (tx) => {
      const deleted = await deleteTrigger(tx, organizationId, id);
      if (deleted !== undefined) await deleteCallsOf(tx, id);
      return deleted;
    });
    this.cache.forget(found(tokenHash));
  }
}

function found<Row>(row: Row | undefined): Row {
  if (row === undefined) throw triggerNotFound();
  return row;
}

/** Calls per minute that a trigger may take, for a key with this limit. */
const rateMax = (rateLimit: number) => Math.max(usualRate, rateLimit);

/** Calls per minute of a trigger that names no limit, for a key with this one. */
const rateByDefault = (rateLimit: number) => Math.min(usualRate, rateLimit);

/** The limit after a change: null is the default, and without one the trigger keeps its own as far as its key allows it. */
function rateAfter(given: number | null | undefined, before: number, rateLimit: number): number {
  if (given === null) return rateByDefault(rateLimit);
  return given ?? Math.min(before, rateMax(rateLimit));
}

/** Throws `400` for a limit that the trigger's key does not allow. */
function requireRate(given: number | null | undefined, rateLimit: number): void {
  const most = rateMax(rateLimit);
  if (given === undefined || given === null || given <= most) return;
  throw invalid(
    'rate_limit',
    `must be at most ${most}: ${usualRate}, or the rate_limit of its key where that is larger`,
  );
}

/** The columns that a body sets. */
function columnsOf(
  secrets: SigningSecrets,
  owner: SecretOwner,
  {
    input,
    active,
    event,
    job_key: jobKey,
    signing_secret: secret,
    rate_limit: rate,
    ...same
  }: TriggerChanges,
): Partial<TriggerRow> {
  return {
    ...same,
    ...(input === undefined ? {} : { input: JSON.stringify(input) }),
    ...(active === undefined ? {} : { active: Number(active) }),
    ...(rate === undefined || rate === null ? {} : { rate_limit: rate }),
    ...(event === undefined ? {} : eventColumns(event)),
    ...(jobKey === undefined ? {} : { job_key: jobKey && JSON.stringify(jobKey) }),
    ...(secret === undefined ? {} : sealed(secrets, owner, secret)),
  };
}

function eventColumns(event: NonNullable<TriggerChanges['event']> | null) {
  return { event_name: event?.name ?? null, event_key_mapping: event?.key_mapping ?? null };
}

function sealed(secrets: SigningSecrets, owner: SecretOwner, signingSecret: string | null) {
  if (signingSecret === null) return unsigned;
  const { secret, secret_sealed } = secrets.seal('agent_triggers', owner, signingSecret);
  return { signing_secret: secret, secret_sealed };
}
