/**
 * Live events of jobs, for requests that wait for a job or stream it. Only what is
 * committed is published. Nothing is kept: a listener that comes late reads the database first. The
 * feed of one process misses nothing. One that processes share may, and says so to its listeners.
 */
import { bind } from '../../kernel/bind.ts';
import type { Bus, Listening } from '../../kernel/bus.ts';
import { ShortLivedMap } from '../../kernel/short-lived-map.ts';
import type { TypedJobEvent } from './job-events.schemas.ts';
import type { ShownJob } from './jobs.store.ts';

/** Orders the events of one job: claim by claim, and inside a claim by number. */
export interface Position {
  readonly epoch: number;
  readonly n: number;
}

/** The number of a job's last event: greater than the numbers of all other events of its claim. */
export const endingN = 1_000_000_000;
/** The number of the event that a claim ended without ending the job. */
export const attemptEndN = endingN - 1;

/** One entry of a job's event stream. */
export type JobEvent = Position & TypedJobEvent;

/**
 * Called with null when events may have been missed: the listener then reads the database. `ended` is the job with
 * its end, where this process knows it without reading it.
 */
export type JobListener = (event: JobEvent | null, ended?: ShownJob) => void;

export interface Subscription {
  /** To be awaited, where there is one, before the database is read. */
  readonly ready: Promise<void> | null;
  stop(): void;
}

export interface JobFeed {
  /** Whether events may be missed, so that a gap between two of them has to be looked up. */
  readonly isShared: boolean;
  publish(jobId: string, event: JobEvent, ended?: ShownJob): void;
  /** Whether a listener may be there; without one the caller need not build the event. */
  hasListeners(jobId: string): boolean;
  subscribe(jobId: string, listener: JobListener): Subscription;
}

/**
 * The listeners of this process, by job. No EventEmitter: its names are keys of an object, which V8 looks up in its
 * table of all such keys first, for each job without listeners too.
 */
type Listeners = ShortLivedMap<string, Set<JobListener>>;

function add(listeners: Listeners, jobId: string, listener: JobListener): () => void {
  const ofJob = listeners.get(jobId) ?? new Set();
  listeners.set(jobId, ofJob.add(listener));
  return () => {
    ofJob.delete(listener);
    if (ofJob.size === 0 && listeners.get(jobId) === ofJob) listeners.delete(jobId);
  };
}

/** A listener may stop, and another one begin, while it is told. */
function tell(listeners: Listeners, jobId: string, event: JobEvent | null, ended?: ShownJob): void {
  const ofJob = listeners.get(jobId);
  if (ofJob === undefined) return;
  for (const listener of [...ofJob]) listener(event, ended);
}

/** The feed of a process that runs everything itself. */
export function createJobFeed(): JobFeed {
  const listeners: Listeners = new ShortLivedMap();
  return {
    isShared: false,
    publish: (jobId, event, ended) => tell(listeners, jobId, event, ended),
    hasListeners: (jobId) => listeners.has(jobId),
    subscribe: (jobId, listener) => ({ ready: null, stop: add(listeners, jobId, listener) }),
  };
}

/** Between two checks of the bus; while it is disconnected, each listener reads the database each time. */
const checkEveryMs = 500;
/** While it is connected, each listener reads at every sixth check, because a sender may be cut off. */
const checksApart = 6;
/** How long a subscription to the bus outlives its last listener. */
const idleMs = 5_000;

type Outgoing = [jobId: string, event: JobEvent];

interface SharedFeed {
  readonly bus: Bus;
  readonly listeners: Listeners;
  /** The number of listeners. */
  subscribed: number;
  /** The events published in this turn of the event loop. */
  outgoing: Outgoing[];
  /** The subscription to the bus, while there are listeners and shortly after. */
  listening: Listening | null;
  checking: NodeJS.Timeout | undefined;
  checks: number;
  /** When the last listener left. */
  idleSince: number;
}

/** The feed that processes share. What is published in one turn of the event loop is sent together. */
export function createSharedJobFeed(bus: Bus): JobFeed {
  const listeners: Listeners = new ShortLivedMap();
  const feed: SharedFeed = {
    bus,
    listeners,
    subscribed: 0,
    outgoing: [],
    listening: null,
    checking: undefined,
    checks: 0,
    idleSince: 0,
  };
  bus.onMissed(() => refreshAll(listeners));
  return { isShared: true, hasListeners: () => true, ...bind(feed, { publish, subscribe }) };
}

function publish(feed: SharedFeed, jobId: string, event: JobEvent, ended?: ShownJob): void {
  tell(feed.listeners, jobId, event, ended);
  if (feed.outgoing.length === 0) setImmediate(send, feed);
  feed.outgoing.push([jobId, event]);
}

function subscribe(feed: SharedFeed, jobId: string, listener: JobListener): Subscription {
  const ready = listen(feed);
  const remove = add(feed.listeners, jobId, listener);
  feed.subscribed += 1;
  let isStopped = false;
  return {
    ready,
    stop() {
      if (isStopped) return;
      isStopped = true;
      remove();
      feed.subscribed -= 1;
      feed.idleSince = performance.now();
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
  if (feed.listening === null) {
    feed.listening = feed.bus.listen('jobs', (message) => receive(feed.listeners, message));
    feed.checking = setInterval(check, checkEveryMs, feed).unref();
  }
  return feed.listening.ready;
}

/** Passes on what another process has published. */
function receive(listeners: Listeners, message: string): void {
  let events: Outgoing[];
  try {
    events = JSON.parse(message) as Outgoing[];
    if (!Array.isArray(events)) throw new Error('It is no list');
  } catch {
    // Perhaps from another version of the platform: its events are in the database too.
    refreshAll(listeners);
    return;
  }
  for (const [jobId, event] of events) tell(listeners, jobId, event);
}

/** Has listeners read the database, because the bus may have missed events; stops when there are none. */
function check(feed: SharedFeed): void {
  const { bus, listeners } = feed;
  feed.checks++;
  if (feed.subscribed === 0) {
    if (performance.now() - feed.idleSince > idleMs) {
      feed.listening?.stop();
      feed.listening = null;
      clearInterval(feed.checking);
    }
    return;
  }
  if (!bus.isConnected()) {
    refreshAll(listeners);
    return;
  }
  // A part of them at each check, so that they do not all read at once.
  for (const [i, jobId] of listeners.keys().entries()) {
    if (i % checksApart === feed.checks % checksApart) tell(listeners, jobId, null);
  }
}

function refreshAll(listeners: Listeners): void {
  for (const jobId of listeners.keys()) tell(listeners, jobId, null);
}
