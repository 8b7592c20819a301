/**
 * Membership of a cluster: every few seconds each process records a heartbeat with its roles and the
 * skills that it has loaded. A process whose last heartbeat is too old counts as gone.
 */
import type { Database } from '../database/database.ts';
import { bind } from '../kernel/bind.ts';
import { type Clock, timestamp, timestampOrNull } from '../kernel/clock.ts';
import { newId } from '../kernel/ids.ts';
import {
  findProcesses,
  forgetProcess,
  forgetProcessesBefore,
  recordProcess,
} from './processes.store.ts';

/** Time between two heartbeats. */
export const beatEveryMs = 3_000;
/** Age of the last heartbeat at which a process counts as gone: a few beats, and room for a slow database. */
const goneAfterMs = 15_000;
/** Rows of processes that ended without `leave` are kept for so long. */
const forgottenAfterMs = 60 * 60 * 1000;

/** A process as the API shows it. */
export type LiveProcess = ReturnType<typeof processView>;

export interface Processes {
  /** Records a heartbeat of this process, and reads those of the others. */
  beat(): Promise<void>;
  /** Notes that this process has claimed a job from a queue. */
  claimed(): void;
  /** Notes that this process has begun a job, from a queue or as it accepted the job. */
  begun(): void;
  /** How many live processes have a role; 0 when this process could not read them for a while. */
  live(role: string): number;
  /** Skills that any live process has loaded. */
  skills(): ReadonlySet<string>;
  /**
   * Whether every live process announces a capability; false when this process could not read them for a
   * while. A process of a version that does not know the capability announces nothing.
   */
  canAll(capability: string): boolean;
  /** When any live process last claimed a job, as of the last heartbeat. */
  lastClaimAt(): number;
  /** The live processes, read from the database now, the oldest first. */
  list(): Promise<LiveProcess[]>;
  /** Deletes this process's row, before the process ends. */
  leave(): Promise<void>;
  /** Deletes the rows of processes that ended without `leave`. */
  forgetGone(): Promise<void>;
}

export interface ProcessesDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly roles: readonly string[];
  readonly version: string;
  readonly skills: readonly string[];
  /** What this process announces that it can do. */
  readonly capabilities: readonly string[];
}

/** What the last heartbeat read of a live process. */
interface Member {
  readonly roles: readonly string[];
  readonly skills: readonly string[];
  readonly capabilities: readonly string[];
  readonly lastClaimAt: number;
}

interface Membership extends ProcessesDeps {
  readonly id: string;
  readonly startedAt: number;
  lastClaimAt: number;
  lastJobAt: number;
  /** Monotonic time of this process's last heartbeat: the age of `members`. */
  lastBeat: number;
  members: readonly Member[];
}

export function createProcesses(deps: ProcessesDeps): Processes {
  const membership: Membership = {
    ...deps,
    id: newId(),
    startedAt: deps.clock.now(),
    lastClaimAt: 0,
    lastJobAt: 0,
    lastBeat: Number.NEGATIVE_INFINITY,
    members: [],
  };
  return bind(membership, {
    beat,
    claimed,
    begun,
    live: countLive,
    skills: skillsOf,
    canAll,
    lastClaimAt: lastClaimOf,
    list,
    leave,
    forgetGone,
  });
}

async function beat(membership: Membership): Promise<void> {
  const { database, clock } = membership;
  const now = clock.now();
  await database.write((tx) =>
    recordProcess(tx, {
      id: membership.id,
      roles: JSON.stringify(membership.roles),
      version: membership.version,
      skills: JSON.stringify(membership.skills),
      capabilities: JSON.stringify(membership.capabilities),
      started_at: membership.startedAt,
      seen_at: now,
      last_claim_at: membership.lastClaimAt,
      last_job_at: membership.lastJobAt,
    }),
  );
  const rows = await findProcesses(database.read, now - goneAfterMs);
  membership.lastBeat = clock.monotonic();
  membership.members = rows.map((row) => ({
    roles: JSON.parse(row.roles) as string[],
    skills: JSON.parse(row.skills) as string[],
    capabilities: JSON.parse(row.capabilities) as string[],
    lastClaimAt: row.last_claim_at,
  }));
}

function claimed(membership: Membership): void {
  membership.lastClaimAt = membership.clock.now();
}

function begun(membership: Membership): void {
  membership.lastJobAt = membership.clock.now();
}

function countLive(membership: Membership, role: string): number {
  if (!isFresh(membership)) return 0;
  return membership.members.filter((member) => member.roles.includes(role)).length;
}

function canAll(membership: Membership, capability: string): boolean {
  if (!isFresh(membership)) return false;
  return membership.members.every((member) => member.capabilities.includes(capability));
}

/** Whether this process has read the others recently enough to know them. */
function isFresh(membership: Membership): boolean {
  return membership.clock.monotonic() - membership.lastBeat < goneAfterMs;
}

function skillsOf({ members }: Membership): ReadonlySet<string> {
  return new Set(members.flatMap((member) => member.skills));
}

function lastClaimOf(membership: Membership): number {
  const { members } = membership;
  return Math.max(membership.lastClaimAt, ...members.map((member) => member.lastClaimAt));
}

async function list({ database, clock }: Membership): Promise<LiveProcess[]> {
  const rows = await findProcesses(database.read, clock.now() - goneAfterMs);
  return rows
    .toSorted((a, b) => a.started_at - b.started_at || (a.id < b.id ? -1 : 1))
    .map((row) =>
      processView({
        id: row.id,
        roles: JSON.parse(row.roles) as string[],
        version: row.version,
        skills: JSON.parse(row.skills) as string[],
        startedAt: row.started_at,
        seenAt: row.seen_at,
        lastClaimAt: row.last_claim_at,
        lastJobAt: row.last_job_at,
      }),
    );
}

async function leave({ database, id }: Membership): Promise<void> {
  await database.write((tx) => forgetProcess(tx, id));
}

async function forgetGone({ database, clock }: Membership): Promise<void> {
  await database.write((tx) => forgetProcessesBefore(tx, clock.now() - forgottenAfterMs));
}

/** `lastClaimAt` and `lastJobAt` are 0 before the first. */
export function processView(process: {
  id: string;
  roles: readonly string[];
  version: string;
  skills: readonly string[];
  startedAt: number;
  seenAt: number;
  lastClaimAt: number;
  lastJobAt: number;
}) {
  const { id, roles, version, skills, startedAt, seenAt, lastClaimAt, lastJobAt } = process;
  return {
    id,
    roles: roles.toSorted(),
    version,
    skills: skills.toSorted(),
    started_at: timestamp(startedAt),
    heard_at: timestamp(seenAt),
    last_claim_at: timestampOrNull(lastClaimAt === 0 ? null : lastClaimAt),
    last_job_at: timestampOrNull(lastJobAt === 0 ? null : lastJobAt),
  };
}
