/**
 * The queue that processes share: hints are BullMQ jobs in Redis, which a BullMQ worker of one process takes. Its handler
 * only notes what may be due, so hints do not wait there, and need no retries. Everything in Redis may be lost: the sweep
 * sends the hints again. Of the due hints of one turn of the event loop, one for each organization is sent. Those of deliveries
 * share BullMQ jobs: 8,000 of them took 0.1 s of the processor instead of 0.9 s.
 */

import { Queue as BullQueue, type Job, Worker } from 'bullmq';
import type { Logger } from '../../kernel/log.ts';
import { type QueueName, queueNames } from '../../kernel/queues.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';
import type { Client, Redis } from '../redis/redis.ts';
import type { ArrivedHint, Consumer, Hint, HintHandler, Queue } from './queue.ts';

const closeMs = 1_500;

/** Hints kept in Redis for each queue, due ones and delayed ones each. */
const hintsMax = 20_000;
/** With fewer due hints than this the sweep sends more: enough for a second of the fastest workers. */
const lowWaterMark = 4_000;
/** Due hints in one BullMQ job. */
const packedMax = 16;
/** BullMQ jobs sent together. */
const bulkMax = 250;
/** Between two counts of the hints. */
const countEveryMs = 500;
/** Hints that one process handles at a time. */
const handledMax = 100;
/** Longest wait for the next hint: a lost wake-up delays a hint by that much. */
const blockSeconds = 1;
/** A BullMQ worker that takes none of the waiting hints for so long is replaced: some have stopped after lost connections. */
const stuckMs = 4_000;

interface NamedQueue {
  readonly name: QueueName;
  readonly bullQueue: BullQueue;
  /** At most this many hints exist: those found by the last count, and those sent here since. */
  readonly depth: { waiting: number; delayed: number };
  outgoing: Map<string, Hint>;
  /** Hints on their way to Redis. */
  underWay: number;
  consumer: BullmqConsumer | null;
}

export class BullmqQueue implements Queue {
  readonly #redis: Redis;
  readonly #log: Logger;
  readonly #queues: ReadonlyMap<QueueName, NamedQueue>;
  readonly #counting: NodeJS.Timeout;
  #isClosed = false;

  constructor(redis: Redis, log: Logger) {
    this.#redis = redis;
    this.#log = log;
    this.#queues = new Map(queueNames.map((name) => [name, openQueue(name, redis)]));
    this.#counting = setInterval(() => this.#countAll(), countEveryMs).unref();
    this.#countAll();
  }

  sendHints(name: QueueName, hints: readonly Hint[]): void {
    if (!this.isConnected()) return;
    const named = this.#queueOf(name);
    const wasEmpty = named.outgoing.size === 0;
    for (const hint of hints) {
      const kind = hint.delayMs > 0 ? 'delayed' : 'waiting';
      const key =
        kind === 'delayed' ? `later ${hint.id}` : (hint.organizationId ?? `row ${hint.id}`);
      const isFull = named.depth[kind] >= hintsMax || named.underWay >= hintsMax;
      if (isFull || named.outgoing.has(key)) continue;
      named.depth[kind] += 1;
      named.underWay += 1;
      named.outgoing.set(key, hint);
    }
    if (wasEmpty && named.outgoing.size > 0) setImmediate(() => void this.#send(named));
  }

  consume(name: QueueName, handler: HintHandler): Consumer {
    const named = this.#queueOf(name);
    if (named.consumer?.isStopped === false)
      throw new Error(`Queue ${name} has a consumer already.`);
    named.consumer = new BullmqConsumer(name, this.#redis, this.#log, handler);
    return named.consumer;
  }

  isRunningLow(name: QueueName): boolean {
    return this.#queueOf(name).depth.waiting < lowWaterMark;
  }

  isConnected(): boolean {
    return !this.#isClosed && this.#redis.isConnected();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#counting);
    await Promise.all(
      [...this.#queues.values()].map(async (named) => {
        named.outgoing.clear();
        if (named.consumer !== null) await inTime(named.consumer.stop());
        await inTime(named.bullQueue.close());
      }),
    );
  }

  #queueOf(name: QueueName): NamedQueue {
    return this.#queues.get(name) as NamedQueue;
  }

  /** Sends the hints of this turn of the event loop. */
  async #send(named: NamedQueue): Promise<void> {
    const hints = [...named.outgoing.values()];
    named.outgoing = new Map();
    const jobs = jobsOf(hints);
    try {
      for (let from = 0; from < jobs.length && !this.#isClosed; from += bulkMax) {
        await add(named.bullQueue, jobs.slice(from, from + bulkMax));
      }
    } catch (err) {
      this.#log.debug({ err, queue: named.name }, 'hints got lost; the sweep sends them again');
    }
    named.underWay -= hints.length;
  }

  #countAll(): void {
    // A failure means that Redis cannot be reached, which `isConnected` reports.
    for (const named of this.#queues.values()) this.#count(named).catch(() => {});
  }

  /** Counts the hints of a queue. */
  async #count({ bullQueue, depth, consumer }: NamedQueue): Promise<void> {
    if (!this.#redis.isConnected()) return;
    const counts = await bullQueue.getJobCounts('waiting', 'delayed');
    depth.waiting = (counts['waiting'] ?? 0) * packedMax;
    depth.delayed = counts['delayed'] ?? 0;
    consumer?.watch(depth.waiting);
  }
}

class BullmqConsumer implements Consumer {
  readonly #name: QueueName;
  readonly #redis: Redis;
  readonly #log: Logger;
  readonly #handler: HintHandler;
  #worker: Worker;
  #connection: Client;
  /** When a hint was last taken, or none waited. */
  #takenAt = performance.now();
  #stopping: Promise<void> | undefined;

  constructor(name: QueueName, redis: Redis, log: Logger, handler: HintHandler) {
    this.#name = name;
    this.#redis = redis;
    this.#log = log;
    this.#handler = handler;
    this.#connection = redis.connection({ blocking: true });
    this.#worker = this.#open();
  }

  get isStopped(): boolean {
    return this.#stopping !== undefined;
  }

  /** Replaces the BullMQ worker when it takes none of the waiting hints. */
  watch(waiting: number): void {
    if (waiting === 0) this.#takenAt = performance.now();
    if (performance.now() - this.#takenAt < stuckMs || this.isStopped) return;
    this.#log.warn(
      { queue: this.#name, waiting },
      'a worker took none of the waiting hints; it begins anew',
    );
    this.#takenAt = performance.now();
    const [worker, connection] = [this.#worker, this.#connection];
    this.#connection = this.#redis.connection({ blocking: true });
    this.#worker = this.#open();
    void inTime(worker.close(true)).then(() => connection.disconnect());
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    // Waits for the handlers under way; while Redis is away that could take for ever.
    await inTime(this.#worker.close(!this.#redis.isConnected()));
    this.#connection.disconnect();
  }

  #open(): Worker {
    const worker = new Worker(this.#name, (job: Job) => this.#handle(job), {
      connection: this.#connection,
      concurrency: handledMax,
      drainDelay: blockSeconds,
    });
    worker.on('error', (err) =>
      this.#log.debug({ err, queue: this.#name }, 'a connection of a worker failed'),
    );
    return worker;
  }

  /** Handles the hints of a BullMQ job; never rejects, because hints are not tried again. */
  async #handle({ data }: Job): Promise<void> {
    this.#takenAt = performance.now();
    await Promise.all(hintsIn(data).map((hint) => this.#handleOne(hint)));
  }

  async #handleOne(hint: ArrivedHint): Promise<void> {
    try {
      await this.#handler(hint);
    } catch (err) {
      this.#log.error({ err, id: hint.id }, 'a queue handler failed');
    }
  }
}

/** The hints in a BullMQ job; those are left out that another version has sent in another format. */
function hintsIn(data: unknown): ArrivedHint[] {
  return Array.isArray(data) ? data.filter((hint) => typeof hint?.id === 'string') : [];
}

function openQueue(name: QueueName, redis: Redis): NamedQueue {
  const bullQueue = new BullQueue(name, {
    connection: redis.commands,
    skipVersionCheck: true,
    defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
    // BullMQ writes a stream of events, which no process reads.
    streams: { events: { maxLen: 1 } },
  });
  // The call that failed reports the error; without a listener the process would end.
  bullQueue.on('error', () => {});
  const depth = { waiting: 0, delayed: 0 };
  return { name, bullQueue, depth, outgoing: new Map(), underWay: 0, consumer: null };
}

/** One is sent by itself, for 0.22 ms of the processor instead of 0.35 ms. */
async function add(bullQueue: BullQueue, jobs: readonly ReturnType<typeof jobOf>[]): Promise<void> {
  const [first] = jobs;
  if (jobs.length > 1) await bullQueue.addBulk([...jobs]);
  else if (first !== undefined) await bullQueue.add(first.name, first.data, first.opts);
}

/** Due hints share jobs; each delayed one has its own. */
function jobsOf(hints: readonly Hint[]) {
  const due = hints.filter(({ delayMs }) => delayMs <= 0);
  const jobs = hints
    .filter(({ delayMs }) => delayMs > 0)
    .map((hint) => jobOf([hint], hint.delayMs));
  for (let from = 0; from < due.length; from += packedMax) {
    jobs.push(jobOf(due.slice(from, from + packedMax), 0));
  }
  return jobs;
}

/** Its id follows from its hints, so that adding it twice keeps one. */
function jobOf(hints: readonly Hint[], delayMs: number) {
  const [first] = hints as [Hint];
  const others = hints.length === 1 ? '' : `_${hints.length}_${hints.at(-1)?.id}`;
  return {
    name: 'hints',
    data: hints.map(({ id, organizationId }): ArrivedHint => ({ id, organizationId })),
    opts: {
      jobId: `${first.id}_${first.generation}${others}`,
      ...(delayMs > 0 && { delay: delayMs }),
    },
  };
}

/** Waits for an answer of Redis, which may never come, for `closeMs` at most. */
async function inTime(done: Promise<unknown>): Promise<void> {
  await withDeadline(
    done.catch(() => {}),
    closeMs,
  );
}
