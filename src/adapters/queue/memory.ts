/**
 * The queue of one process: a due hint is handled at once, a later one when its time has come. It keeps nothing else, so a
 * hint that falls due with no consumer is lost: the sweep sends hints for the due rows of the database again.
 */
import type { Logger } from '../../kernel/log.ts';
import { type QueueName, queueNames } from '../../kernel/queues.ts';
import type { Consumer, Hint, HintHandler, Queue } from './queue.ts';

/** Delayed hints, and handlers under way, of each queue. */
const hintsMax = 20_000;
/** With fewer handlers under way than this the sweep sends more hints. */
const lowWaterMark = 1_000;

interface NamedQueue {
  /** By row. */
  readonly delayed: Map<string, NodeJS.Timeout>;
  consumer: MemoryConsumer | null;
}

export class MemoryQueue implements Queue {
  readonly #log: Logger;
  readonly #queues: ReadonlyMap<QueueName, NamedQueue>;
  #isClosed = false;

  constructor(log: Logger) {
    this.#log = log;
    this.#queues = new Map(
      queueNames.map((name) => [name, { delayed: new Map(), consumer: null }]),
    );
  }

  sendHints(name: QueueName, hints: readonly Hint[]): void {
    if (this.#isClosed) return;
    const named = this.#queueOf(name);
    for (const hint of hints) {
      if (hint.delayMs > 0) this.#delay(named, hint);
      else named.consumer?.handle(hint);
    }
  }

  consume(name: QueueName, handler: HintHandler): Consumer {
    const named = this.#queueOf(name);
    if (named.consumer?.isStopped === false)
      throw new Error(`Queue ${name} has a consumer already.`);
    named.consumer = new MemoryConsumer(this.#log, handler);
    return named.consumer;
  }

  isRunningLow(name: QueueName): boolean {
    return (this.#queueOf(name).consumer?.underWay ?? 0) < lowWaterMark;
  }

  isConnected(): boolean {
    return !this.#isClosed;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { delayed, consumer } of this.#queues.values()) {
      for (const timer of delayed.values()) clearTimeout(timer);
      delayed.clear();
      void consumer?.stop();
    }
  }

  #queueOf(name: QueueName): NamedQueue {
    return this.#queues.get(name) as NamedQueue;
  }

  #delay(named: NamedQueue, hint: Hint): void {
    const { delayed } = named;
    const earlier = delayed.get(hint.id);
    if (earlier !== undefined) clearTimeout(earlier);
    else if (delayed.size >= hintsMax) return;
    const timer = setTimeout(() => {
      delayed.delete(hint.id);
      named.consumer?.handle(hint);
    }, hint.delayMs);
    timer.unref();
    delayed.set(hint.id, timer);
  }
}

class MemoryConsumer implements Consumer {
  readonly #log: Logger;
  readonly #handler: HintHandler;
  readonly #idle = Promise.withResolvers<void>();
  isStopped = false;
  /** Handlers under way. */
  underWay = 0;

  constructor(log: Logger, handler: HintHandler) {
    this.#log = log;
    this.#handler = handler;
  }

  handle(hint: Hint): void {
    if (!this.isStopped && this.underWay < hintsMax) void this.#handle(hint);
  }

  stop(): Promise<void> {
    this.isStopped = true;
    if (this.underWay === 0) this.#idle.resolve();
    return this.#idle.promise;
  }

  async #handle(hint: Hint): Promise<void> {
    this.underWay += 1;
    try {
      await this.#handler(hint);
    } catch (err) {
      this.#log.error({ err, id: hint.id }, 'a queue handler failed');
    }
    this.underWay -= 1;
    if (this.isStopped && this.underWay === 0) this.#idle.resolve();
  }
}
