/**
 * Messages between processes. A message may be lost, and the database holds the truth: a listener that
 * must not miss a change queries the database, at the latest when `onMissed` reports that messages may
 * have been lost.
 */
export interface Bus {
  /** Sends a message to all other processes. Never waits, never throws. */
  send(channel: Channel, message: string): void;
  /** Receives messages from the time at which `ready` resolves. It always resolves. */
  listen(channel: Channel, listener: (message: string) => void): Listening;
  /** Calls `listener` when messages may have been missed. */
  onMissed(listener: () => void): void;
  /** Whether messages currently arrive. */
  isConnected(): boolean;
}

export interface Listening {
  readonly ready: Promise<void>;
  stop(): void;
}

/**
 * `jobs`: events of jobs; `cancellations`: ids of jobs whose runs must be cancelled; `wake-ups`: ids of
 * jobs of which a wait has ended; `due-jobs`: queues and organizations of which jobs are due, where one process has no slot
 * for them; `reloads`: whose turn it is to reload its skills, and how that went; `agents`: ids of
 * organizations whose agents have changed; `gates`: a limit or a pause was set; `paces`: names of providers whose pace has
 * changed; `ended-credentials`: ids of revoked keys and of sessions that were signed out.
 */
export const channels = [
  'jobs',
  'cancellations',
  'wake-ups',
  'due-jobs',
  'reloads',
  'agents',
  'gates',
  'paces',
  'ended-credentials',
] as const;
export type Channel = (typeof channels)[number];
