/**
 * Triggers: addresses at which external senders start runs (docs/decisions/triggers.md). Each has a token,
 * which is shown once and stored as a hash, and acts for the key that created it or last changed what it runs. A change
 * takes effect at once in this process and within a second in every other one.
 */
import { hash, randomBytes } from 'node:crypto';
import { requireRoom } from '../../adapters/database/caps.ts';
import type { Database } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { SecretOwner, SigningSecrets } from '../../adapters/database/signing-secrets.ts';
import type { Agents } from '../../core/agents/agents.ts';
import { keyOfRuns } from '../../core/api-keys/key-of-runs.ts';
import type { ReadinessDeps } from '../../core/jobs/readiness.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import { bind } from '../../kernel/bind.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type Clock, timestamp } from '../../kernel/clock.ts';
import { invalid, notFound, PlatformError } from '../../kernel/errors.ts';
import { isId, newId } from '../../kernel/ids.ts';
import { createShortCache, type ShortCache } from '../../kernel/short-cache.ts';
import { deleteCallsOf } from './calls.store.ts';
import type { Mappings } from './mapping.ts';
import { triggerRefusals } from './refusals.ts';
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

/** How long a cached trigger is used without another query. */
const cachedMs = 1_000;
/** Triggers in the cache; above it, the oldest is dropped. */
const cachedMax = 1_000;

/** The skill of a trigger that names none: the agent handles the event by its instructions. */
const defaultSkill = { skill_category: 'agent', skill_name: 'handle-event' };

/** Calls per minute where a trigger sets none; every key may allow its triggers as many. */
const usualRate = 60;

/** The columns of a trigger whose calls need not be signed. */
const unsigned = { signing_secret: null, secret_sealed: 0 };

export interface TriggerDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly slices: {
    readonly agents: Pick<Agents, 'statusOf' | 'lock'>;
    readonly apiKeys: ReadinessDeps['apiKeys'];
    readonly skills: SkillRegistry;
    readonly secrets: Pick<SigningSecrets, 'seal'>;
  };
  readonly mappings: Pick<Mappings, 'check'>;
  /** How many triggers an organization may have. */
  readonly max: number;
}

/** The dependencies, and a cache of recently called active triggers by the hash of their token. */
interface TriggerState extends TriggerDeps {
  readonly cache: ShortCache<TriggerRow>;
}

export type Triggers = ReturnType<typeof createTriggers>;

export function createTriggers(deps: TriggerDeps) {
  const cache = createShortCache<TriggerRow>(deps.clock, cachedMs, cachedMax);
  const state: TriggerState = { ...deps, cache };
  return bind(state, { byToken, admitChange, find, create, list, get, update, remove });
}

/**
 * The trigger of a token, also when it is switched off; throws `404` for an unknown token. Returns a
 * promise only when it has to query the database.
 */
function byToken(
  { database, cache }: TriggerState,
  token: string,
): TriggerRow | Promise<TriggerRow> {
  const tokenHash = hash('sha256', token);
  const known = cache.get(tokenHash);
  if (known !== undefined) return known;
  const stored = async () =>
    found(await findTriggerByHash(database.read, { token_hash: tokenHash }));
  // Only active triggers are cached, so a trigger can be called as soon as it is switched on.
  return cache.read(tokenHash, stored, ({ active }) => active === 1);
}

/** `404` when there is no such trigger, `403` when the caller may not run its skill or send its event. */
async function admitChange(state: TriggerState, caller: Caller, id: string): Promise<void> {
  requireTriggerScopes(state.slices.skills, caller, await find(state, caller.organizationId, id));
}

/** `404` when there is no such trigger. */
async function find(
  { database }: Pick<TriggerState, 'database'>,
  organizationId: string,
  id: string,
): Promise<TriggerRow> {
  return found(isId(id) ? await findTrigger(database.read, organizationId, id) : undefined);
}

function found<Row>(row: Row | undefined): Row {
  if (row === undefined) throw triggerNotFound();
  return row;
}

/** Creates a trigger. Only this answer shows its token. */
async function create(state: TriggerState, caller: Caller, fields: NewTrigger) {
  const { database, slices, clock, max } = state;
  refuseHalfSkill(fields);
  const token = `trg_${randomBytes(32).toString('base64url')}`;
  const now = clock.now();
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
    rate_limit: rateByDefault(caller.rateLimit),
    ...unsigned,
    active: 1,
    ...columnsOf(state, owner, fields),
    token_hash: hash('sha256', token),
    created_at: now,
    updated_at: now,
  };
  requireRate(fields.rate_limit, caller.rateLimit);
  await requireValidTrigger(state, caller, row);
  await database.write(async (tx) => {
    const cap = { table: 'agent_triggers', things: 'triggers', max } as const;
    await requireRoom(tx, row.organization_id, [cap]);
    await slices.agents.lock(tx, row.organization_id, row.agent_id);
    await insertTrigger(tx, row);
  });
  return { ...triggerView(row), token };
}

/** A page, newest first; on request with the refusal that a call would get now. */
async function list(
  state: TriggerState,
  organizationId: string,
  page: PageAsked,
  include?: 'refusal',
) {
  const { data, ...rest } = await listTriggers(state.database.read, organizationId, page);
  return { data: await viewsOf(state, data, include), ...rest };
}

/** One trigger; on request with the refusal that a call would get now. */
async function get(state: TriggerState, organizationId: string, id: string, include?: 'refusal') {
  const [view] = await viewsOf(state, [await find(state, organizationId, id)], include);
  return view as TriggerView;
}

async function viewsOf(
  { slices }: TriggerState,
  rows: readonly TriggerRow[],
  include?: 'refusal',
): Promise<TriggerView[]> {
  const refusals = include === undefined ? [] : await triggerRefusals(slices, rows);
  return rows.map((row, i) => ({ ...triggerView(row), ...refusals[i] }));
}

/** Changes the given fields. Its calls use the key of the last change of what it runs (`keyOfRuns`). */
async function update(state: TriggerState, caller: Caller, id: string, fields: TriggerChanges) {
  const { database, clock, cache } = state;
  const { skills, agents } = state.slices;
  const { organizationId } = caller;
  const columns = columnsOf(state, { id, organization_id: organizationId }, fields);
  const known = await find(state, organizationId, id);
  await requireValidTrigger(state, caller, { ...known, ...columns }, known);
  const row = await database.write(async (tx) => {
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
        updated_at: clock.now(),
      }),
    );
  });
  cache.forget(row.token_hash);
  return triggerView(row);
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

async function remove(
  { database, cache }: TriggerState,
  organizationId: string,
  id: string,
): Promise<void> {
  if (!isId(id)) throw triggerNotFound();
  const tokenHash = await database.write(async (tx) => {
    const deleted = await deleteTrigger(tx, organizationId, id);
    if (deleted !== undefined) await deleteCallsOf(tx, id);
    return deleted;
  });
  cache.forget(found(tokenHash));
}

/** The columns that a body sets. */
function columnsOf(
  { slices: { secrets } }: TriggerState,
  owner: SecretOwner,
  { input, active, event, signing_secret: secret, rate_limit: rate, ...same }: TriggerChanges,
): Partial<TriggerRow> {
  return {
    ...same,
    ...(input === undefined ? {} : { input: JSON.stringify(input) }),
    ...(active === undefined ? {} : { active: Number(active) }),
    ...(rate === undefined || rate === null ? {} : { rate_limit: rate }),
    ...(event === undefined ? {} : eventColumns(event)),
    ...(secret === undefined ? {} : sealed(secrets, owner, secret)),
  };
}

function eventColumns(event: NonNullable<TriggerChanges['event']> | null) {
  return { event_name: event?.name ?? null, event_key_mapping: event?.key_mapping ?? null };
}

function sealed(
  secrets: TriggerDeps['slices']['secrets'],
  owner: SecretOwner,
  signingSecret: string | null,
) {
  if (signingSecret === null) return unsigned;
  const { secret, secret_sealed } = secrets.seal('agent_triggers', owner, signingSecret);
  return { signing_secret: secret, secret_sealed };
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
export function requireActive({ active }: TriggerRow): void {
  if (active === 0) throw triggerNotFound('The trigger is switched off');
}

type TriggerView = ReturnType<typeof triggerView> &
  Partial<Awaited<ReturnType<typeof triggerRefusals>>[number]>;

/** A trigger as the API shows it, without its token and its secret. */
function triggerView(row: TriggerRow) {
  return {
    id: row.id,
    agent_id: row.agent_id,
    name: row.name,
    skill_category: row.skill_category,
    skill_name: row.skill_name,
    skill_version: row.skill_version,
    input: JSON.parse(row.input) as Record<string, unknown>,
    mapping: row.mapping,
    event:
      row.event_name === null ? null : { name: row.event_name, key_mapping: row.event_key_mapping },
    rate_limit: row.rate_limit,
    has_signing_secret: row.signing_secret !== null,
    active: row.active === 1,
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
  };
}
