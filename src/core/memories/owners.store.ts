/** Every query on the owners of memories and their counts. */
import { sql } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { allRows, firstRow, statement } from '../../adapters/database/statement.ts';

/** An owner's kind, as `memory_owners.kind` has it. */
export const ownerKinds = { agent: 0, user: 1, together: 2 } as const;
export type OwnerKind = (typeof ownerKinds)[keyof typeof ownerKinds];

/** The number of an owner; if it is a user, also that of all users together. */
export interface Owner {
  readonly id: number;
  readonly together: number | null;
}

/** The names of an owner; `user_id` is empty unless the owner is one user. */
export interface OwnerName {
  readonly organization_id: string;
  /** As `memory_owners.agent_id` has it. */
  readonly agent_id: string;
  readonly kind: OwnerKind;
  readonly user_id: string;
}

/** Up to two owners: the agent itself, and the user or all users that `kind` and `user_id` name. */
export const findOwners = allRows<{
  organization_id: string;
  agent_id: string;
  users_agent_id: string;
  kind: OwnerKind;
  user_id: string;
}>()((db, p) =>
  db
    .selectFrom('memory_owners')
    .select(['id', 'count', 'kind', 'next_expiry'])
    .where('organization_id', '=', p('organization_id'))
    .where(({ and, eb, or }) =>
      or([
        and([
          eb('agent_id', '=', p('agent_id')),
          eb('kind', '=', sql.lit(0)),
          eb('user_id', '=', sql.lit('')),
        ]),
        and([
          eb('agent_id', '=', p('users_agent_id')),
          eb('kind', '=', p('kind')),
          eb('user_id', '=', p('user_id')),
        ]),
      ]),
    )
    // A literal, not a parameter: otherwise the partial index of present owners is not used.
    .where('removed', '=', sql.lit(0)),
);
export type OwnerRow = Awaited<ReturnType<typeof findOwners>>[number];

/** The owners of a user's memories, of all agents. */
export const findOwnersOfUser = allRows<{ organizationId: string; userId: string }>()((db, p) =>
  db
    .selectFrom('memory_owners')
    .select(['id', 'organization_id', 'agent_id'])
    .where('organization_id', '=', p('organizationId'))
    .where('kind', '=', sql.lit(ownerKinds.user))
    .where('user_id', '=', p('userId')),
);

/**
 * A page of the agents that keep memories or a profile of a user, by id, with the number of these memories. Looks once for each agent
 * of the organization, however many users it has.
 */
export async function agentsOfUser(
  db: Handle,
  organizationId: string,
  userId: string,
  { limit, offset }: PageAsked,
): Promise<{
  data: { agent_id: string; memories: number; has_profile: boolean }[];
  total: number;
}> {
  const found = db.kysely
    .selectFrom('agents')
    .innerJoin('memory_owners', (join) =>
      join
        .onRef('memory_owners.organization_id', '=', 'agents.organization_id')
        .on('memory_owners.agent_id', '=', sql<string>`agents.id || '/'`)
        .on('memory_owners.kind', '=', sql.lit(ownerKinds.user))
        .on('memory_owners.user_id', '=', userId)
        .on('memory_owners.removed', '=', sql.lit(0)),
    )
    .leftJoin('profiles', 'profiles.owner', 'memory_owners.id')
    .where('agents.organization_id', '=', organizationId)
    .where(({ eb, or }) =>
      or([eb('memory_owners.count', '>', 0), eb('profiles.owner', 'is not', null)]),
    );
  const total = await countOf(found);
  const rows = await found
    .select(['agents.id as agent_id', 'memory_owners.count', 'profiles.version'])
    .orderBy('agents.id')
    .limit(limit)
    .offset(offset)
    .execute();
  return {
    data: rows.map(({ agent_id, count, version }) => ({
      agent_id,
      memories: Number(count),
      has_profile: version !== null,
    })),
    total,
  };
}

/** The agent of an owner. */
export const findAgentOfOwner = firstRow<{ id: number }>()((db, p) =>
  db.selectFrom('memory_owners').select(['organization_id', 'agent_id']).where('id', '=', p('id')),
);

/** Adds an owner; returns its number. */
export async function insertOwner(tx: Transaction, name: OwnerName): Promise<number> {
  const { id } = await tx.kysely
    .insertInto('memory_owners')
    .values(name)
    .returning('id')
    .executeTakeFirstOrThrow();
  return Number(id);
}

/** Hides the memories of agents from all queries, by `memory_owners.agent_id`. */
export async function removeOwners(
  tx: Transaction,
  organizationId: string,
  agentIds: readonly string[],
) {
  await tx.kysely
    .updateTable('memory_owners')
    .set({ removed: 1 })
    .where('organization_id', '=', organizationId)
    .where('agent_id', 'in', agentIds)
    .where('removed', '=', 0)
    .execute();
}

export const findRemovedOwner = firstRow<object>()((db) =>
  db.selectFrom('memory_owners').select('id').where('removed', '=', sql.lit(1)).limit(1),
);

/** Deletes up to `max` counts of an owner without memories; the owner itself, with its profile, once it has no counts. */
export async function deleteEmptyOwner(tx: Transaction, owner: number, max: number): Promise<void> {
  const tags = await tx.kysely
    .selectFrom('memory_tags')
    .select(['owner', 'tag'])
    .where('owner', '=', owner)
    .limit(max)
    .execute();
  await tx.each(deleteTag, tags);
  if (tags.length > 0) return;
  await deleteProfile(tx, owner);
  await tx.kysely.deleteFrom('memory_owners').where('id', '=', owner).execute();
}

/** Deletes the profile of an owner; returns whether there was one. */
export async function deleteProfile(tx: Transaction, owner: number): Promise<boolean> {
  const deleted = tx.kysely.deleteFrom('profiles').where('owner', '=', owner);
  return Number((await deleted.executeTakeFirst()).numDeletedRows) > 0;
}

const deleteTag = statement<{ owner: number; tag: string }>()((db, p) =>
  db.deleteFrom('memory_tags').where('owner', '=', p('owner')).where('tag', '=', p('tag')),
);

/** How many memories have a tag. */
export async function countOfTag(
  db: Handle,
  owners: readonly number[],
  tag: string,
): Promise<number> {
  if (owners.length === 0) return 0;
  const rows = await db.kysely
    .selectFrom('memory_tags')
    .select('count')
    .where('owner', 'in', owners)
    .where('tag', '=', tag)
    .execute();
  return rows.reduce((sum, { count }) => sum + Number(count), 0);
}

const lowerExpiry = statement<{ owner: number; at: number }>()((db, p) =>
  db
    .updateTable('memory_owners')
    .set({ next_expiry: p('at') })
    .where('id', '=', p('owner'))
    .where(({ eb, or }) => or([eb('next_expiry', 'is', null), eb('next_expiry', '>', p('at'))])),
);

/** An agent or a user with memories that may have expired. */
export const findExpiringOwner = firstRow<{ now: number }>()((db, p) =>
  db
    .selectFrom('memory_owners')
    .select(['id', 'organization_id', 'agent_id'])
    .where('next_expiry', '<=', p('now'))
    .where('kind', '<>', sql.lit(ownerKinds.together))
    .where('removed', '=', sql.lit(0))
    .limit(1),
);

export async function setNextExpiry(tx: Transaction, owner: number, at: number | null) {
  await tx.kysely
    .updateTable('memory_owners')
    .set({ next_expiry: at })
    .where('id', '=', owner)
    .execute();
}

/** Lowers `next_expiry` of these owners to `at`, in milliseconds. */
export function lowerNextExpiry(
  tx: Transaction,
  owners: readonly number[],
  at: number,
): Promise<void> {
  return tx.each(
    lowerExpiry,
    owners.map((owner) => ({ owner, at })),
  );
}

const addToOwner = statement<{ owner: number; by: number }>()((db, p) =>
  db
    .updateTable('memory_owners')
    .set((eb) => ({ count: eb('count', '+', p('by')) }))
    .where('id', '=', p('owner')),
);
const addToTag = statement<{ owner: number; tag: string; by: number }>()((db, p) =>
  db
    .insertInto('memory_tags')
    .values({ owner: p('owner'), tag: p('tag'), count: p('by') })
    .onConflict((conflict) =>
      conflict
        .columns(['owner', 'tag'])
        .doUpdateSet((eb) => ({ count: eb('memory_tags.count', '+', eb.ref('excluded.count')) })),
    ),
);
const deleteUnusedTag = statement<{ owner: number; tag: string }>()((db, p) =>
  db
    .deleteFrom('memory_tags')
    .where('owner', '=', p('owner'))
    .where('tag', '=', p('tag'))
    .where('count', '=', sql.lit(0)),
);

/** Changes the counts of an owner by tag. */
export async function addToCounts(
  tx: Transaction,
  owner: number,
  changes: ReadonlyMap<string, number>,
): Promise<void> {
  const tags = [...changes].map(([tag, by]) => ({ owner, tag, by })).filter(({ by }) => by !== 0);
  if (tags.length === 0) return;
  const by = tags.reduce((sum, one) => sum + one.by, 0);
  await tx.each(addToOwner, [{ owner, by }]);
  await tx.each(addToTag, tags);
  const lessened = tags.filter((one) => one.by < 0);
  await tx.each(deleteUnusedTag, lessened);
}
