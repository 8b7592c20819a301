/**
 * The queue of one process: hints in memory, handled in the order in which they fall due. It keeps
 * each row at most once, so repeating a hint is free. It promises nothing across a restart and
 * needs not to: the sweep sends hints for the due rows of the database again.
 */
import type { Logger } from '../kernel/log.ts';
import { type QueueName, queueNames } from '../kernel/queues.ts';
import { once } from './once.ts';
import type { Hint, HintHandler, Queue } from './queue.ts';

/** Hints kept for each queue, due ones and delayed ones each. */
const hintsMax = 20_000;
/** With fewer due hints than this the sweep sends more. */
const lowWaterMark = 1_000;

interface Lane {
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
  readonly concurrency: number;
  readonly handler: HintHandler;
  /** Handlers under way. */
  running: number;
  /** Slots of handlers that only wait, yielded to others. */
  yielded: number;
  /** Resolves when it was stopped and no handler is under way. */
  readonly idle: PromiseWithResolvers<void>;
}

export function createMemoryQueue(log: Logger): Queue {
  const lanes = new Map<QueueName, Lane>(queueNames.map((name) => [name, emptyLane()]));
  const lane = (name: QueueName) => lanes.get(name) as Lane;
  let closed = false;

  return {
    sendHints(name, hints) {
      if (closed) return;
      const target = lane(name);
      for (const hint of hints) {
        if (hint.delayMs > 0) delay(target, hint);
        else enqueue(target, hint.id);
      }
      pump(target);
    },

    consume(name, concurrency, handler) {
      const target = lane(name);
      if (target.consumer !== null) throw new Error(`Queue ${name} has a consumer already.`);
      const idle = Promise.withResolvers<void>();
      const consumer: LaneConsumer = { concurrency, handler, running: 0, yielded: 0, idle };
      target.consumer = consumer;
      pump(target);
      return {
        freeSlots() {
          if (target.consumer !== consumer) return 0;
          return Math.max(
            0,
            concurrency + consumer.yielded - target.running.size - target.due.size,
          );
        },
        yieldSlot() {
          consumer.yielded++;
          pump(target);
          return once(() => {
            consumer.yielded--;
          });
        },
        run(id, work) {
          target.running.add(id);
          void handle(target, consumer, id, work);
        },
        stop() {
          if (target.consumer === consumer) target.consumer = null;
          if (consumer.running === 0) idle.resolve();
          return idle.promise;
        },
      };
    },

    isRunningLow: (name) => lane(name).due.size < lowWaterMark,
    isConnected: () => !closed,

    async close() {
      closed = true;
      for (const one of lanes.values()) {
        for (const timer of one.delayed.values()) clearTimeout(timer);
        one.delayed.clear();
        one.due.clear();
        one.again.clear();
        one.consumer = null;
      }
    },
  };

  function delay(target: Lane, hint: Hint): void {
    if (target.delayed.size >= hintsMax && !target.delayed.has(hint.id)) return;
    clearTimeout(target.delayed.get(hint.id));
    const timer = setTimeout(() => {
      target.delayed.delete(hint.id);
      enqueue(target, hint.id);
      pump(target);
    }, hint.delayMs);
    timer.unref();
    target.delayed.set(hint.id, timer);
  }

  function enqueue(target: Lane, id: string): void {
    if (target.running.has(id)) target.again.add(id);
    else if (target.due.size < hintsMax) target.due.add(id);
  }

  function pump(target: Lane): void {
    const { consumer } = target;
    if (consumer === null) return;
    while (target.running.size < consumer.concurrency + consumer.yielded) {
      const id = target.due.shift();
      if (id === undefined) return;
      target.running.add(id);
      void handle(target, consumer, id, () => consumer.handler(id));
    }
  }

  async function handle(
    target: Lane,
    consumer: LaneConsumer,
    id: string,
    work: () => Promise<void>,
  ): Promise<void> {
    consumer.running++;
    try {
      await work();
    } catch (error) {
      log.error({ err: error, id }, 'a queue handler failed');
    }
    target.running.delete(id);
    consumer.running--;
    if (target.again.delete(id)) enqueue(target, id);
    if (consumer.running === 0 && target.consumer !== consumer) consumer.idle.resolve();
    pump(target);
  }
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

function emptyLane(): Lane {
  return {
    due: emptyLine(),
    delayed: new Map(),
    running: new Set(),
    again: new Set(),
    consumer: null,
  };
}
