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

interface Lane {
  readonly log: Logger;
  readonly due: Line;
  readonly delayed: Map<string, NodeJS.Timeout>;
  readonly running: Set<string>;
  /** Rows with a new hint while they run: handled once more afterwards. */
  readonly again: Set<string>;
  consumer: LaneConsumer | null;
}

/** Rows in order of arrival, each at most once. */
interface Line {
  readonly size: number;
  add(id: string): void;
  /** Removes and returns the row that has waited longest. */
  shift(): string | undefined;
  clear(): void;
}

interface LaneConsumer {
  readonly lane: Lane;
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
  readonly lanes: ReadonlyMap<QueueName, Lane>;
  isClosed: boolean;
}

export function createMemoryQueue(log: Logger): Queue {
  const lanes = new Map(queueNames.map((name) => [name, emptyLane(log)]));
  const queue: MemoryQueue = { lanes, isClosed: false };
  return bind(queue, { sendHints, consume, isRunningLow, isConnected, close });
}

function sendHints(queue: MemoryQueue, name: QueueName, hints: readonly Hint[]): void {
  if (queue.isClosed) return;
  const lane = laneOf(queue, name);
  for (const hint of hints) {
    if (hint.delayMs > 0) delay(lane, hint);
    else enqueue(lane, hint.id);
  }
  pump(lane);
}

function consume(
  queue: MemoryQueue,
  name: QueueName,
  concurrency: number,
  handler: HintHandler,
): Consumer {
  const lane = laneOf(queue, name);
  if (lane.consumer !== null) throw new Error(`Queue ${name} has a consumer already.`);
  const idle = Promise.withResolvers<void>();
  const consumer: LaneConsumer = { lane, concurrency, handler, running: 0, yielded: 0, idle };
  lane.consumer = consumer;
  pump(lane);
  return bind(consumer, { freeSlots, yieldSlot, run, stop });
}

function isRunningLow(queue: MemoryQueue, name: QueueName): boolean {
  return laneOf(queue, name).due.size < lowWaterMark;
}

function isConnected(queue: MemoryQueue): boolean {
  return !queue.isClosed;
}

async function close(queue: MemoryQueue): Promise<void> {
  queue.isClosed = true;
  for (const lane of queue.lanes.values()) {
    for (const timer of lane.delayed.values()) clearTimeout(timer);
    lane.delayed.clear();
    lane.due.clear();
    lane.again.clear();
    lane.consumer = null;
  }
}

function freeSlots(consumer: LaneConsumer): number {
  const { lane } = consumer;
  if (lane.consumer !== consumer) return 0;
  const slots = consumer.concurrency + consumer.yielded;
  return Math.max(0, slots - lane.running.size - lane.due.size);
}

function yieldSlot(consumer: LaneConsumer): () => void {
  consumer.yielded++;
  pump(consumer.lane);
  return once(() => {
    consumer.yielded--;
  });
}

function run(consumer: LaneConsumer, id: string, work: () => Promise<void>): void {
  consumer.lane.running.add(id);
  void handle(consumer, id, work);
}

function stop(consumer: LaneConsumer): Promise<void> {
  const { lane, idle } = consumer;
  if (lane.consumer === consumer) lane.consumer = null;
  if (consumer.running === 0) idle.resolve();
  return idle.promise;
}

function laneOf({ lanes }: MemoryQueue, name: QueueName): Lane {
  return lanes.get(name) as Lane;
}

function delay(lane: Lane, hint: Hint): void {
  if (lane.delayed.size >= hintsMax && !lane.delayed.has(hint.id)) return;
  clearTimeout(lane.delayed.get(hint.id));
  const timer = setTimeout(() => {
    lane.delayed.delete(hint.id);
    enqueue(lane, hint.id);
    pump(lane);
  }, hint.delayMs);
  timer.unref();
  lane.delayed.set(hint.id, timer);
}

function enqueue(lane: Lane, id: string): void {
  if (lane.running.has(id)) lane.again.add(id);
  else if (lane.due.size < hintsMax) lane.due.add(id);
}

/** Starts handlers of due rows while slots are free. */
function pump(lane: Lane): void {
  const { consumer } = lane;
  if (consumer === null) return;
  while (lane.running.size < consumer.concurrency + consumer.yielded) {
    const id = lane.due.shift();
    if (id === undefined) return;
    lane.running.add(id);
    void handle(consumer, id, () => consumer.handler(id));
  }
}

async function handle(
  consumer: LaneConsumer,
  id: string,
  work: () => Promise<void>,
): Promise<void> {
  const { lane } = consumer;
  consumer.running++;
  try {
    await work();
  } catch (error) {
    lane.log.error({ err: error, id }, 'a queue handler failed');
  }
  lane.running.delete(id);
  consumer.running--;
  if (lane.again.delete(id)) enqueue(lane, id);
  if (consumer.running === 0 && lane.consumer !== consumer) consumer.idle.resolve();
  pump(lane);
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

function emptyLane(log: Logger): Lane {
  return {
    log,
    due: emptyLine(),
    delayed: new Map(),
    running: new Set(),
    again: new Set(),
    consumer: null,
  };
}
