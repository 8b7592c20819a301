/**
 * What processes tell each other while it happens. Whatever goes this way may get lost and none of it
 * is the truth: whoever needs to know has the database to look at, at the latest when `onMissed` says
 * that something may have been missed.
 */
export interface Bus {
  /** Tells the other processes, never this one. Never waits, never throws. */
  send(channel: Channel, message: string): void;
  /** Hears what is sent from the moment at which `ready` resolves, which it does in any case. */
  listen(channel: Channel, listener: (message: string) => void): Listening;
  /** Calls `listener` when messages may have been missed. */
  onMissed(listener: () => void): void;
  /** Whether messages arrive right now. */
  isConnected(): boolean;
}

export interface Listening {
  readonly ready: Promise<void>;
  stop(): void;
}

/** `jobs`: what happens to jobs; `cancellations`: ids of jobs whose runs are to be stopped. */
export type Channel = 'jobs' | 'cancellations';
