/**
 * Membership of a cluster: every few seconds each process records a heartbeat with its roles and the
 * skills that it has loaded. A process whose last heartbeat is too old counts as gone.
 */
import type { Database } from '../database/database.ts';
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

export function createProcesses(parts: {
  database: Database;
  clock: Clock;
  roles: readonly string[];
  version: string;
  skills: readonly string[];
  /** What this process announces that it can do. */
  capabilities: readonly string[];
}): Processes {
  const { database, clock, roles, version, skills, capabilities } = parts;
  const id = newId();
  const startedAt = clock.now();
  let lastClaimAt = 0;
  let lastJobAt = 0;
  /** Monotonic time of this process's last heartbeat: the age of `live`. */
  let lastBeat = Number.NEGATIVE_INFINITY;
  let live: {
    roles: readonly string[];
    skills: readonly string[];
    capabilities: readonly string[];
    lastClaimAt: number;
  }[] = [];
  const isFresh = () => clock.monotonic() - lastBeat < goneAfterMs;

  return {
    async beat() {
      const now = clock.now();
      await database.write((tx) =>
        recordProcess(tx, {
          id,
          roles: JSON.stringify(roles),
          version,
          skills: JSON.stringify(skills),
          capabilities: JSON.stringify(capabilities),
          started_at: startedAt,
          seen_at: now,
          last_claim_at: lastClaimAt,
          last_job_at: lastJobAt,
        }),
      );
      const rows = await findProcesses(database.read, now - goneAfterMs);
      lastBeat = clock.monotonic();
      live = rows.map((row) => ({
        roles: JSON.parse(row.roles) as string[],
        skills: JSON.parse(row.skills) as string[],
        capabilities: JSON.parse(row.capabilities) as string[],
        lastClaimAt: row.last_claim_at,
      }));
    },
    claimed() {
      lastClaimAt = clock.now();
    },
    begun() {
      lastJobAt = clock.now();
    },
    live: (role) => (isFresh() ? live.filter((one) => one.roles.includes(role)).length : 0),
    canAll: (capability) => isFresh() && live.every((one) => one.capabilities.includes(capability)),
    skills: () => new Set(live.flatMap((one) => one.skills)),
    lastClaimAt: () => Math.max(lastClaimAt, ...live.map((one) => one.lastClaimAt)),
    async list() {
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
    },
    async leave() {
      await database.write((tx) => forgetProcess(tx, id));
    },
    async forgetGone() {
      await database.write((tx) => forgetProcessesBefore(tx, clock.now() - forgottenAfterMs));
    },
  };
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
