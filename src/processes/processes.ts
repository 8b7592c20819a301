/**
 * The processes of a cluster, of each other: every one says every few seconds that it is there, what
 * it does and which skills it has loaded. Who has not been heard of for a while counts as gone.
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

/** Between two beats. */
export const beatEveryMs = 3_000;
/** Silence after which a process counts as gone: a few beats, and room for a slow database. */
const goneAfterMs = 15_000;
/** Rows of processes that ended without a word are kept for so long. */
const forgottenAfterMs = 60 * 60 * 1000;

/** A process as the API shows it. */
export type LiveProcess = ReturnType<typeof shownProcess>;

export interface Processes {
  /** Says that this process is there, and learns who else is. */
  beat(): Promise<void>;
  /** Notes that this process has claimed work. */
  claimed(): void;
  /** How many processes of a role there are; none, when this one has long not been able to ask. */
  live(role: string): number;
  /** Skills that any of them has loaded. */
  skills(): ReadonlySet<string>;
  /** When any of them last claimed a job, as far as is known. */
  lastClaimAt(): number;
  /** Those that are there, as far as the database knows just now, the oldest first. */
  list(): Promise<LiveProcess[]>;
  /** Says that this process is about to end. */
  leave(): Promise<void>;
  /** Deletes what is kept of those that ended without a word. */
  forgetGone(): Promise<void>;
}

export function createProcesses(parts: {
  database: Database;
  clock: Clock;
  roles: readonly string[];
  version: string;
  skills: readonly string[];
}): Processes {
  const { database, clock, roles, version, skills } = parts;
  const id = newId();
  const startedAt = clock.now();
  let lastClaimAt = 0;
  /** Of this process, by its own clock: after it, what is known of the others has aged. */
  let lastBeat = Number.NEGATIVE_INFINITY;
  let live: { roles: readonly string[]; skills: readonly string[]; lastClaimAt: number }[] = [];

  return {
    async beat() {
      const now = clock.now();
      await database.write((tx) =>
        recordProcess(tx, {
          id,
          roles: JSON.stringify(roles),
          version,
          skills: JSON.stringify(skills),
          started_at: startedAt,
          seen_at: now,
          last_claim_at: lastClaimAt,
        }),
      );
      const rows = await findProcesses(database.read, now - goneAfterMs);
      lastBeat = clock.monotonic();
      live = rows.map((row) => ({
        roles: JSON.parse(row.roles) as string[],
        skills: JSON.parse(row.skills) as string[],
        lastClaimAt: row.last_claim_at,
      }));
    },
    claimed() {
      lastClaimAt = clock.now();
    },
    live: (role) =>
      clock.monotonic() - lastBeat < goneAfterMs
        ? live.filter((one) => one.roles.includes(role)).length
        : 0,
    skills: () => new Set(live.flatMap((one) => one.skills)),
    lastClaimAt: () => Math.max(lastClaimAt, ...live.map((one) => one.lastClaimAt)),
    async list() {
      const rows = await findProcesses(database.read, clock.now() - goneAfterMs);
      return rows
        .toSorted((a, b) => a.started_at - b.started_at || (a.id < b.id ? -1 : 1))
        .map((row) =>
          shownProcess({
            id: row.id,
            roles: JSON.parse(row.roles) as string[],
            version: row.version,
            skills: JSON.parse(row.skills) as string[],
            startedAt: row.started_at,
            seenAt: row.seen_at,
            lastClaimAt: row.last_claim_at,
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

/** `lastClaimAt` is 0 before the first. */
export function shownProcess(process: {
  id: string;
  roles: readonly string[];
  version: string;
  skills: readonly string[];
  startedAt: number;
  seenAt: number;
  lastClaimAt: number;
}) {
  const { id, roles, version, skills, startedAt, seenAt, lastClaimAt } = process;
  return {
    id,
    roles: roles.toSorted(),
    version,
    skills: skills.toSorted(),
    started_at: timestamp(startedAt),
    heard_at: timestamp(seenAt),
    last_claim_at: timestampOrNull(lastClaimAt === 0 ? null : lastClaimAt),
  };
}
