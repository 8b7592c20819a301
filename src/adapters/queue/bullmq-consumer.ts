/**
 * Takes hints of one queue from Redis, with BullMQ's manual fetching, as many at a time as there are
 * slots. A hint leaves Redis before its row is handled. A hint for which there is no slot is put back
 * for other processes. It has more than 300 lines because the way of a hint, to a slot or back to Redis, has to be
 * read together.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { type Queue as BullQueue, Job, Worker } from 'bullmq';
import type { Logger } from '../../kernel/log.ts';
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
  /**
   * End the waits for answers of this source. Not a promise that each of them is raced with: it would keep what
   * all of them were answered.
   */
  readonly waits: Set<() => void>;
  isGone: boolean;
}

export interface BullmqConsumer extends Consumer {
  /** Replaces the BullMQ worker when it is stuck. */
  watch(waiting: number): void;
  /** Takes nothing more and closes its connections. */
  close(): Promise<void>;
}

export interface ConsumerDeps {
  readonly bullQueue: BullQueue;
  readonly redis: Redis;
  readonly log: Logger;
  readonly slots: Slots;
  readonly handler: HintHandler;
}

/** A consumer's state. */
interface ConsumerState extends ConsumerDeps {
  source: Source;
  isStopped: boolean;
  /** Handlers under way. */
  readonly underWay: Set<Promise<void>>;
  /** Requests that complete a taken job and fetch the next one. */
  readonly following: Set<Promise<void>>;
  /** Ids that were taken and wait for a slot here. */
  inHand: string[];
  handEmpty: PromiseWithResolvers<void>;
  puttingBack: NodeJS.Timeout | undefined;
  /** When a hint was last taken. */
  takenAt: number;
  /** Number the tokens and the ids of what is put back. */
  tokens: number;
  timesPutBack: number;
}

/** Begins to take hints, until it is stopped. */
export function createBullmqConsumer(deps: ConsumerDeps): BullmqConsumer {
  const state: ConsumerState = {
    ...deps,
    source: openSource(deps),
    isStopped: false,
    underWay: new Set(),
    following: new Set(),
    inHand: [],
    handEmpty: Promise.withResolvers(),
    puttingBack: undefined,
    takenAt: performance.now(),
    tokens: 0,
    timesPutBack: 0,
  };
  const taking = take(state);
  return {
    // What starts beside the queue would take slots from the hints of other processes.
    offerSlots: () => () => false,
    yieldSlot: () => yieldSlot(state),
    run: ({ id }, work) => void handle(state, id, work),
    stop: () => stop(state, taking),
    watch: (waiting) => watch(state, waiting),
    close: () => stopTaking(state, taking),
  };
}

function openSource({ bullQueue: { name }, redis, log }: ConsumerDeps): Source {
  const connection = redis.connection({ blocking: true });
  const worker = new Worker(name, null, { connection, drainDelay: blockSeconds });
  worker.on('error', (err) => log.debug({ err, queue: name }, 'a connection of a worker failed'));
  // Hints that a worker had taken when it died block nothing, but they use memory.
  worker.startStalledCheckTimer().catch(() => {});
  return { worker, connection, waits: new Set(), isGone: false };
}

/** The answer of a source; null when the source is given up before. */
function unlessGone<T>(source: Source, answer: Promise<T>): Promise<T | null> {
  const { promise, resolve, reject } = Promise.withResolvers<T | null>();
  const end = () => resolve(null);
  source.waits.add(end);
  answer.then(resolve, reject).finally(() => source.waits.delete(end));
  if (source.isGone) end();
  return promise;
}

function giveUp(source: Source): void {
  source.isGone = true;
  for (const end of source.waits) end();
}

/** Takes hints one after the other, each when a slot is free. */
async function take(state: ConsumerState): Promise<void> {
  const { slots, following } = state;
  while (!state.isStopped) {
    if (state.inHand.length > 0) await state.handEmpty.promise;
    if (following.size >= takersMax) await Promise.race(following);
    if (!(await slots.reserve())) return;
    const { source } = state;
    const token = `${source.worker.id}:${state.tokens++}`;
    const job = await unlessGone(source, nextJob(state, source, token));
    if (job === null) slots.release();
    else {
      const one = follow(state, job, token, source).finally(() => following.delete(one));
      following.add(one);
    }
  }
}

async function nextJob(
  { bullQueue: { name }, log }: ConsumerState,
  { worker }: Source,
  token: string,
): Promise<Job | null> {
  try {
    return ((await worker.getNextJob(token)) as Job | undefined) ?? null;
  } catch (err) {
    log.debug({ err, queue: name }, 'no hint could be taken');
    await elapsed(againMs);
    return null;
  }
}

/** Begins with the taken job, and with each next one that completing it returns while slots are free. */
async function follow(
  state: ConsumerState,
  first: Job,
  token: string,
  source: Source,
): Promise<void> {
  const { slots } = state;
  for (let job: Job | null = first; job !== null; ) {
    state.takenAt = performance.now();
    const [id, ...others] = idsOf(job);
    if (id === undefined || state.isStopped) {
      slots.release();
      keepInHand(state, id === undefined ? [] : [id, ...others]);
    } else {
      begin(state, id);
      keepInHand(state, others);
    }
    const goesOn = !state.isStopped && state.inHand.length === 0 && slots.reserveNow();
    const next: Job | null = await complete(state, job, token, goesOn, source);
    if (goesOn && next === null) slots.release();
    job = next;
  }
}

/** The ids in a BullMQ job; none when it has another format. */
function idsOf({ data }: Job): string[] {
  return Array.isArray(data) ? data.filter((id) => typeof id === 'string') : [];
}

/** Removes a hint from Redis and, with `goesOn`, fetches the next one in the same request. */
async function complete(
  { bullQueue: { name }, log }: ConsumerState,
  job: Job,
  token: string,
  goesOn: boolean,
  source: Source,
): Promise<Job | null> {
  try {
    const next = await unlessGone(source, job.moveToCompleted(null, token, goesOn));
    if (!goesOn || !Array.isArray(next)) return null;
    const [data, id] = next as [Parameters<typeof Job.fromJSON>[1] | null, string];
    return data ? Job.fromJSON(source.worker, data, id) : null;
  } catch (err) {
    // After a FLUSHALL, for example, there is nothing left to remove.
    log.debug({ err, queue: name }, 'a hint could not be taken out');
    return null;
  }
}

/** Begins as many as there are slots for; the others wait here for a moment. */
function keepInHand(state: ConsumerState, ids: readonly string[]): void {
  state.inHand.push(...ids);
  serveHand(state);
  if (state.inHand.length === 0) return;
  if (state.isStopped) void putBack(state);
  else state.puttingBack ??= setTimeout(putBack, inHandMs, state);
}

function serveHand(state: ConsumerState): void {
  const { slots } = state;
  while (state.inHand.length > 0 && !state.isStopped && slots.reserveNow()) {
    begin(state, state.inHand.shift() as string);
  }
  if (state.inHand.length === 0) emptyHand(state);
}

function emptyHand(state: ConsumerState): string[] {
  const ids = state.inHand;
  state.inHand = [];
  clearTimeout(state.puttingBack);
  state.puttingBack = undefined;
  state.handEmpty.resolve();
  state.handEmpty = Promise.withResolvers();
  return ids;
}

/** Puts back the ids that found no slot, as the next ones to be taken by any process. */
async function putBack(state: ConsumerState): Promise<void> {
  const { bullQueue, log, source } = state;
  const data = emptyHand(state);
  if (data.length === 0) return;
  const jobId = `${data[0]}_back_${source.worker.id}_${state.timesPutBack++}`;
  try {
    await bullQueue.add('look', data, { jobId, lifo: true });
  } catch (err) {
    log.debug({ err, queue: bullQueue.name }, 'hints got lost; the sweep sends them again');
  }
}

/** Handles a row in the reserved slot. */
function begin(state: ConsumerState, id: string): void {
  const { slots, handler } = state;
  if (!slots.occupy(id)) return;
  void handle(state, id, () => handler(id)).then(() => {
    const again = slots.leave(id);
    if (again && !state.isStopped && slots.reserveNow()) begin(state, id);
    if (state.inHand.length > 0) serveHand(state);
  });
}

/** Does the work on a row; resolves when it has ended, and never rejects. */
function handle(state: ConsumerState, id: string, work: () => Promise<void>): Promise<void> {
  const { underWay, log } = state;
  const done = Promise.try(work)
    .catch((err) => log.error({ err, id }, 'a queue handler failed'))
    .finally(() => underWay.delete(done));
  underWay.add(done);
  return done;
}

function yieldSlot(state: ConsumerState): () => void {
  const resume = state.slots.yieldOne();
  serveHand(state);
  return resume;
}

/** Replaces the BullMQ worker when it takes none of the waiting hints although slots are free. */
function watch(state: ConsumerState, waiting: number): void {
  const { bullQueue, slots, log } = state;
  if (waiting === 0 || !slots.isFree()) state.takenAt = performance.now();
  if (performance.now() - state.takenAt < stuckMs || state.isStopped) return;
  log.warn(
    { queue: bullQueue.name, waiting },
    'a worker took nothing of what waits; it begins anew',
  );
  const old = state.source;
  state.source = openSource(state);
  state.takenAt = performance.now();
  giveUp(old);
  old.worker
    .close(true)
    .catch(() => {})
    .finally(() => old.connection.disconnect());
}

async function stopTaking(state: ConsumerState, taking: Promise<void>): Promise<void> {
  if (state.isStopped) return;
  state.isStopped = true;
  const { slots, following, source } = state;
  slots.close();
  await inTime(putBack(state));
  await inTime(Promise.all(following));
  // Ends the wait for a hint. A hint that is just being taken still arrives, and is put back.
  await inTime(source.worker.close(true));
  await inTime(taking);
  giveUp(source);
  await taking;
  await inTime(Promise.all(following));
}

async function stop(state: ConsumerState, taking: Promise<void>): Promise<void> {
  await stopTaking(state, taking);
  while (state.underWay.size > 0) await Promise.all(state.underWay);
}
