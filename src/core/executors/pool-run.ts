/**
 * A run that the pool has accepted, until it is settled: it waits for a child and for the permission to begin, and is
 * then active in one. Promises one outcome.
 */
import type { ActiveRun } from './active-run.ts';
import type { Executor } from './executor.ts';
import type { ChildPool } from './pool.ts';
import type { RunHandle, RunHandlers, RunOutcome, RunRequest } from './run.ts';

export class PoolRun implements RunHandle {
  readonly request: RunRequest;
  readonly handlers: RunHandlers;
  /** Since when it waits for a child, in monotonic milliseconds; undefined if one took it at once. */
  since: number | undefined;
  /** Whether `confirmStart` has to be called before it begins. */
  needsPermission: boolean;
  /** The child that is kept for it, because it must be alone. */
  reserved: Executor | undefined;
  readonly #pool: ChildPool;
  readonly #end = Promise.withResolvers<RunOutcome>();
  #executor: Executor | undefined;
  #active: ActiveRun | undefined;

  constructor(pool: ChildPool, request: RunRequest, handlers: RunHandlers) {
    this.#pool = pool;
    this.request = request;
    this.handlers = handlers;
    this.needsPermission = handlers.confirmStart !== undefined;
  }

  get outcome(): Promise<RunOutcome> {
    return this.#end.promise;
  }

  begin(executor: Executor): void {
    this.#executor = executor;
    this.#active = executor.run(this);
  }

  abort(reason: string): void {
    if (this.#active === undefined) this.#pool.withdraw(this);
    else this.#executor?.abort(this.#active, reason);
  }

  suspend(): void {
    if (this.#active !== undefined) this.#executor?.suspend(this.#active);
  }

  /** To be called once. */
  settle(outcome: RunOutcome): void {
    this.#pool.onEnd(this);
    this.#end.resolve(outcome);
  }

  /** Ends a run that the pool does not take. */
  refuse(): this {
    this.#end.resolve({ kind: 'aborted' });
    return this;
  }
}
