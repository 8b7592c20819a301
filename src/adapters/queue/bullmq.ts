/**
 * The queue that processes share: hints as BullMQ jobs in Redis, which carry ids of rows. A job
 * leaves Redis as soon as a worker has taken it, because the claim in the database decides; locks,
 * stalled jobs and retries of BullMQ are not used. Everything in Redis may be lost: the sweep sends
 * the hints again.
 *
 * Hints of one turn of the event loop travel in few BullMQ jobs, several ids in each: one job for
 * each hint costs four times as much in the processes and in Redis together.
 */
import { Queue as BullQueue } from 'bullmq';
import { bind } from '../../kernel/bind.ts';
import type { Logger } from '../../kernel/log.ts';
import { type QueueName, queueNames } from '../../kernel/queues.ts';
import type { Redis } from '../redis/redis.ts';
import { type BullmqConsumer, createBullmqConsumer } from './bullmq-consumer.ts';
import { inTime } from './in-time.ts';
import type { Consumer, Hint, HintHandler, Queue } from './queue.ts';
import { Slots } from './slots.ts';

/** Hints kept in Redis for each queue, due ones and delayed ones each. */
const hintsMax = 20_000;
/** With fewer due hints than this the sweep sends more: enough for a second of the fastest workers. */
const lowWaterMark = 4_000;
/** Hints of this process that may be on their way to Redis; more are dropped. */
const underWayMax = 20_000;
/** Ids in one BullMQ job: few enough that several workers get some of what comes at once. */
const idsMax = 16;
/** BullMQ jobs sent together. */
const bulkMax = 250;
/** Between two looks at how many hints there are. */
const lookEveryMs = 500;

interface Depth {
  waiting: number;
  delayed: number;
}

interface NamedQueue {
  readonly name: QueueName;
  readonly bullQueue: BullQueue;
  /** At most this many hints exist: those found by the last count, and those sent here since. */
  readonly depth: Depth;
  outgoing: Hint[];
  underWay: number;
  consumer: BullmqConsumer | null;
}

interface BullmqQueue {
  readonly redis: Redis;
  readonly log: Logger;
  readonly queues: ReadonlyMap<QueueName, NamedQueue>;
  readonly looking: NodeJS.Timeout;
  isClosed: boolean;
}

export function createBullmqQueue(redis: Redis, log: Logger): Queue {
  const queues = new Map(queueNames.map((name) => [name, openQueue(name, redis)]));
  const looking = setInterval(() => lookAll(queue), lookEveryMs).unref();
  const queue: BullmqQueue = { redis, log, queues, looking, isClosed: false };
  lookAll(queue);
  return bind(queue, { sendHints, consume, isRunningLow, isConnected, close });
}

function sendHints(queue: BullmqQueue, name: QueueName, hints: readonly Hint[]): void {
  if (!isConnected(queue)) return;
  const one = queueOf(queue, name);
  const wasEmpty = one.outgoing.length === 0;
  for (const hint of hints) {
    const kind = hint.delayMs > 0 ? 'delayed' : 'waiting';
    if (one.depth[kind] >= hintsMax || one.underWay >= underWayMax) continue;
    one.depth[kind]++;
    one.underWay++;
    one.outgoing.push(hint);
  }
  if (wasEmpty && one.outgoing.length > 0) setImmediate(() => void send(queue, one));
}

/** Sends the hints of this turn of the event loop together. */
async function send(queue: BullmqQueue, one: NamedQueue): Promise<void> {
  const hints = one.outgoing;
  one.outgoing = [];
  try {
    const jobs = jobsOf(hints);
    for (let from = 0; from < jobs.length && !queue.isClosed; from += bulkMax) {
      await add(one.bullQueue, jobs.slice(from, from + bulkMax));
    }
  } catch (error) {
    queue.log.debug({ err: error, queue: one.name }, 'hints got lost; the sweep sends them again');
  }
  one.underWay -= hints.length;
}

/** What sends many together costs as much as sending one, so one is sent without it. */
async function add(bullQueue: BullQueue, jobs: readonly NewJob[]): Promise<void> {
  const [first] = jobs;
  if (jobs.length === 1 && first !== undefined)
    await bullQueue.add(first.name, first.data, first.opts);
  else await bullQueue.addBulk([...jobs]);
}

function consume(
  queue: BullmqQueue,
  name: QueueName,
  concurrency: number,
  handler: HintHandler,
): Consumer {
  const { redis, log } = queue;
  const one = queueOf(queue, name);
  if (one.consumer !== null) throw new Error(`Queue ${name} has a consumer already.`);
  const consumer = createBullmqConsumer({
    bullQueue: one.bullQueue,
    redis,
    log,
    slots: new Slots(concurrency),
    handler,
  });
  one.consumer = consumer;
  return {
    ...consumer,
    stop() {
      if (one.consumer === consumer) one.consumer = null;
      return consumer.stop();
    },
  };
}

function isRunningLow(queue: BullmqQueue, name: QueueName): boolean {
  return queueOf(queue, name).depth.waiting < lowWaterMark;
}

function isConnected(queue: BullmqQueue): boolean {
  return !queue.isClosed && queue.redis.isConnected();
}

async function close(queue: BullmqQueue): Promise<void> {
  if (queue.isClosed) return;
  queue.isClosed = true;
  clearInterval(queue.looking);
  await Promise.all(
    [...queue.queues.values()].map(async (one) => {
      one.outgoing = [];
      await one.consumer?.close();
      await inTime(one.bullQueue.close());
    }),
  );
}

function lookAll(queue: BullmqQueue): void {
  // A failure means that Redis cannot be reached, which `isConnected` reports.
  for (const one of queue.queues.values()) look(queue.redis, one).catch(() => {});
}

/** Counts the hints of a queue. */
async function look(redis: Redis, one: NamedQueue): Promise<void> {
  if (!redis.isConnected()) return;
  const counts = await one.bullQueue.getJobCounts('waiting', 'delayed');
  one.depth.waiting = (counts['waiting'] ?? 0) * idsMax;
  one.depth.delayed = counts['delayed'] ?? 0;
  one.consumer?.watch(one.depth.waiting);
}

function queueOf({ queues }: BullmqQueue, name: QueueName): NamedQueue {
  return queues.get(name) as NamedQueue;
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
  return { name, bullQueue, depth, outgoing: [], underWay: 0, consumer: null };
}

interface NewJob {
  readonly name: string;
  /** Ids of rows. */
  readonly data: readonly string[];
  readonly opts: { jobId: string; delay?: number; lifo?: boolean };
}

/** Due hints share jobs; each delayed hint has its own. Each row is in once. */
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

/** The job's id follows from its hints, so that adding it twice keeps one. */
function jobOf(hints: readonly Hint[], opts: { delay?: number } = {}): NewJob {
  const [first] = hints as [Hint];
  const others = hints.length === 1 ? '' : `_${hints.length}_${hints.at(-1)?.id}`;
  return {
    name: 'look',
    data: hints.map(({ id }) => id),
    opts: { jobId: `${first.id}_${first.generation}${others}`, ...opts },
  };
}
