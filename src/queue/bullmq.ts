/**
 * The queue that processes share: hints as BullMQ jobs in Redis, which carry ids of rows. A job is
 * gone from Redis as soon as a worker has taken it, since the claim in the database is what counts;
 * so nothing of BullMQ's own (locks, stalled jobs, retries) decides about work. Everything in here
 * may be lost, and the sweep brings it back.
 *
 * What is announced in one breath travels in few BullMQ jobs, several ids in each: a job of its own
 * for every hint costs four times as much in the processes and in Redis together.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { Job, Queue as Lane, Worker } from 'bullmq';
import type { Logger } from '../kernel/log.ts';
import { type QueueName, queueNames } from '../kernel/queues.ts';
import type { Client, Redis } from '../redis/redis.ts';
import { createPlaces, type Places } from './places.ts';
import type { Consumer, Hint, HintHandler, Queue } from './queue.ts';

/** Hints kept in Redis for each queue, due ones and delayed ones each. */
const hintsMax = 20_000;
/** Below this many due hints the queue asks for more: enough for a second of the fastest workers. */
const hungryBelow = 4_000;
/** Hints of this process that may be on their way to Redis; more are dropped. */
const underWayMax = 20_000;
/** Ids in one BullMQ job: few enough that several workers get some of what comes at once. */
const idsMax = 16;
/** BullMQ jobs sent together. */
const bulkMax = 250;
/** What a worker has taken and finds no place for is put back after so long, for the others. */
const inHandMs = 20;
/** Between two looks at how many hints there are. */
const lookEveryMs = 500;
/** Hints taken from one queue at a time; each is on its way for a round trip or two. */
const takersMax = 8;
/** A worker that has a place free, but takes nothing of what waits for so long, is made anew. */
const stuckMs = 4_000;
/** Longest wait for the next hint: a wake-up that got lost holds a hint up for that long. */
const blockSeconds = 1;
const againMs = 200;
const closeMs = 1_500;

interface Depth {
  waiting: number;
  delayed: number;
}

interface SharedLane {
  readonly name: QueueName;
  readonly lane: Lane;
  /** Hints, as many as there may be: what the last look found, and what was announced here since. */
  readonly depth: Depth;
  outgoing: Hint[];
  underWay: number;
  consumer: LaneConsumer | null;
}

/** Where hints are taken from, until it is given up. */
interface Source {
  readonly worker: Worker;
  /** BullMQ leaves it open: it was given it. */
  readonly connection: Client;
  readonly gone: PromiseWithResolvers<null>;
}

interface LaneConsumer extends Consumer {
  /** Looks whether it is stuck. */
  watch(waiting: number): void;
  /** Takes nothing more and lets go of its connections. */
  close(): Promise<void>;
}

export function createBullmqQueue(redis: Redis, log: Logger): Queue {
  const lanes = new Map(queueNames.map((name) => [name, openLane(name, redis)]));
  const laneOf = (name: QueueName) => lanes.get(name) as SharedLane;
  let isClosed = false;

  async function look(one: SharedLane): Promise<void> {
    if (!redis.isConnected()) return;
    const counts = await one.lane.getJobCounts('waiting', 'delayed');
    one.depth.waiting = (counts['waiting'] ?? 0) * idsMax;
    one.depth.delayed = counts['delayed'] ?? 0;
    one.consumer?.watch(one.depth.waiting);
  }

  const lookAll = () => {
    // A look that fails says what `isConnected` says anyhow.
    for (const one of lanes.values()) look(one).catch(() => {});
  };
  lookAll();
  const looking = setInterval(lookAll, lookEveryMs).unref();

  /** Sends what was announced in this turn of the event loop, all of it together. */
  async function send(one: SharedLane): Promise<void> {
    const hints = one.outgoing;
    one.outgoing = [];
    try {
      const jobs = jobsOf(hints);
      for (let from = 0; from < jobs.length && !isClosed; from += bulkMax) {
        await one.lane.addBulk(jobs.slice(from, from + bulkMax));
      }
    } catch (error) {
      log.debug({ err: error, queue: one.name }, 'hints got lost; the sweep announces them again');
    }
    one.underWay -= hints.length;
  }

  return {
    announce(name, hints) {
      if (isClosed || !redis.isConnected()) return;
      const one = laneOf(name);
      const wasEmpty = one.outgoing.length === 0;
      for (const hint of hints) {
        const kind = hint.delayMs > 0 ? 'delayed' : 'waiting';
        if (one.depth[kind] >= hintsMax || one.underWay >= underWayMax) continue;
        one.depth[kind]++;
        one.underWay++;
        one.outgoing.push(hint);
      }
      if (wasEmpty && one.outgoing.length > 0) setImmediate(() => void send(one));
    },

    consume(name, concurrency, handler) {
      const one = laneOf(name);
      if (one.consumer !== null) throw new Error(`Queue ${name} has a consumer already.`);
      const consumer = consumerOf(one, redis, log, createPlaces(concurrency), handler);
      one.consumer = consumer;
      return {
        ...consumer,
        stop() {
          if (one.consumer === consumer) one.consumer = null;
          return consumer.stop();
        },
      };
    },

    isHungry: (name) => laneOf(name).depth.waiting < hungryBelow,
    isConnected: () => !isClosed && redis.isConnected(),

    async close() {
      if (isClosed) return;
      isClosed = true;
      clearInterval(looking);
      await Promise.all(
        [...lanes.values()].map(async (one) => {
          one.outgoing = [];
          await one.consumer?.close();
          await inTime(one.lane.close());
        }),
      );
    },
  };
}

function openLane(name: QueueName, redis: Redis): SharedLane {
  const lane = new Lane(name, {
    connection: redis.commands,
    skipVersionCheck: true,
    defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
    // A log of everything that happens, which nobody reads.
    streams: { events: { maxLen: 1 } },
  });
  // What goes wrong is told to whoever asked for it.
  lane.on('error', () => {});
  const depth = { waiting: 0, delayed: 0 };
  return { name, lane, depth, outgoing: [], underWay: 0, consumer: null };
}

interface NewJob {
  readonly name: string;
  /** Ids of rows. */
  readonly data: readonly string[];
  readonly opts: { jobId: string; delay?: number; lifo?: boolean };
}

/** Those that are due together, those that wait each for its own time; each row once. */
function jobsOf(hints: readonly Hint[]): NewJob[] {
  const jobs: NewJob[] = [];
  const due = new Map<string, Hint>();
  for (const hint of hints) {
    if (hint.delayMs <= 0) due.set(hint.id, hint);
    else jobs.push(jobOf([hint], { delay: hint.delayMs }));
  }
  const together = [...due.values()];
  for (let from = 0; from < together.length; from += idsMax) {
    jobs.push(jobOf(together.slice(from, from + idsMax)));
  }
  return jobs;
}

/** Its id is that of what it says, so that one that is added twice is there once. */
function jobOf(hints: readonly Hint[], opts: { delay?: number } = {}): NewJob {
  const [first] = hints as [Hint];
  const others = hints.length === 1 ? '' : `_${hints.length}_${hints.at(-1)?.id}`;
  return {
    name: 'look',
    data: hints.map(({ id }) => id),
    opts: { jobId: `${first.id}_${first.generation}${others}`, ...opts },
  };
}

/** What a BullMQ job says; nothing where it is none of ours. */
function idsOf({ data }: Job): string[] {
  return Array.isArray(data) ? data.filter((id) => typeof id === 'string') : [];
}

function consumerOf(
  { name, lane }: SharedLane,
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

/** Waits for something that Redis may never answer. */
async function inTime(done: Promise<unknown>): Promise<void> {
  await Promise.race([done.catch(() => {}), elapsed(closeMs, undefined, { ref: false })]);
}
