/**
 * Profiles: one text for each user of an agent, which is always in the prompt of the agent's model in runs for that user.
 * Each writer locks the agent first, as for memories.
 */
import type { Database, Handle, Transaction } from '../../adapters/database/database.ts';
import { type Clock, timestamp } from '../../kernel/clock.ts';
import { invalid, PlatformError } from '../../kernel/errors.ts';
import { type AgentRow, profileOf } from '../agents/agent-rows.ts';
import type { Agents } from '../agents/agents.ts';
import { profileBytes, profileBytesDefault } from '../agents/setting-bounds.ts';
import type { Context } from '../context/context.ts';
import type { Owning } from '../embeddings/request.ts';
import { deleteProfile } from './owners.store.ts';
import { ownerFor, usersOf } from './owners.ts';
import { mergedProfile, type ProfileOfRun } from './profile-merge.ts';
import { insertProfile, type ProfileRow, profileOfUser, updateProfile } from './profiles.store.ts';
import { insertAll, newMemory } from './record.ts';

/** No profile has more characters than bytes. */
export const profileCharactersMax = profileBytes.maximum;

/** The user of an agent whose profile it is. */
export interface OfProfile extends Owning {
  readonly userId: string;
}

/** What the agent knows of a user; undefined for nothing. */
export function findProfile(
  db: Handle,
  { organizationId, agentId }: Owning,
  userId: string,
): Promise<ProfileRow | undefined> {
  return profileOfUser(db, { organizationId, usersOf: usersOf(agentId), userId });
}

/** The profiles that the agents of all organizations keep of their users. */
export class Profiles {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #agents: Agents;

  constructor({ database, clock }: Context, agents: Agents) {
    this.#database = database;
    this.#clock = clock;
    this.#agents = agents;
  }

  /** `404 not_found` for an agent that does not exist. */
  async findAgent({ organizationId, agentId }: Owning): Promise<void> {
    await this.#agents.find(organizationId, agentId);
  }

  /** The profile; an empty one of the version 0 where there is none. */
  async get(of: OfProfile) {
    const row = await findProfile(this.#database.read, of, of.userId);
    return profileView(of.agentId, of.userId, row);
  }

  /** Replaces the profile; `409 conflict` where `version` is given and is not that of the present one, 0 for none. */
  put(of: OfProfile, content: string, version: number | undefined) {
    return this.#database.write(async (tx) => {
      const agent = await this.#agents.lock(tx, of.organizationId, of.agentId);
      requireBytes(content, profileBytesOf(agent));
      const before = await findProfile(tx, of, of.userId);
      requireVersion(version, before?.version ?? 0);
      const row = await writeProfile(tx, of, before, { content, now: this.#clock.now() });
      return profileView(of.agentId, of.userId, row);
    });
  }

  /** Deletes the profile, if there is one. */
  remove(of: OfProfile): Promise<void> {
    return this.#database.write(async (tx) => {
      await this.#agents.lock(tx, of.organizationId, of.agentId);
      const row = await findProfile(tx, of, of.userId);
      if (row !== undefined) await deleteProfile(tx, row.owner);
    });
  }
}

/**
 * Records what a completed run has made of a profile. What others have changed since the run saw it stays: of two runs at
 * once none undoes the other's changes. Lines that the profile has no room for become a memory of the user. The agent is
 * locked.
 */
export async function keepProfile(
  tx: Transaction,
  of: OfProfile,
  change: ProfileOfRun,
  { maxBytes, now }: { readonly maxBytes: number; readonly now: number },
): Promise<void> {
  const before = await findProfile(tx, of, of.userId);
  const { content, rest } = mergedProfile(change, before?.content ?? '', maxBytes);
  if (rest !== '') {
    const ofRun = {
      job_id: change.jobId,
      conversation_id: change.conversationId,
      step: null,
      message_id: null,
    };
    const source = { ...ofRun, of_user: of.userId };
    const memory = newMemory({ content: rest, tag: 'profile' }, { now, userId: of.userId, source });
    await insertAll(tx, of, [memory]);
  }
  if (content === (before?.content ?? '')) return;
  if (content !== '') await writeProfile(tx, of, before, { content, now, writer: change });
  else if (before !== undefined) await deleteProfile(tx, before.owner);
}

async function writeProfile(
  tx: Transaction,
  of: OfProfile,
  before: ProfileRow | undefined,
  { content, now, writer }: { content: string; now: number; writer?: ProfileOfRun },
): Promise<ProfileRow> {
  const source = { job_id: writer?.jobId ?? null, conversation_id: writer?.conversationId ?? null };
  if (before === undefined) {
    const owner = await ownerFor(tx, of, of.userId);
    const moments = { created_at: now, updated_at: now };
    const row = { owner: owner.id, content, version: 1, ...moments, ...source };
    await insertProfile(tx, row);
    return row;
  }
  // Strictly increasing, even if the clock was set back.
  const updated_at = Math.max(now, before.updated_at + 1);
  const row = { ...before, content, version: before.version + 1, updated_at, ...source };
  await updateProfile(tx, row);
  return row;
}

/** The most bytes of a profile that an agent keeps. */
export const profileBytesOf = (agent: Pick<AgentRow, 'profile'>) =>
  profileOf(agent)?.max_bytes ?? profileBytesDefault;

function requireBytes(content: string, max: number): void {
  const bytes = Buffer.byteLength(content);
  if (bytes <= max) return;
  throw invalid('content', `has ${bytes} bytes; a profile of this agent has at most ${max}`);
}

function requireVersion(version: number | undefined, present: number): void {
  if (version === undefined || version === present) return;
  throw new PlatformError(
    'conflict',
    `The profile has changed since version ${version}: read it again, and send its version ${present} with your change`,
  );
}

const noProfile = { content: '', version: 0, created_at: null, updated_at: null, source: null };

/** A profile as clients see it. */
export function profileView(agent_id: string, user_id: string, row: ProfileRow | undefined) {
  if (row === undefined) return { agent_id, user_id, ...noProfile };
  const { content, version, created_at, updated_at, job_id, conversation_id } = row;
  return {
    agent_id,
    user_id,
    content,
    version,
    created_at: timestamp(created_at),
    updated_at: timestamp(updated_at),
    source: job_id === null ? null : { job_id, conversation_id: conversation_id ?? '' },
  };
}
