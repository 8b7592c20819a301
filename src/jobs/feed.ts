/**
 * What happens to jobs, live and inside this process: whoever waits for a job or streams it listens
 * here. Only what is committed is published. Nothing is kept: a listener that comes late reads the
 * database first.
 */

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

export type JobListener = (event: JobEvent) => void;

export interface JobFeed {
  publish(jobId: string, event: JobEvent): void;
  /** Whether anybody listens; saves making events that nobody would hear. */
  isHeard(jobId: string): boolean;
  /** Listens until the returned function is called. */
  subscribe(jobId: string, listener: JobListener): () => void;
}

export function createJobFeed(): JobFeed {
  const listeners = new Map<string, Set<JobListener>>();
  return {
    publish(jobId, event) {
      for (const listener of listeners.get(jobId) ?? []) listener(event);
    },
    isHeard: (jobId) => listeners.has(jobId),
    subscribe(jobId, listener) {
      const own = listeners.get(jobId) ?? new Set();
      own.add(listener);
      listeners.set(jobId, own);
      return () => {
        own.delete(listener);
        if (own.size === 0) listeners.delete(jobId);
      };
    },
  };
}
