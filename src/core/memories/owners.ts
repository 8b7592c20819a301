/**
 * The owners of memories: the agent itself, each of its users, and all its users together. A memory of a user is
 * counted and indexed under the user and under all users together, so every search covers at most two owners: a run
 * searches the agent and its user, a client the agent and all its users.
 */
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { Owning } from '../embeddings/request.ts';
import {
  findOwners,
  insertOwner,
  type Owner,
  type OwnerName,
  type OwnerRow,
  ownerKinds,
  removeOwners,
} from './owners.store.ts';

export type { Owning };

/** Whose memories are read: a user's; the agent's own if null; all if undefined. */
export type OfUser = string | null | undefined;

/** `memory_owners.agent_id` of the users of an agent. Unambiguous, because ids of agents contain no slash. */
export const usersOf = (agentId: string) => `${agentId}/`;

/** The owners of a client's request; an owner that never had a memory is missing. */
export async function ownersOf(
  db: Handle,
  owning: Owning,
  userId: OfUser,
): Promise<readonly OwnerRow[]> {
  const rows = await ownersSeen(db, owning, userId);
  return typeof userId === 'string' ? rows.filter(({ kind }) => kind !== ownerKinds.agent) : rows;
}

/** The agent itself and a user; all users if `userId` is undefined. */
export function ownersSeen(
  db: Handle,
  { organizationId, agentId }: Owning,
  userId: OfUser,
): Promise<readonly OwnerRow[]> {
  return findOwners(db, {
    organization_id: organizationId,
    agent_id: agentId,
    users_agent_id: usersOf(agentId),
    kind: userId === undefined ? ownerKinds.together : ownerKinds.user,
    // Matches no user if only the agent's own memories are asked for.
    user_id: userId ?? '',
  });
}

/** The owner of new memories; adds it if it is new. The caller has locked the agent. */
export async function ownerFor(
  tx: Transaction,
  owning: Owning,
  userId: string | null,
): Promise<Owner> {
  if (userId === null) {
    const name = { ...nameOf(owning), kind: ownerKinds.agent, user_id: '' } as const;
    return { id: await idFor(tx, name), together: null };
  }
  const users = { ...nameOf(owning), agent_id: usersOf(owning.agentId) };
  const id = await idFor(tx, { ...users, kind: ownerKinds.user, user_id: userId });
  const together = await idFor(tx, { ...users, kind: ownerKinds.together, user_id: '' });
  return { id, together };
}

async function idFor(tx: Transaction, name: OwnerName): Promise<number> {
  const found = await findOwners(tx, { ...name, users_agent_id: name.agent_id });
  return found.find(({ kind }) => kind === name.kind)?.id ?? (await insertOwner(tx, name));
}

/** The agent of an owner. */
export const agentOf = ({
  organization_id: organizationId,
  agent_id,
}: Pick<OwnerName, 'organization_id' | 'agent_id'>): Owning => ({
  organizationId,
  agentId: agent_id.replace('/', ''),
});

const nameOf = ({ organizationId, agentId }: Owning) => ({
  organization_id: organizationId,
  agent_id: agentId,
});

/** Hides the memories of this agent and its users from all queries. */
export async function markRemoved(tx: Transaction, organizationId: string, agentId: string) {
  await removeOwners(tx, organizationId, [agentId, usersOf(agentId)]);
}
