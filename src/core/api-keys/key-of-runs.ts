/**
 * The key for which a scheduled job or a trigger works: the one that created it or last changed what it runs
 * (docs/decisions/api-keys.md). So a key that rewrites another key's scheduled job, or chooses who may call its trigger,
 * gets no runs with the other's scopes.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import { type Caller, hasScopes } from '../../kernel/caller.ts';
import { canonicalJson } from '../../kernel/text.ts';
import { findApiKeyById } from './api-keys.store.ts';

/** The columns that decide what is run. */
const whatColumns = [
  'agent_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'input',
  'mapping',
  'event_name',
  'event_key_mapping',
] as const;

type What = { readonly [Column in (typeof whatColumns)[number]]?: string | null } & {
  /** Decides which senders may choose the input of a trigger's runs. */
  readonly signing_secret?: string | null;
};

/** What a change needs to know of the key. */
interface KeyOfRuns {
  readonly id: string;
  /** Requests in any minute. */
  readonly rateLimit: number;
}

/**
 * The key after a change of the given columns. A change that names one of them without changing it moves the work to the
 * caller's key too, so that a key can be replaced, unless the caller's key may do more than the present one. So does a
 * change of the signing secret, which leaves what is run as another key wrote it.
 */
export async function keyOfRuns(
  tx: Transaction,
  caller: Caller,
  before: What & { readonly api_key_id: string },
  given: What,
): Promise<KeyOfRuns> {
  const own = { id: caller.keyId, rateLimit: caller.rateLimit };
  const named = whatColumns.filter((column) => given[column] !== undefined);
  if (named.some((column) => !isSame(column, before[column], given[column]))) return own;
  const present = await findApiKeyById(tx, { id: before.api_key_id });
  if (present === undefined) return own;
  const scopes = JSON.parse(present.scopes) as string[];
  const hasNewSecret = setsSecret(before, given);
  if ((hasNewSecret || named.length > 0) && hasScopes(scopes, caller.scopes)) return own;
  // The caller would choose the input of runs with scopes that its key lacks.
  if (hasNewSecret && !hasScopes(caller.scopes, scopes)) return own;
  return { id: present.id, rateLimit: present.rate_limit };
}

/** Sealed secrets cannot be compared, so each new one counts as a change. */
function setsSecret({ signing_secret: before }: What, { signing_secret: after }: What): boolean {
  if (after === undefined) return false;
  return after !== null || (before ?? null) !== null;
}

/** An input in which only the order of fields differs is the same. */
function isSame(
  column: (typeof whatColumns)[number],
  before: string | null | undefined,
  after: string | null | undefined,
): boolean {
  if (column !== 'input' || before === after) return before === after;
  return canonicalJson(JSON.parse(before ?? '{}')) === canonicalJson(JSON.parse(after ?? '{}'));
}
