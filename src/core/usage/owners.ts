/** The owners of usage and budgets: agents, API keys and scheduled jobs of an organization. */
import type { Transaction } from '../../adapters/database/database.ts';
import type { ApiKeys } from '../api-keys/api-keys.ts';
import type { UsageOwner } from './reservations.ts';
import type { OwnerKey } from './usage.store.ts';

/** An owner that exists. */
export interface Owner extends UsageOwner {
  readonly kind: Exclude<
    UsageOwner['kind'],
    'deleted_agent' | 'user' | 'skill' | 'embedding_model'
  >;
  readonly organizationId: string;
}

/** An owner that a request names. The organization of a key is looked up. */
export type NamedOwner =
  | {
      readonly kind: 'agent' | 'scheduled_job';
      readonly organizationId: string;
      readonly id: string;
    }
  | { readonly kind: 'api_key'; readonly id: string };

/** Looks up owners of a kind that can be deleted. Both throw `404 not_found` for an unknown one. */
export interface OwnerLookup {
  find(organizationId: string, id: string): Promise<unknown>;
  /** Locks the owner against deletion until the transaction ends. */
  lock(tx: Transaction, organizationId: string, id: string): Promise<unknown>;
}

/** Where the owners are found. */
export interface OwnerLookups {
  readonly agents: OwnerLookup;
  readonly scheduledJobs: OwnerLookup;
  readonly apiKeys: ApiKeys;
}

/** The owner, or `404 not_found`. */
export async function findOwner(owners: OwnerLookups, named: NamedOwner): Promise<Owner> {
  if (named.kind === 'api_key') {
    return { ...named, organizationId: await owners.apiKeys.organizationOf(named.id) };
  }
  await lookupOf(owners, named.kind).find(named.organizationId, named.id);
  return named;
}

/** Locks the owner against deletion until the transaction ends, or `404 not_found`. Keys are never deleted. */
export async function lockOwner(
  lookups: OwnerLookups,
  tx: Transaction,
  { kind, organizationId, id }: Owner,
): Promise<void> {
  if (kind !== 'api_key') await lookupOf(lookups, kind).lock(tx, organizationId, id);
}

const lookupOf = ({ agents, scheduledJobs }: OwnerLookups, kind: 'agent' | 'scheduled_job') =>
  kind === 'agent' ? agents : scheduledJobs;

/** The owner's columns. */
export function keyOf({ kind, id }: UsageOwner): OwnerKey {
  return { owner_kind: kind, owner_id: id };
}

/** The field that names an owner in responses, such as `agent_id`. */
export function ownerField({ kind, id }: UsageOwner): Record<string, string> {
  return { [`${kind}_id`]: id };
}
