/**
 * Takes hints of one queue from Redis, with BullMQ's manual fetching, as many at a time as there are
 * slots. A hint leaves Redis before its row is handled. A hint for which there is no slot is put back
 * for other processes.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { Job, type Queue as Lane, Worker } from 'bullmq';
import type { Logger } from '../kernel/log.ts';
import type { QueueName } from '../kernel/queues.ts';
import type { Client, Redis } from '../redis/redis.ts';
import { inTime } from './in-time.ts';
import type { Consumer, HintHandler } from './queue.ts';
import type { Slots } from './slots.ts';

/** A hint that has been taken and has no slot is put back after so long, for other processes. */
const inHandMs = 20;
/** Hints taken from one queue at a time; each is on its way for a round trip or two. */
const takersMax = 8;
/** A BullMQ worker with a free slot that takes none of the waiting hints for so long is replaced. */
const stuckMs = 4_000;
/** Longest wait for the next hint: a lost wake-up delays a hint by that much. */
const blockSeconds = 1;
const againMs = 200;

/** Where hints are taken from, until it is replaced. */
interface Source {
  readonly worker: Worker;
  /** BullMQ does not close it, because it did not open it. */
  readonly connection: Client;
  readonly gone: PromiseWithResolvers<null>;
}

export interface LaneConsumer extends Consumer {
  /** Replaces the BullMQ worker when it is stuck. */
  watch(waiting: number): void;
  /** Takes nothing more and closes its connections. */
  close(): Promise<void>;
}

/** The ids in a BullMQ job; none when it has another format. */
function idsOf({ data }: Job): string[] {
  return Array.isArray(data) ? data.filter((id) => typeof id === 'string') : [];
}

/** Begins to take hints, until it is stopped. */
export function consumerOf(
  { name, lane }: { readonly name: QueueName; readonly lane: Lane },
  redis: Redis,
  log: Logger,
  slots: Slots,
  handler: HintHandler,
): LaneConsumer {
  const underWay = new Set<Promise<void>>();
  /** Requests that complete a taken job and fetch the next one. */
  const following = new Set<Promise<void>>();
  let isStopped = false;
  let source = openSource();
  let tokens = 0;
  let takers = 0;
  let takerFree = Promise.withResolvers<void>();
  let lastTaken = performance.now();
  /** Ids that were taken and wait for a slot here. */
  let inHand: string[] = [];
  let handEmpty = Promise.withResolvers<void>();
  let puttingBack: NodeJS.Timeout | undefined;
  let timesPutBack = 0;

  function openSource(): Source {
    const connection = redis.connection({ blocking: true });
    const worker = new Worker(name, null, { connection, drainDelay: blockSeconds });
    worker.on('error', (err) => log.debug({ err, queue: name }, 'a connection of a worker failed'));
    // Hints that a worker had taken when it died block nothing, but they use memory.
    worker.startStalledCheckTimer().catch(() => {});
    return { worker, connection, gone: Promise.withResolvers<null>() };
  }

  /** Takes hints one after the other, each when a slot is free. */
  async function take(): Promise<void> {
    while (!isStopped) {
      if (inHand.length > 0) await handEmpty.promise;
      if (takers >= takersMax) await takerFree.promise;
      if (!(await slots.reserve())) return;
      const from = source;
      const token = `${from.worker.id}:${tokens++}`;
      const job = await Promise.race([nextJob(from, token), from.gone.promise]);
      if (job === null) slots.release();
      else {
        const one = follow(job, token, from).finally(() => following.delete(one));
        following.add(one);
      }
    }
  }

  async function nextJob({ worker }: Source, token: string): Promise<Job | null> {
    try {
      return ((await worker.getNextJob(token)) as Job | undefined) ?? null;
    } catch (err) {
      log.debug({ err, queue: name }, 'no hint could be taken');
      await elapsed(againMs);
      return null;
    }
  }

  /** Begins with the taken job, and with each next one that completing it returns while slots are free. */
  async function follow(first: Job, token: string, from: Source): Promise<void> {
    takers++;
    for (let job: Job | null = first; job !== null; ) {
      lastTaken = performance.now();
      const [id, ...others] = idsOf(job);
      if (id === undefined || isStopped) {
        slots.release();
        keepInHand(id === undefined ? [] : [id, ...others]);
      } else {
        begin(id);
        keepInHand(others);
      }
      const goesOn = !isStopped && inHand.length === 0 && slots.reserveNow();
      const next = await done(job, token, goesOn, from);
      if (goesOn && next === null) slots.release();
      job = next;
    }
    takers--;
    takerFree.resolve();
    takerFree = Promise.withResolvers();
  }

  /** Removes a hint from Redis and, with `goesOn`, fetches the next one in the same request. */
  async function done(
    job: Job,
    token: string,
    goesOn: boolean,
    { worker, gone }: Source,
  ): Promise<Job | null> {
    try {
      const next = await Promise.race([job.moveToCompleted(null, token, goesOn), gone.promise]);
      if (!goesOn || !Array.isArray(next)) return null;
      const [data, id] = next as [Parameters<typeof Job.fromJSON>[1] | null, string];
      return data ? Job.fromJSON(worker, data, id) : null;
    } catch (err) {
      // After a FLUSHALL, for example, there is nothing left to remove.
      log.debug({ err, queue: name }, 'a hint could not be taken out');
      return null;
    }
  }

  /** Begins as many as there are slots for; the others wait here for a moment. */
  function keepInHand(ids: readonly string[]): void {
    inHand.push(...ids);
    serveHand();
    if (inHand.length === 0) return;
    if (isStopped) void putBack();
    else puttingBack ??= setTimeout(putBack, inHandMs);
  }

  function serveHand(): void {
    while (inHand.length > 0 && !isStopped && slots.reserveNow()) begin(inHand.shift() as string);
    if (inHand.length === 0) emptyHand();
  }

  function emptyHand(): string[] {
    const ids = inHand;
    inHand = [];
    clearTimeout(puttingBack);
    puttingBack = undefined;
    handEmpty.resolve();
    handEmpty = Promise.withResolvers();
    return ids;
  }

  /** Puts back the ids that found no slot, as the next ones to be taken by any process. */
  async function putBack(): Promise<void> {
    const data = emptyHand();
    if (data.length === 0) return;
    const jobId = `${data[0]}_back_${source.worker.id}_${timesPutBack++}`;
    try {
      await lane.add('look', data, { jobId, lifo: true });
    } catch (err) {
      log.debug({ err, queue: name }, 'hints got lost; the sweep announces them again');
    }
  }

  /** Handles a row in the reserved slot. */
  function begin(id: string): void {
    if (!slots.occupy(id)) return;
    const work = handle(id, handler).finally(() => {
      underWay.delete(work);
      const again = slots.leave(id);
      if (again && !isStopped && slots.reserveNow()) begin(id);
      if (inHand.length > 0) serveHand();
    });
    underWay.add(work);
  }

  async function handle(id: string, run: HintHandler): Promise<void> {
    try {
      await run(id);
    } catch (error) {
      log.error({ err: error, id }, 'a queue handler failed');
    }
  }

  function beginAnew(): void {
    const old = source;
    source = openSource();
    lastTaken = performance.now();
    old.gone.resolve(null);
    old.worker
      .close(true)
      .catch(() => {})
      .finally(() => old.connection.disconnect());
  }

  const taking = take();

  async function stopTaking(): Promise<void> {
    if (isStopped) return;
    isStopped = true;
    slots.close();
    takerFree.resolve();
    await inTime(putBack());
    await inTime(Promise.all(following));
    // Ends the wait for a hint. A hint that is just being taken still arrives, and is put back.
    await inTime(source.worker.close(true));
    await inTime(taking);
    source.gone.resolve(null);
    await taking;
    await inTime(Promise.all(following));
  }

  return {
    freeSlots: () => 0,
    yieldSlot() {
      const resume = slots.yieldOne();
      serveHand();
      return resume;
    },
    run(_id, work) {
      const doing = work().catch((error: unknown) => {
        log.error({ err: error }, 'work without a hint failed');
      });
      underWay.add(doing);
      void doing.then(() => underWay.delete(doing));
    },
    async stop() {
      await stopTaking();
      while (underWay.size > 0) await Promise.all(underWay);
    },
    watch(waiting) {
      if (waiting === 0 || !slots.isFree()) lastTaken = performance.now();
      if (performance.now() - lastTaken < stuckMs || isStopped) return;
      log.warn({ queue: name, waiting }, 'a worker took nothing of what waits; it begins anew');
      beginAnew();
    },
    close: stopTaking,
  };
}
