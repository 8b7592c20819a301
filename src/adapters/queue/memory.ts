/**
 * The queue of one process: hints in memory, handled in the order in which they fall due, organizations
 * in turn. It keeps each row at most once, so repeating a hint is free. It promises nothing across a restart and
 * needs not to: the sweep sends hints for the due rows of the database again. How much of it one organization may
 * take is decided in `fair-share.ts`.
 */
import { bind } from '../../kernel/bind.ts';
import type { Logger } from '../../kernel/log.ts';
import { type QueueName, queueNames } from '../../kernel/queues.ts';
import { keptSlots, mayBegin, mayKeepHint } from './fair-share.ts';
import { createLine, type Line } from './line.ts';
import { once } from './once.ts';
import type { Consumer, Hint, HintHandler, Queue } from './queue.ts';

/** Hints kept for each queue, due ones and delayed ones each; see `mayKeepHint`. */
const hintsMax = 20_000;
/** With fewer due hints than this the sweep sends more. */
const lowWaterMark = 1_000;

interface NamedQueue {
  readonly log: Logger;
  /** By id; those with a hint, a delayed hint or a row under way. */
  readonly organizations: Map<string, Organization>;
  /** Those with due hints; the one whose turn is next comes first. */
  readonly turns: Set<Organization>;
  /** Due hints of all organizations. */
  due: number;
  /** Slots taken by all organizations. */
  taken: number;
  /** By row. */
  readonly delayed: Map<string, NodeJS.Timeout>;
  readonly running: Set<string>;
  /** Rows with a new hint while they run: handled once more afterwards. */
  readonly again: Set<string>;
  consumer: QueueConsumer | null;
}

/** What an organization has of a queue. */
interface Organization {
  readonly id: string;
  readonly due: Line;
  /** Hints that wait for their time. */
  delayed: number;
  /** Rows under way. */
  running: number;
  /** Slots: of the rows under way whose handlers have not yielded theirs. */
  taken: number;
}

interface QueueConsumer {
  readonly named: NamedQueue;
  readonly concurrency: number;
  readonly handler: HintHandler;
  /** Handlers under way. */
  running: number;
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
    else enqueue(named, organizationOf(named, hint.organizationId), hint.id);
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
  const consumer: QueueConsumer = { named, concurrency, handler, running: 0, idle };
  named.consumer = consumer;
  pump(named);
  return bind(consumer, { offerSlots, yieldSlot, run, stop });
}

function isRunningLow(queue: MemoryQueue, name: QueueName): boolean {
  return queueOf(queue, name).due < lowWaterMark;
}

function isConnected(queue: MemoryQueue): boolean {
  return !queue.isClosed;
}

async function close(queue: MemoryQueue): Promise<void> {
  queue.isClosed = true;
  for (const named of queue.queues.values()) {
    for (const timer of named.delayed.values()) clearTimeout(timer);
    named.delayed.clear();
    named.organizations.clear();
    named.turns.clear();
    named.due = 0;
    named.again.clear();
    named.consumer = null;
  }
}

function offerSlots(consumer: QueueConsumer): (organizationId: string) => boolean {
  const { named, concurrency: slots } = consumer;
  if (named.consumer !== consumer) return () => false;
  const offered = new Map<string, number>();
  let taken = named.taken;
  return (id) => {
    const organization = named.organizations.get(id);
    // Its earlier rows begin first.
    if (organization !== undefined && organization.due.size > 0) return false;
    const before = offered.get(id) ?? 0;
    const own = (organization?.taken ?? 0) + before;
    if (!mayBegin({ slots, taken, own, othersWait: named.turns.size > 0 })) return false;
    offered.set(id, before + 1);
    taken++;
    return true;
  };
}

function yieldSlot(consumer: QueueConsumer, organizationId?: string): () => void {
  const { named } = consumer;
  const organization = organizationOf(named, organizationId);
  take(named, organization, -1);
  pump(named);
  return once(() => take(named, organization, 1));
}

function run(
  consumer: QueueConsumer,
  { id, organizationId }: Pick<Hint, 'id' | 'organizationId'>,
  work: () => Promise<void>,
): void {
  void handle(consumer, organizationOf(consumer.named, organizationId), id, work);
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

function organizationOf({ organizations }: NamedQueue, id = ''): Organization {
  const known = organizations.get(id);
  if (known !== undefined) return known;
  const organization = { id, due: createLine(), delayed: 0, running: 0, taken: 0 };
  organizations.set(id, organization);
  return organization;
}

/** Takes a slot, or gives one back. */
function take(named: NamedQueue, organization: Organization, slots: 1 | -1): void {
  named.taken += slots;
  organization.taken += slots;
}

/** Else one would be kept for each organization that there has ever been. */
function forgetIfIdle(
  { organizations }: NamedQueue,
  { id, running, delayed, due }: Organization,
): void {
  if (running === 0 && delayed === 0 && due.size === 0) organizations.delete(id);
}

function delay(named: NamedQueue, { id, organizationId, delayMs }: Hint): void {
  const organization = organizationOf(named, organizationId);
  const earlier = named.delayed.get(id);
  if (earlier !== undefined) clearTimeout(earlier);
  else if (isKept(named, named.delayed.size, organization.delayed)) organization.delayed++;
  else {
    forgetIfIdle(named, organization);
    return;
  }
  const timer = setTimeout(() => {
    named.delayed.delete(id);
    organization.delayed--;
    enqueue(named, organization, id);
    pump(named);
  }, delayMs);
  timer.unref();
  named.delayed.set(id, timer);
}

function enqueue(named: NamedQueue, organization: Organization, id: string): void {
  const { due } = organization;
  const before = due.size;
  if (named.running.has(id)) named.again.add(id);
  else if (isKept(named, named.due, before)) due.add(id);
  named.due += due.size - before;
  if (due.size > 0) named.turns.add(organization);
  else forgetIfIdle(named, organization);
}

function isKept({ organizations }: NamedQueue, kept: number, own: number): boolean {
  return mayKeepHint({ max: hintsMax, kept, own, organizations: organizations.size });
}

/** Starts handlers of due rows while slots are free. */
function pump(named: NamedQueue): void {
  const { consumer } = named;
  if (consumer === null) return;
  for (;;) {
    const organization = nextOrganization(named, consumer.concurrency);
    const id = organization?.due.shift();
    if (organization === undefined || id === undefined) return;
    named.due--;
    if (organization.due.size === 0) named.turns.delete(organization);
    else if (named.turns.size > 1) {
      named.turns.delete(organization);
      named.turns.add(organization);
    }
    void handle(consumer, organization, id, () => consumer.handler(id));
  }
}

/** The first one in turn that may begin. */
function nextOrganization({ turns, taken }: NamedQueue, slots: number): Organization | undefined {
  // No organization may begin, however many wait.
  if (taken >= slots + keptSlots(slots)) return undefined;
  for (const organization of turns) {
    const { taken: own } = organization;
    if (mayBegin({ slots, taken, own, othersWait: turns.size > 1 })) return organization;
  }
  return undefined;
}

async function handle(
  consumer: QueueConsumer,
  organization: Organization,
  id: string,
  work: () => Promise<void>,
): Promise<void> {
  const { named } = consumer;
  named.running.add(id);
  organization.running++;
  take(named, organization, 1);
  consumer.running++;
  try {
    await work();
  } catch (error) {
    named.log.error({ err: error, id }, 'a queue handler failed');
  }
  named.running.delete(id);
  organization.running--;
  take(named, organization, -1);
  consumer.running--;
  if (named.again.delete(id)) enqueue(named, organization, id);
  else forgetIfIdle(named, organization);
  if (consumer.running === 0 && named.consumer !== consumer) consumer.idle.resolve();
  pump(named);
}

function emptyQueue(log: Logger): NamedQueue {
  return {
    log,
    organizations: new Map(),
    turns: new Set(),
    due: 0,
    taken: 0,
    delayed: new Map(),
    running: new Set(),
    again: new Set(),
    consumer: null,
  };
}
