/**
 * Live events of jobs, for requests that wait for a job or stream it. Only what is
 * committed is published. Nothing is kept: a listener that comes late reads the database first. The
 * feed of one process misses nothing. One that processes share may, and says so to its listeners.
 */
import { bind } from '../kernel/bind.ts';
import type { Bus, Listening } from '../kernel/bus.ts';

/** Orders the events of one job: claim by claim, and inside a claim by number. */
export interface Position {
  readonly epoch: number;
  readonly n: number;
}

/** The number of a job's last event; whatever a claim says or comes to lies before it. */
export const endingN = 1_000_000_000;
/** The number of the event that a claim ended without ending the job. */
export const attemptEndN = endingN - 1;

/** One entry of a job's event stream. */
export interface JobEvent extends Position {
  readonly type: 'status' | 'log' | 'progress' | 'message' | 'token' | 'tool_call' | 'tool_result';
  readonly data: Readonly<Record<string, unknown>>;
}

/** Called with null when events may have been missed: the listener then reads the database. */
export type JobListener = (event: JobEvent | null) => void;

export interface Subscription {
  /** To be awaited, where there is one, before the database is read. */
  readonly ready: Promise<void> | null;
  stop(): void;
}

export interface JobFeed {
  /** Whether events may be missed, so that a gap between two of them has to be looked up. */
  readonly isShared: boolean;
  publish(jobId: string, event: JobEvent): void;
  /** Whether a listener may be there; without one the caller need not build the event. */
  hasListeners(jobId: string): boolean;
  subscribe(jobId: string, listener: JobListener): Subscription;
}

/** The listeners of this process. */
interface Listeners {
  readonly size: number;
  has(jobId: string): boolean;
  add(jobId: string, listener: JobListener): () => void;
  tell(jobId: string, event: JobEvent | null): void;
  jobs(): Iterable<string>;
}

function createListeners(): Listeners {
  const byJob = new Map<string, Set<JobListener>>();
  return {
    get size() {
      return byJob.size;
    },
    has: (jobId) => byJob.has(jobId),
    add(jobId, listener) {
      const own = byJob.get(jobId) ?? new Set();
      own.add(listener);
      byJob.set(jobId, own);
      return () => {
        own.delete(listener);
        if (own.size === 0) byJob.delete(jobId);
      };
    },
    tell(jobId, event) {
      for (const listener of byJob.get(jobId) ?? []) listener(event);
    },
    jobs: () => byJob.keys(),
  };
}

/** The feed of a process that runs everything itself. */
export function createJobFeed(): JobFeed {
  const listeners = createListeners();
  return {
    isShared: false,
    publish: listeners.tell,
    hasListeners: listeners.has,
    subscribe: (jobId, listener) => ({ ready: null, stop: listeners.add(jobId, listener) }),
  };
}

/** Between two checks of the bus; while it is disconnected, each listener reads the database each time. */
const lookEveryMs = 500;
/** While it is connected, each listener reads at every sixth check, because a sender may be cut off. */
const looksApart = 6;
/** How long a subscription to the bus outlives its last listener. */
const idleMs = 5_000;

type Outgoing = [jobId: string, event: JobEvent];

interface SharedFeed {
  readonly bus: Bus;
  readonly listeners: Listeners;
  /** The events published in this turn of the event loop. */
  outgoing: Outgoing[];
  /** The subscription to the bus, while there are listeners and shortly after. */
  listening: Listening | null;
  looking: NodeJS.Timeout | undefined;
  looks: number;
  /** When the last listener left; infinite while there is one. */
  idleSince: number;
}

/** The feed that processes share. What is published in one turn of the event loop is sent together. */
export function createSharedJobFeed(bus: Bus): JobFeed {
  const listeners = createListeners();
  const feed: SharedFeed = {
    bus,
    listeners,
    outgoing: [],
    listening: null,
    looking: undefined,
    looks: 0,
    idleSince: Number.POSITIVE_INFINITY,
  };
  bus.onMissed(() => lookAll(listeners));
  return { isShared: true, hasListeners: () => true, ...bind(feed, { publish, subscribe }) };
}

function publish(feed: SharedFeed, jobId: string, event: JobEvent): void {
  feed.listeners.tell(jobId, event);
  if (feed.outgoing.length === 0) setImmediate(send, feed);
  feed.outgoing.push([jobId, event]);
}

function subscribe(feed: SharedFeed, jobId: string, listener: JobListener): Subscription {
  const ready = listen(feed);
  const remove = feed.listeners.add(jobId, listener);
  return {
    ready,
    stop() {
      remove();
      if (feed.listeners.size === 0) feed.idleSince = performance.now();
    },
  };
}

function send(feed: SharedFeed): void {
  const events = feed.outgoing;
  feed.outgoing = [];
  feed.bus.send('jobs', JSON.stringify(events));
}

/** Subscribes to the bus, unless the feed still is. */
function listen(feed: SharedFeed): Promise<void> {
  feed.idleSince = Number.POSITIVE_INFINITY;
  if (feed.listening === null) {
    feed.listening = feed.bus.listen('jobs', (message) => hear(feed.listeners, message));
    feed.looking = setInterval(look, lookEveryMs, feed).unref();
  }
  return feed.listening.ready;
}

function stopListening(feed: SharedFeed): void {
  feed.listening?.stop();
  feed.listening = null;
  clearInterval(feed.looking);
}

/** Tells the listeners what another process has published. */
function hear(listeners: Listeners, message: string): void {
  let events: Outgoing[];
  try {
    events = JSON.parse(message) as Outgoing[];
    if (!Array.isArray(events)) throw new Error('It is no list');
  } catch {
    // Perhaps from another version of the platform: its events are in the database too.
    lookAll(listeners);
    return;
  }
  for (const [jobId, event] of events) listeners.tell(jobId, event);
}

/** Has listeners read the database, because the bus may have missed events. */
function look(feed: SharedFeed): void {
  const { bus, listeners } = feed;
  feed.looks++;
  if (listeners.size === 0) {
    if (performance.now() - feed.idleSince > idleMs) stopListening(feed);
    return;
  }
  if (!bus.isConnected()) {
    lookAll(listeners);
    return;
  }
  // A part of them at each look, so that they do not all read at once.
  let i = 0;
  for (const jobId of [...listeners.jobs()]) {
    if (i++ % looksApart === feed.looks % looksApart) listeners.tell(jobId, null);
  }
}

function lookAll(listeners: Listeners): void {
  for (const jobId of [...listeners.jobs()]) listeners.tell(jobId, null);
}
