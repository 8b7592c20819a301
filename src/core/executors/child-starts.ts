/**
 * Starts the children of a pool and replaces those that end, so that each role has as many as it should.
 * After failed starts the next one waits, and a file of skills that ended a child is left out for a while.
 */
import { SkillLoadError } from '../skills/sources/load-error.ts';
import { type Death, isFault } from './death-attribution.ts';
import { Executor } from './executor.ts';
import type { FoundSkills } from './loading.ts';
import type { ProcessPool } from './process-pool.ts';
import { SnapshotFile } from './snapshot-file.ts';

/** After this many failed starts in a row the next one waits. */
const failedStartsMax = 3;
/** Milliseconds before the start after failedStartsMax failures; doubles up to backoffMsMax. */
const backoffMs = 100;
const backoffMsMax = 10_000;

/** A child takes any run, none yet, one run that must be alone, or no more runs. */
export type Role = 'shared' | 'spare' | 'exclusive' | 'draining';

/** A child of a pool, and what its changes mean for the pool. */
export class PooledChild {
  role: Role;
  /** It checks the skills, records them and reports them. */
  readonly isFirst: boolean;
  /** The port on which it waits for a debugger, or null. */
  readonly port: number | null;
  readonly executor: Executor;
  readonly #processes: ProcessPool;

  /** Starts it. Throws where no process can be started. */
  constructor(processes: ProcessPool, role: Role, isFirst: boolean) {
    const { settings } = processes;
    processes.snapshot ??= new SnapshotFile(settings.clock);
    this.#processes = processes;
    this.role = role;
    this.isFirst = isFirst;
    this.port = freePort(processes);
    this.executor = new Executor(settings, this, processes.snapshot);
    processes.children.add(this);
    processes.guard?.add(this.executor.pid);
  }

  /** It can take runs; `found` are the skills that the first child found, none of the others. */
  onReady(found: FoundSkills): void {
    const processes = this.#processes;
    processes.failedStarts = 0;
    processes.backoffs = 0;
    if (this.isFirst) processes.first.resolve(found);
    // The runs that wait begin before another child is started.
    processes.onReady();
    replenish(processes);
  }

  /** It was ready, and now takes no more runs. */
  onUnavailable(): void {
    this.role = 'draining';
    replenish(this.#processes);
  }

  /** Its process is gone and all its runs are settled. `startFailure` says why it was never ready. */
  onGone(death: Death, startFailure: Error | undefined): void {
    const processes = this.#processes;
    processes.children.delete(this);
    processes.guard?.remove(this.executor.pid);
    if (isFault(death)) processes.deaths += 1;
    if (this.isFirst && startFailure !== undefined) refuse(processes, startFailure);
    else if (isFault(death) && startFailure !== undefined) onFailedStart(processes, startFailure);
    replenish(processes);
    if (processes.isStopped && processes.children.size === 0) processes.emptied.resolve();
  }

  /** Whether one more child may drain. */
  mayDrain(): boolean {
    return countOf(this.#processes, 'draining') < this.#processes.settings.size;
  }
}

/** How many shared children there should be. */
export function sharedWanted({ isGrown, shared }: ProcessPool): number {
  return isGrown ? shared : 0;
}

/** How many spares there should be. A run may be waiting for the first shared child, so the spare of later starts after it. */
export function sparesWanted(processes: ProcessPool): number {
  const { isGrown, wantedAlone, settings } = processes;
  if (!isGrown) return 0;
  const canWait = findChild(processes, isReadyToShare) === undefined;
  const kept = canWait || settings.inspectPort !== null ? 0 : 1;
  return Math.max(kept, wantedAlone);
}

function isReadyToShare({ role, executor }: PooledChild): boolean {
  return role === 'shared' && executor.isReady;
}

export function findChild(
  { children }: ProcessPool,
  test: (child: PooledChild) => boolean,
): PooledChild | undefined {
  for (const child of children) if (test(child)) return child;
  return undefined;
}

export function countOf({ children }: ProcessPool, role: Role): number {
  let count = 0;
  for (const child of children) if (child.role === role) count += 1;
  return count;
}

export function isStarting({ role, executor }: PooledChild): boolean {
  return role !== 'draining' && !executor.isReady;
}

/** Restores the number of children: promotes the spare, then starts new children. */
export function replenish(processes: ProcessPool): void {
  const wanted = sharedWanted(processes);
  for (let shared = countOf(processes, 'shared'); shared < wanted; shared++) {
    const spare = findChild(processes, (child) => child.role === 'spare');
    if (spare !== undefined) spare.role = 'shared';
    else if (mayFork(processes)) fork(processes, 'shared', false);
  }
  const spares = sparesWanted(processes);
  for (let spare = countOf(processes, 'spare'); spare < spares; spare++) {
    if (mayFork(processes)) fork(processes, 'spare', false);
  }
}

/** After failed starts, children are started one at a time. */
function mayFork(processes: ProcessPool): boolean {
  if (processes.isStopped || processes.retryTimer !== undefined) return false;
  return processes.failedStarts < failedStartsMax || findChild(processes, isStarting) === undefined;
}

export function fork(processes: ProcessPool, role: Role, isFirst: boolean): void {
  try {
    new PooledChild(processes, role, isFirst);
  } catch (error) {
    const failure = error as Error;
    // There is no process whose exit would trigger the next start, so the backoff timer must.
    processes.failedStarts = Math.max(processes.failedStarts, failedStartsMax - 1);
    if (isFirst) refuse(processes, failure);
    else onFailedStart(processes, failure);
  }
}

/** The lowest port that no child has; null without debugging. */
function freePort(processes: ProcessPool): number | null {
  let port = processes.settings.inspectPort;
  if (port === null) return null;
  const taken = new Set(Array.from(processes.children, (child) => child.port));
  while (taken.has(port)) port += 1;
  return port;
}

/** The first child is not retried: the operator should see a mistake in a skill at once. */
function refuse(processes: ProcessPool, failure: Error): void {
  processes.isStopped = true;
  processes.first.reject(failure);
}

function onFailedStart(processes: ProcessPool, failure: Error): void {
  const { log } = processes.settings;
  processes.failedStarts += 1;
  if (failure instanceof SkillLoadError) {
    const facts = { file: failure.file, error: failure.message };
    log.warn(facts, 'a skill ended the executor that loaded it; its runs fail for a while');
    processes.snapshot?.setAside(failure.file);
  }
  const { failedStarts } = processes;
  if (failedStarts < failedStartsMax || processes.retryTimer !== undefined) return;
  if (processes.isStopped) return;
  const ms = Math.min(backoffMs * 2 ** processes.backoffs, backoffMsMax);
  processes.backoffs += 1;
  log.error({ error: failure.message, failedStarts, ms }, 'executors do not start');
  processes.retryTimer = setTimeout(() => {
    processes.retryTimer = undefined;
    replenish(processes);
  }, ms);
}
