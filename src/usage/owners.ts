/** Agents, API keys and scheduled jobs as the ledger sees them; each belongs to an organization. */
import type { Transaction } from '../database/database.ts';
import type { UsageOwner } from './reservations.ts';
import type { OwnerKey } from './usage.store.ts';

/** One that is there. */
export interface Owner extends UsageOwner {
  readonly organizationId: string;
}

/** One that somebody named; to which organization a key belongs, the key says. */
export type NamedOwner =
  | {
      readonly kind: 'agent' | 'scheduled_job';
      readonly organizationId: string;
      readonly id: string;
    }
  | { readonly kind: 'api_key'; readonly id: string };

/** What may be deleted, in its own slice. Both answer `404 not_found` for what is not there. */
interface Lookup {
  find(organizationId: string, id: string): Promise<unknown>;
  /** It is not deleted before the transaction ends. */
  hold(tx: Transaction, organizationId: string, id: string): Promise<unknown>;
}

/** What the ledger asks of other slices. */
export interface OwnerLookups {
  readonly agents: Lookup;
  readonly scheduledJobs: Lookup;
  /** Also of a revoked key; `404 not_found` when there is none. */
  organizationOfKey(id: string): Promise<string>;
}

/** The owner, or `404 not_found`. */
export async function findOwner(lookups: OwnerLookups, named: NamedOwner): Promise<Owner> {
  if (named.kind === 'api_key') {
    return { ...named, organizationId: await lookups.organizationOfKey(named.id) };
  }
  await lookupOf(lookups, named.kind).find(named.organizationId, named.id);
  return named;
}

/** The owner is not deleted before the transaction ends, or `404 not_found`. Keys never are. */
export async function holdOwner(
  lookups: OwnerLookups,
  tx: Transaction,
  { kind, organizationId, id }: Owner,
): Promise<void> {
  if (kind !== 'api_key') await lookupOf(lookups, kind).hold(tx, organizationId, id);
}

const lookupOf = ({ agents, scheduledJobs }: OwnerLookups, kind: 'agent' | 'scheduled_job') =>
  kind === 'agent' ? agents : scheduledJobs;

/** As the owner stands in rows. */
export function keyOf({ kind, id }: UsageOwner): OwnerKey {
  return { owner_kind: kind, owner_id: id };
}

/** As an owner is shown: its id, under a name that says what it is. */
export function shownOwner({ kind, id }: UsageOwner): Record<string, string> {
  return { [`${kind}_id`]: id };
}
