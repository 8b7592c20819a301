/**
 * The queue of one process: hints in memory, handled in the order in which they fall due. It keeps
 * each row at most once, so repeating a hint is free. It promises nothing across a restart and
 * needs not to: the sweep sends hints for the due rows of the database again.
 */
import { bind } from '../kernel/bind.ts';
import type { Logger } from '../kernel/log.ts';
import { type QueueName, queueNames } from '../kernel/queues.ts';
import { once } from './once.ts';
import type { Consumer, Hint, HintHandler, Queue } from './queue.ts';

/** Hints kept for each queue, due ones and delayed ones each. */
const hintsMax = 20_000;
/** With fewer due hints than this the sweep sends more. */
const lowWaterMark = 1_000;

interface NamedQueue {
  readonly log: Logger;
  readonly due: Line;
  readonly delayed: Map<string, NodeJS.Timeout>;
  readonly running: Set<string>;
  /** Rows with a new hint while they run: handled once more afterwards. */
  readonly again: Set<string>;
  consumer: QueueConsumer | null;
}

/** Rows in order of arrival, each at most once. */
interface Line {
  readonly size: number;
  add(id: string): void;
  /** Removes and returns the row that has waited longest. */
  shift(): string | undefined;
  clear(): void;
}

interface QueueConsumer {
  readonly named: NamedQueue;
  readonly concurrency: number;
  readonly handler: HintHandler;
  /** Handlers under way. */
  running: number;
  /** Slots of handlers that only wait, yielded to others. */
  yielded: number;
  /** Resolves when it was stopped and no handler is under way. */
  readonly idle: PromiseWithResolvers<void>;
}

interface MemoryQueue {
  readonly queues: ReadonlyMap<QueueName, NamedQueue>;
  isClosed: boolean;
}

export function createMemoryQueue(log: Logger): Queue {
  const queues = new Map(queueNames.map((name) => [name, emptyQueue(log)]));
  const queue: MemoryQueue = { queues, isClosed: false };
  return bind(queue, { sendHints, consume, isRunningLow, isConnected, close });
}

function sendHints(queue: MemoryQueue, name: QueueName, hints: readonly Hint[]): void {
  if (queue.isClosed) return;
  const named = queueOf(queue, name);
  for (const hint of hints) {
    if (hint.delayMs > 0) delay(named, hint);
    else enqueue(named, hint.id);
  }
  pump(named);
}

function consume(
  queue: MemoryQueue,
  name: QueueName,
  concurrency: number,
  handler: HintHandler,
): Consumer {
  const named = queueOf(queue, name);
  if (named.consumer !== null) throw new Error(`Queue ${name} has a consumer already.`);
  const idle = Promise.withResolvers<void>();
  const consumer: QueueConsumer = { named, concurrency, handler, running: 0, yielded: 0, idle };
  named.consumer = consumer;
  pump(named);
  return bind(consumer, { freeSlots, yieldSlot, run, stop });
}

function isRunningLow(queue: MemoryQueue, name: QueueName): boolean {
  return queueOf(queue, name).due.size < lowWaterMark;
}

function isConnected(queue: MemoryQueue): boolean {
  return !queue.isClosed;
}

async function close(queue: MemoryQueue): Promise<void> {
  queue.isClosed = true;
  for (const named of queue.queues.values()) {
    for (const timer of named.delayed.values()) clearTimeout(timer);
    named.delayed.clear();
    named.due.clear();
    named.again.clear();
    named.consumer = null;
  }
}

function freeSlots(consumer: QueueConsumer): number {
  const { named } = consumer;
  if (named.consumer !== consumer) return 0;
  const slots = consumer.concurrency + consumer.yielded;
  return Math.max(0, slots - named.running.size - named.due.size);
}

function yieldSlot(consumer: QueueConsumer): () => void {
  consumer.yielded++;
  pump(consumer.named);
  return once(() => {
    consumer.yielded--;
  });
}

function run(consumer: QueueConsumer, id: string, work: () => Promise<void>): void {
  consumer.named.running.add(id);
  void handle(consumer, id, work);
}

function stop(consumer: QueueConsumer): Promise<void> {
  const { named, idle } = consumer;
  if (named.consumer === consumer) named.consumer = null;
  if (consumer.running === 0) idle.resolve();
  return idle.promise;
}

function queueOf({ queues }: MemoryQueue, name: QueueName): NamedQueue {
  return queues.get(name) as NamedQueue;
}

function delay(named: NamedQueue, hint: Hint): void {
  if (named.delayed.size >= hintsMax && !named.delayed.has(hint.id)) return;
  clearTimeout(named.delayed.get(hint.id));
  const timer = setTimeout(() => {
    named.delayed.delete(hint.id);
    enqueue(named, hint.id);
    pump(named);
  }, hint.delayMs);
  timer.unref();
  named.delayed.set(hint.id, timer);
}

function enqueue(named: NamedQueue, id: string): void {
  if (named.running.has(id)) named.again.add(id);
  else if (named.due.size < hintsMax) named.due.add(id);
}

/** Starts handlers of due rows while slots are free. */
function pump(named: NamedQueue): void {
  const { consumer } = named;
  if (consumer === null) return;
  while (named.running.size < consumer.concurrency + consumer.yielded) {
    const id = named.due.shift();
    if (id === undefined) return;
    named.running.add(id);
    void handle(consumer, id, () => consumer.handler(id));
  }
}

async function handle(
  consumer: QueueConsumer,
  id: string,
  work: () => Promise<void>,
): Promise<void> {
  const { named } = consumer;
  consumer.running++;
  try {
    await work();
  } catch (error) {
    named.log.error({ err: error, id }, 'a queue handler failed');
  }
  named.running.delete(id);
  consumer.running--;
  if (named.again.delete(id)) enqueue(named, id);
  if (consumer.running === 0 && named.consumer !== consumer) consumer.idle.resolve();
  pump(named);
}

/** Not a plain Set: finding its first element passes over every element deleted before. */
function emptyLine(): Line {
  const members = new Set<string>();
  let ids: string[] = [];
  let head = 0;
  return {
    get size() {
      return members.size;
    },
    add(id) {
      if (members.has(id)) return;
      members.add(id);
      ids.push(id);
    },
    shift() {
      const id = ids[head];
      if (id === undefined) return undefined;
      head++;
      members.delete(id);
      if (head === ids.length) {
        ids = [];
        head = 0;
      } else if (head === hintsMax) {
        ids.splice(0, head);
        head = 0;
      }
      return id;
    },
    clear() {
      members.clear();
      ids = [];
      head = 0;
    },
  };
}

function emptyQueue(log: Logger): NamedQueue {
  return {
    log,
    due: emptyLine(),
    delayed: new Map(),
    running: new Set(),
    again: new Set(),
    consumer: null,
  };
}
