/** This process, as the list of processes shows it. An embedded platform is this process alone, without heartbeats. */
import type { ProcessesTable } from '../../adapters/database/tables.ts';
import type { RunObserver } from '../../core/context/run-observer.ts';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import type { JobQueue } from '../../core/jobs/queues.ts';
import type { Turns } from '../../core/jobs/turns/turns.ts';
import { skillKey } from '../../core/skills/registry.ts';
import { type Clock, timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { newId } from '../../kernel/ids.ts';

/** A process as the API shows it. */
export type LiveProcess = ReturnType<typeof processView>;

export interface ProcessFacts {
  readonly roles: readonly string[];
  readonly version: string;
  /** Null in a process without workers. */
  readonly executors: ExecutorPool | null;
  /** The turns by queue. */
  readonly turns: ReadonlyMap<JobQueue, Turns>;
}

/** The slots of a worker, by queue. */
export type SlotsOfWorker = Readonly<Record<JobQueue, ReturnType<Turns['use']>>>;

/** A live process with the role worker. */
export interface LiveWorker {
  readonly skills: readonly string[];
  readonly slots: SlotsOfWorker;
}

export class ThisProcess implements RunObserver {
  readonly id = newId();
  readonly facts: ProcessFacts;
  readonly startedAt: number;
  readonly #clock: Clock;
  #claimedAt = 0;
  #begunAt = 0;

  constructor(clock: Clock, facts: ProcessFacts) {
    this.#clock = clock;
    this.facts = facts;
    this.startedAt = clock.now();
  }

  /** When this process last claimed a job from a queue; 0 before the first. */
  get claimedAt(): number {
    return this.#claimedAt;
  }

  /** When this process last began a job; 0 before the first. */
  get begunAt(): number {
    return this.#begunAt;
  }

  /** Records that this process has claimed a job from a queue. */
  claimed(): void {
    this.#claimedAt = this.#clock.now();
  }

  /** Records that this process has begun a job, from a queue or as it accepted the job. */
  begun(): void {
    this.#begunAt = this.#clock.now();
  }

  /** The loaded skills, which change at a reload. */
  loadedSkills(): string[] {
    return (this.facts.executors?.definitions ?? []).map(({ category, version, name }) =>
      skillKey(category, version, name),
    );
  }

  /** The slots of this process. */
  slots(): SlotsOfWorker {
    const uses = [...this.facts.turns].map(([queue, turns]) => [queue, turns.use()]);
    return Object.fromEntries(uses) as SlotsOfWorker;
  }

  /** The live workers. */
  async workers(): Promise<LiveWorker[]> {
    if (!this.facts.roles.includes('worker')) return [];
    return [{ skills: this.loadedSkills(), slots: this.slots() }];
  }

  /** The live processes. */
  async list(): Promise<LiveProcess[]> {
    const { id, facts } = this;
    const row = {
      id,
      roles: facts.roles,
      version: facts.version,
      skills: this.loadedSkills(),
      started_at: this.startedAt,
      seen_at: this.#clock.now(),
      last_claim_at: this.#claimedAt,
      last_job_at: this.#begunAt,
    };
    return [processView(row)];
  }
}

type ShownColumns = 'id' | 'version' | 'started_at' | 'seen_at' | 'last_claim_at' | 'last_job_at';

/** `last_claim_at` and `last_job_at` are 0 before the first. */
export function processView(
  row: Pick<ProcessesTable, ShownColumns> &
    Pick<ProcessFacts, 'roles'> & { readonly skills: readonly string[] },
) {
  return {
    id: row.id,
    roles: row.roles.toSorted(),
    version: row.version,
    skills: row.skills.toSorted(),
    started_at: timestamp(row.started_at),
    seen_at: timestamp(row.seen_at),
    last_claim_at: timestampOrNull(row.last_claim_at || null),
    last_job_at: timestampOrNull(row.last_job_at || null),
  };
}
