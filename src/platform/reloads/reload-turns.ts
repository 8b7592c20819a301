/**
 * Reloads of all processes of a platform: one process after the other, led by the one that got the request. A
 * process that refuses ends the reload, so the first one finds a fault, which leaves all others as they were.
 * Promises that one process leads at a time, and that it goes on within seconds when another does not answer.
 * Messages may be lost: a process that does not answer counts as refused, and nothing waits for it.
 */
import type { RedisLock } from '../../adapters/redis/lock.ts';
import type { Context } from '../../core/context/context.ts';
import type { Listening } from '../../kernel/bus.ts';
import { timestamp } from '../../kernel/clock.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { ThisProcess } from '../processes/this-process.ts';
import {
  noReload,
  type ReloadResult,
  type ReloadState,
  type ReloadTrigger,
} from './reload.schemas.ts';
import type { LocalReloads } from './reload.ts';

/** Milliseconds between two signs of a process that it is reloading. */
const signEveryMs = 1_000;
/** Milliseconds without a sign after which the leader gives a process up. */
const silentMs = 10_000;

type ReloadMessage =
  | { readonly kind: 'turn'; readonly turn: string; readonly process: string }
  | { readonly kind: 'working'; readonly turn: string }
  | { readonly kind: 'result'; readonly turn: string; readonly result: ReloadResult }
  | { readonly kind: 'state'; readonly state: ReloadState };

/** A turn that this process has given to another one: waits for its result for as long as it gives signs. */
class ReloadTurn {
  readonly #result = Promise.withResolvers<ReloadResult | undefined>();
  #timer = this.#startTimer();

  #startTimer() {
    return setTimeout(() => this.end(undefined), silentMs);
  }

  sign(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#startTimer();
  }

  end(result: ReloadResult | undefined): void {
    clearTimeout(this.#timer);
    this.#result.resolve(result);
  }

  /** Undefined when the process does not answer. */
  result(): Promise<ReloadResult | undefined> {
    return this.#result.promise;
  }
}

export class Reloads {
  readonly #context: Context;
  readonly #processes: ThisProcess;
  /** Null in a process that runs no skills. */
  readonly #local: LocalReloads | null;
  /** The right to lead a reload, held by one process; null where the platform is one process. */
  readonly #lock: RedisLock | null;
  #last: ReloadState;
  readonly #turns = new Map<string, ReloadTurn>();
  readonly #listening: Listening | undefined;

  constructor(
    context: Context,
    processes: ThisProcess,
    local: LocalReloads | null,
    lock: RedisLock | null,
  ) {
    this.#context = context;
    this.#processes = processes;
    this.#local = local;
    this.#lock = lock;
    this.#last = { ...noReload, faults: local?.faults() ?? [] };
    this.#listening = context.bus?.listen('reloads', (text) => this.#take(text));
  }

  /** Reloads this process alone. */
  reloadHere(trigger: ReloadTrigger): Promise<ReloadState> {
    return this.#reloadThese(trigger, [this.#processes.id]);
  }

  last(): ReloadState {
    return this.#last;
  }

  stop(): void {
    this.#listening?.stop();
  }

  /** Reloads all processes; `409 conflict` while another process leads a reload. */
  async reloadAll(trigger: ReloadTrigger): Promise<ReloadState> {
    const lock = this.#lock;
    if (lock === null) return this.reloadHere(trigger);
    if (!(await lock.acquire())) {
      throw new PlatformError('conflict', 'Another process leads a reload of the skills already');
    }
    const renewing = setInterval(() => void lock.renew().catch(() => {}), signEveryMs);
    try {
      return await this.#reloadThese(trigger, await this.#workers());
    } finally {
      clearInterval(renewing);
      await lock.release().catch(() => {});
    }
  }

  /** The live processes that run skills. */
  async #workers(): Promise<string[]> {
    const live = await this.#processes.list();
    return live.filter(({ roles }) => roles.includes('worker')).map(({ id }) => id);
  }

  /** One process after the other, until one refuses. */
  async #reloadThese(trigger: ReloadTrigger, ids: readonly string[]): Promise<ReloadState> {
    const started_at = timestamp(this.#context.clock.now());
    this.#publish({
      ...noReload,
      faults: this.#last.faults,
      status: 'running',
      trigger,
      started_at,
    });
    const processes: ReloadState['processes'] = [];
    let first: ReloadResult | undefined;
    for (const id of ids) {
      const result = await this.#reloadOne(trigger, id);
      const { status, reason } = result;
      processes.push({ id, status, reason });
      if (status === 'refused') {
        return this.#publish({ ...result, started_at, processes });
      }
      first ??= result;
    }
    if (first === undefined) {
      const ended_at = timestamp(this.#context.clock.now());
      const reason = 'no process that runs skills is live';
      const outcome = { status: 'refused', trigger, started_at, ended_at, reason } as const;
      return this.#publish({ ...noReload, faults: this.#last.faults, ...outcome });
    }
    const ended_at = timestamp(this.#context.clock.now());
    return this.#publish({ ...first, started_at, ended_at, processes });
  }

  /** Stores the state, and sends it to the other processes. */
  #publish(last: ReloadState): ReloadState {
    this.#last = last;
    this.#send({ kind: 'state', state: last });
    return last;
  }

  #send(message: ReloadMessage): void {
    this.#context.bus?.send('reloads', JSON.stringify(message));
  }

  async #reloadOne(trigger: ReloadTrigger, id: string): Promise<ReloadResult> {
    if (id !== this.#processes.id) return this.#giveTurn(trigger, id);
    if (this.#local === null)
      return this.#refused(trigger, 'this process runs no skills: ROLES has no worker');
    return this.#local.reload(trigger);
  }

  async #giveTurn(trigger: ReloadTrigger, id: string): Promise<ReloadResult> {
    const turn = newId();
    const given = new ReloadTurn();
    this.#turns.set(turn, given);
    this.#send({ kind: 'turn', turn, process: id });
    const result = await given.result();
    this.#turns.delete(turn);
    return result === undefined
      ? this.#refused(trigger, `the process ${id} does not answer`)
      : { ...result, trigger };
  }

  #refused(trigger: ReloadTrigger, reason: string): ReloadResult {
    const now = timestamp(this.#context.clock.now());
    const { added, changed, removed, file, line, column, differences } = noReload;
    const faults = { file, line, column, differences, faults: this.#last.faults };
    const facts = { added, changed, removed, ...faults };
    return { ...facts, status: 'refused', trigger, started_at: now, ended_at: now, reason };
  }

  #take(text: string): void {
    const message = JSON.parse(text) as ReloadMessage;
    switch (message.kind) {
      case 'turn':
        if (message.process === this.#processes.id) void this.#takeTurn(message.turn);
        break;
      case 'working':
        this.#turns.get(message.turn)?.sign();
        break;
      case 'result':
        this.#turns.get(message.turn)?.end(message.result);
        break;
      case 'state':
        this.#last = message.state;
    }
  }

  async #takeTurn(turn: string): Promise<void> {
    this.#send({ kind: 'working', turn });
    const signs = setInterval(() => this.#send({ kind: 'working', turn }), signEveryMs);
    try {
      const result = await this.#reloadOne('request', this.#processes.id);
      this.#send({ kind: 'result', turn, result });
    } finally {
      clearInterval(signs);
    }
  }
}
