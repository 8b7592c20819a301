/**
 * Takes hints of one queue from Redis, by BullMQ's way of fetching by hand, as many at a time as there
 * are places. What has been taken is out of Redis before it has been handled; what finds no place is
 * put back for the others.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { Job, type Queue as Lane, Worker } from 'bullmq';
import type { Logger } from '../kernel/log.ts';
import type { QueueName } from '../kernel/queues.ts';
import type { Client, Redis } from '../redis/redis.ts';
import { inTime } from './in-time.ts';
import type { Places } from './places.ts';
import type { Consumer, HintHandler } from './queue.ts';

/** What a worker has taken and finds no place for is put back after so long, for the others. */
const inHandMs = 20;
/** Hints taken from one queue at a time; each is on its way for a round trip or two. */
const takersMax = 8;
/** A worker that has a place free, but takes nothing of what waits for so long, is made anew. */
const stuckMs = 4_000;
/** Longest wait for the next hint: a wake-up that got lost holds a hint up for that long. */
const blockSeconds = 1;
const againMs = 200;

/** Where hints are taken from, until it is given up. */
interface Source {
  readonly worker: Worker;
  /** BullMQ leaves it open: it was given it. */
  readonly connection: Client;
  readonly gone: PromiseWithResolvers<null>;
}

export interface LaneConsumer extends Consumer {
  /** Looks whether it is stuck. */
  watch(waiting: number): void;
  /** Takes nothing more and lets go of its connections. */
  close(): Promise<void>;
}

/** What a BullMQ job says; nothing where it is none of ours. */
function idsOf({ data }: Job): string[] {
  return Array.isArray(data) ? data.filter((id) => typeof id === 'string') : [];
}

/** Begins to take, until it is stopped. */
export function consumerOf(
  { name, lane }: { readonly name: QueueName; readonly lane: Lane },
  redis: Redis,
  log: Logger,
  places: Places,
  handler: HintHandler,
): LaneConsumer {
  const underWay = new Set<Promise<void>>();
  /** What is being asked for in return for what was taken. */
  const following = new Set<Promise<void>>();
  let isStopped = false;
  let source = openSource();
  let tokens = 0;
  let takers = 0;
  let takerFree = Promise.withResolvers<void>();
  let lastTaken = performance.now();
  /** Taken, and waiting for a place here. */
  let inHand: string[] = [];
  let handEmpty = Promise.withResolvers<void>();
  let puttingBack: NodeJS.Timeout | undefined;
  let timesPutBack = 0;

  function openSource(): Source {
    const connection = redis.connection({ blocking: true });
    const worker = new Worker(name, null, { connection, drainDelay: blockSeconds });
    worker.on('error', (err) => log.debug({ err, queue: name }, 'a connection of a worker failed'));
    // Hints that a worker had taken when it died are in nobody's way, but they take room.
    worker.startStalledCheckTimer().catch(() => {});
    return { worker, connection, gone: Promise.withResolvers<null>() };
  }

  /** Takes hints one after the other as long as there is a place for what they ask for. */
  async function take(): Promise<void> {
    while (!isStopped) {
      if (inHand.length > 0) await handEmpty.promise;
      if (takers >= takersMax) await takerFree.promise;
      if (!(await places.reserve())) return;
      const from = source;
      const token = `${from.worker.id}:${tokens++}`;
      const job = await Promise.race([nextJob(from, token), from.gone.promise]);
      if (job === null) places.release();
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

  /** Begins with what was taken, and with what is got for it in return while places last. */
  async function follow(first: Job, token: string, from: Source): Promise<void> {
    takers++;
    for (let job: Job | null = first; job !== null; ) {
      lastTaken = performance.now();
      const [id, ...others] = idsOf(job);
      if (id === undefined || isStopped) {
        places.release();
        keepInHand(id === undefined ? [] : [id, ...others]);
      } else {
        begin(id);
        keepInHand(others);
      }
      const goesOn = !isStopped && inHand.length === 0 && places.reserveNow();
      const next = await done(job, token, goesOn, from);
      if (goesOn && next === null) places.release();
      job = next;
    }
    takers--;
    takerFree.resolve();
    takerFree = Promise.withResolvers();
  }

  /** Takes a hint out of Redis and, with `goesOn`, the next one for it. */
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
      // After a FLUSHALL, for one, there is nothing left to take out.
      log.debug({ err, queue: name }, 'a hint could not be taken out');
      return null;
    }
  }

  /** Begins as many as there are places for; the others are waiting here for a moment. */
  function keepInHand(ids: readonly string[]): void {
    inHand.push(...ids);
    serveHand();
    if (inHand.length === 0) return;
    if (isStopped) void putBack();
    else puttingBack ??= setTimeout(putBack, inHandMs);
  }

  function serveHand(): void {
    while (inHand.length > 0 && !isStopped && places.reserveNow()) begin(inHand.shift() as string);
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

  /** Leaves to others what waits here in vain; they are the next to be taken. */
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

  /** Handles a row in the place that is reserved for it. */
  function begin(id: string): void {
    if (!places.occupy(id)) return;
    const work = handle(id, handler).finally(() => {
      underWay.delete(work);
      const again = places.leave(id);
      if (again && !isStopped && places.reserveNow()) begin(id);
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
    places.close();
    takerFree.resolve();
    await inTime(putBack());
    await inTime(Promise.all(following));
    // Ends the wait for a hint. One that was just being taken arrives all the same, and is put back.
    await inTime(source.worker.close(true));
    await inTime(taking);
    source.gone.resolve(null);
    await taking;
    await inTime(Promise.all(following));
  }

  return {
    places: () => 0,
    lend() {
      const giveBack = places.lend();
      serveHand();
      return giveBack;
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
      if (waiting === 0 || !places.isFree()) lastTaken = performance.now();
      if (performance.now() - lastTaken < stuckMs || isStopped) return;
      log.warn({ queue: name, waiting }, 'a worker took nothing of what waits; it begins anew');
      beginAnew();
    },
    close: stopTaking,
  };
}
