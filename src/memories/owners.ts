/**
 * The owners of memories: the agent itself, each of its users, and all its users together. A memory of a
 * user is counted and indexed for the user and for all together, so that what is seen is at most two owners:
 * of a run those of the agent and of its user, of a client those of the agent and of all its users.
 */
import type { Handle, Transaction } from '../database/database.ts';
import {
  findOwners,
  insertOwner,
  type Owner,
  type OwnerName,
  type OwnerRow,
  ownerKinds,
  removeOwners,
} from './owners.store.ts';

/** The agent whose memories are meant. */
export interface Owning {
  readonly organizationId: string;
  readonly agentId: string;
}

/** Whose memories are looked at: a user's, the agent's own where null, or all. */
export type OfUser = string | null | undefined;

/** Names of agents have no slash. */
export const usersOf = (agentId: string) => `${agentId}/`;

/** The owners of what a client asks for; fewer where there never was a memory. */
export async function ownersOf(
  db: Handle,
  owning: Owning,
  userId: OfUser,
): Promise<readonly OwnerRow[]> {
  const rows = await ownersSeen(db, owning, userId);
  return typeof userId === 'string' ? rows.filter(({ kind }) => kind !== ownerKinds.agent) : rows;
}

/** The agent's own, and those of a user; of all users where it is undefined. */
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
    // No user's name where only the agent's own are asked for.
    user_id: userId ?? '',
  });
}

/** The owner of new memories, made where it is the first one. The agent is locked. */
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

/** From now on no query finds the memories of this agent and of its users. */
export async function markRemoved(tx: Transaction, organizationId: string, agentId: string) {
  await removeOwners(tx, organizationId, [agentId, usersOf(agentId)]);
}
