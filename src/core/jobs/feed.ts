/**
 * Live events of jobs, for requests that wait for a job or stream it. Only what is
 * committed is published. Nothing is kept: a listener that comes late reads the database first. The
 * feed of one process misses nothing. One that processes share may, and notifies its listeners of that.
 */
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

export class Subscription {
  /** To be awaited, where there is one, before the database is read. */
  readonly ready: Promise<void> | null;
  readonly #feed: JobFeed;
  readonly #jobId: string;
  readonly #listener: JobListener;
  #isStopped = false;

  constructor(feed: JobFeed, jobId: string, listener: JobListener, ready: Promise<void> | null) {
    this.ready = ready;
    this.#feed = feed;
    this.#jobId = jobId;
    this.#listener = listener;
  }

  stop(): void {
    if (!this.#isStopped) this.#feed.unsubscribe(this.#jobId, this.#listener);
    this.#isStopped = true;
  }
}

/** The feed of a process that runs everything itself. */
export class JobFeed {
  /** Whether events may be missed, so that a gap between two of them has to be looked up. */
  readonly isShared: boolean = false;
  /**
   * By job. No EventEmitter: its names are keys of an object, which V8 looks up in its table of all such keys first,
   * for each job without listeners too.
   */
  protected readonly listeners = new ShortLivedMap<string, Set<JobListener>>();

  publish(jobId: string, event: JobEvent, ended?: ShownJob): void {
    this.notify(jobId, event, ended);
  }

  /** Whether a listener may be there; without one the caller need not build the event. */
  hasListeners(jobId: string): boolean {
    return this.listeners.has(jobId);
  }

  subscribe(jobId: string, listener: JobListener): Subscription {
    this.addListener(jobId, listener);
    return new Subscription(this, jobId, listener, null);
  }

  /** Called by the subscription of the listener. */
  unsubscribe(jobId: string, listener: JobListener): void {
    const ofJob = this.listeners.get(jobId);
    ofJob?.delete(listener);
    if (ofJob?.size === 0) this.listeners.delete(jobId);
  }

  protected addListener(jobId: string, listener: JobListener): void {
    const ofJob = this.listeners.get(jobId) ?? new Set();
    this.listeners.set(jobId, ofJob.add(listener));
  }

  /** A listener may stop, and another one begin, while this calls them. */
  protected notify(jobId: string, event: JobEvent | null, ended?: ShownJob): void {
    const ofJob = this.listeners.get(jobId);
    if (ofJob === undefined) return;
    for (const listener of [...ofJob]) listener(event, ended);
  }
}

/** Between two checks of the bus; while it is disconnected, each listener reads the database each time. */
const checkEveryMs = 500;
/** While it is connected, each listener reads at every sixth check, because a sender may be cut off. */
const checksApart = 6;
/** How long a subscription to the bus outlives its last listener. */
const idleMs = 5_000;

type Outgoing = [jobId: string, event: JobEvent];

/** The feed that processes share. What is published in one turn of the event loop is sent together. */
export class SharedJobFeed extends JobFeed {
  override readonly isShared = true;
  readonly #bus: Bus;
  /** The number of listeners. */
  #subscribed = 0;
  /** The events published in this turn of the event loop. */
  #outgoing: Outgoing[] = [];
  readonly #onTurnEnd = (): void => this.#send();
  /** The subscription to the bus, while there are listeners and shortly after. */
  #listening: Listening | null = null;
  #checking: NodeJS.Timeout | undefined;
  #checks = 0;
  /** When the last listener left. */
  #idleSince = 0;

  constructor(bus: Bus) {
    super();
    this.#bus = bus;
    bus.onMissed(() => this.#refreshAll());
  }

  override hasListeners(): boolean {
    return true;
  }

  override publish(jobId: string, event: JobEvent, ended?: ShownJob): void {
    this.notify(jobId, event, ended);
    if (this.#outgoing.length === 0) setImmediate(this.#onTurnEnd);
    this.#outgoing.push([jobId, event]);
  }

  override subscribe(jobId: string, listener: JobListener): Subscription {
    const ready = this.#listen();
    this.addListener(jobId, listener);
    this.#subscribed += 1;
    return new Subscription(this, jobId, listener, ready);
  }

  override unsubscribe(jobId: string, listener: JobListener): void {
    super.unsubscribe(jobId, listener);
    this.#subscribed -= 1;
    this.#idleSince = performance.now();
  }

  #send(): void {
    const events = this.#outgoing;
    this.#outgoing = [];
    this.#bus.send('jobs', JSON.stringify(events));
  }

  /** Subscribes to the bus, unless the feed still is. */
  #listen(): Promise<void> {
    if (this.#listening === null) {
      this.#listening = this.#bus.listen('jobs', (message) => this.#receive(message));
      this.#checking = setInterval(() => this.#check(), checkEveryMs).unref();
    }
    return this.#listening.ready;
  }

  /** Passes on what another process has published. */
  #receive(message: string): void {
    let events: Outgoing[];
    try {
      events = JSON.parse(message) as Outgoing[];
      if (!Array.isArray(events)) throw new Error('It is no list');
    } catch {
      // Perhaps from another version of the platform: its events are in the database too.
      this.#refreshAll();
      return;
    }
    for (const [jobId, event] of events) this.notify(jobId, event);
  }

  /** Has listeners read the database, because the bus may have missed events; stops when there are none. */
  #check(): void {
    this.#checks++;
    if (this.#subscribed === 0) {
      if (performance.now() - this.#idleSince > idleMs) {
        this.#listening?.stop();
        this.#listening = null;
        clearInterval(this.#checking);
      }
      return;
    }
    if (!this.#bus.isConnected()) {
      this.#refreshAll();
      return;
    }
    // A part of them at each check, so that they do not all read at once.
    for (const [i, jobId] of this.listeners.keys().entries()) {
      if (i % checksApart === this.#checks % checksApart) this.notify(jobId, null);
    }
  }

  #refreshAll(): void {
    for (const jobId of this.listeners.keys()) this.notify(jobId, null);
  }
}
