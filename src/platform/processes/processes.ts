/**
 * Membership of a cluster: every few seconds each process records a heartbeat with its roles and the
 * skills that it has loaded. A process whose last heartbeat is too old counts as gone.
 */
import type { Database } from '../../adapters/database/database.ts';
import type { ProcessesTable } from '../../adapters/database/tables.ts';
import type { Context } from '../../core/context/context.ts';
import type { Clock } from '../../kernel/clock.ts';
import {
  findProcesses,
  forgetProcess,
  forgetProcessesBefore,
  recordProcess,
} from './processes.store.ts';
import {
  type LiveProcess,
  type LiveWorker,
  type ProcessFacts,
  processView,
  type SlotsOfWorker,
  ThisProcess,
} from './this-process.ts';

/** Time between two heartbeats. */
export const beatEveryMs = 3_000;
/** Age of the last heartbeat at which a process counts as gone: a few beats, and room for a slow database. */
const goneAfterMs = 15_000;
/** Rows of processes that ended without `leave` are kept for so long. */
const forgottenAfterMs = 60 * 60 * 1000;

/** What the last heartbeat read of a live process. */
type Member = ReturnType<typeof memberOf>;

export class Processes extends ThisProcess {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #capabilities: readonly string[];
  /** Monotonic time of this process's last heartbeat: the age of the members. */
  #lastBeat = Number.NEGATIVE_INFINITY;
  #members: readonly Member[] = [];

  /** `capabilities`: those that this process announces. */
  constructor({ database, clock }: Context, facts: ProcessFacts, capabilities: readonly string[]) {
    super(clock, facts);
    this.#database = database;
    this.#clock = clock;
    this.#capabilities = capabilities;
  }

  /** Records a heartbeat of this process, and reads those of the others. */
  async beat(): Promise<void> {
    const now = this.#clock.now();
    await this.#database.write((tx) => recordProcess(tx, this.#rowAt(now)));
    const rows = await findProcesses(this.#database.read, { since: now - goneAfterMs });
    this.#lastBeat = this.#clock.monotonic();
    this.#members = rows.map(memberOf);
  }

  #rowAt(now: number) {
    const { facts } = this;
    return {
      id: this.id,
      roles: JSON.stringify(facts.roles),
      version: facts.version,
      skills: JSON.stringify(this.loadedSkills()),
      capabilities: JSON.stringify(this.#capabilities),
      slots: JSON.stringify(this.slots()),
      started_at: this.startedAt,
      last_claim_at: this.claimedAt,
      last_job_at: this.begunAt,
      seen_at: now,
    };
  }

  /** How many live processes have a role; 0 when this process could not read them for a while. */
  live(role: string): number {
    if (!this.#isFresh()) return 0;
    return this.#members.filter((member) => member.roles.includes(role)).length;
  }

  /**
   * Whether every live process announces a capability; false when this process could not read them for a
   * while. A process of a version that does not know the capability announces nothing.
   */
  canAll(capability: string): boolean {
    if (!this.#isFresh()) return false;
    return this.#members.every((member) => member.capabilities.includes(capability));
  }

  /** Whether this process has read the others recently enough to know them. */
  #isFresh(): boolean {
    return this.#clock.monotonic() - this.#lastBeat < goneAfterMs;
  }

  /** Skills that any live process has loaded. */
  skills(): ReadonlySet<string> {
    return new Set(this.#members.flatMap((member) => member.skills));
  }

  /** When any live process last claimed a job, as of the last heartbeat. */
  lastClaimAt(): number {
    return Math.max(this.claimedAt, ...this.#members.map((member) => member.lastClaimAt));
  }

  /** The live processes, read from the database now, the oldest first. */
  override async list(): Promise<LiveProcess[]> {
    const since = this.#clock.now() - goneAfterMs;
    const rows = await findProcesses(this.#database.read, { since });
    return rows
      .toSorted((a, b) => a.started_at - b.started_at || (a.id < b.id ? -1 : 1))
      .map((row) => processView({ ...row, ...memberOf(row) }));
  }

  /** The live workers, read from the database now; the slots of this one are the present ones. */
  override async workers(): Promise<LiveWorker[]> {
    const since = this.#clock.now() - goneAfterMs;
    const rows = await findProcesses(this.#database.read, { since });
    return rows
      .map((row) => ({ ...memberOf(row), id: row.id, slots: slotsOf(row) }))
      .filter(({ roles }) => roles.includes('worker'))
      .map(({ id, skills, slots }) => ({ skills, slots: id === this.id ? this.slots() : slots }));
  }

  /** Deletes this process's row, before the process ends. */
  async leave(): Promise<void> {
    await this.#database.write((tx) => forgetProcess(tx, this.id));
  }

  /** Deletes the rows of processes that ended without `leave`. */
  async forgetGone(): Promise<void> {
    const before = this.#clock.now() - forgottenAfterMs;
    await this.#database.write((tx) => forgetProcessesBefore(tx, before));
  }
}

const slotsOf = ({ slots }: ProcessesTable) => JSON.parse(slots) as SlotsOfWorker;

function memberOf(row: ProcessesTable) {
  return {
    roles: JSON.parse(row.roles) as string[],
    skills: JSON.parse(row.skills) as string[],
    capabilities: JSON.parse(row.capabilities) as string[],
    lastClaimAt: row.last_claim_at,
  };
}
