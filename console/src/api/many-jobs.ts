/** Cancels or repeats all jobs that filters name, request by request: each ends after some seconds. */
import { ApiError, post, type Schema } from './client.ts';

export type ManyVerb = 'cancel' | 'retry';
export type ManyFilters = Omit<Schema<'CancelJobs'> & Schema<'RetryJobs'>, 'status'> & {
  readonly status?: string;
};

/** The statuses whose jobs a verb changes. */
export const changedStatuses: Record<ManyVerb, readonly string[]> = {
  cancel: ['queued', 'active', 'waiting'],
  retry: ['failed', 'cancelled'],
};

/** What the requests so far have done. */
export interface ManyProgress {
  /** Cancelled, or run again. */
  readonly done: number;
  /** Active ones that are told to stop. */
  readonly stopping: number;
  /** Those that a single retry would refuse, by the code of its error. */
  readonly refused: Readonly<Record<string, number>>;
  /** Those that are left, counted to 10,000. */
  readonly remaining: number;
  /** While the platform takes no more requests: the seconds after which the next one is sent. */
  readonly pausedFor: number | null;
}

/** Refusals in a row after which it ends with the last one. */
const pausesMax = 10;

const send = (verb: ManyVerb, body: ManyFilters & { dry_run?: boolean; after?: string }) =>
  verb === 'cancel'
    ? post('/api/jobs/cancel', { body: body as Schema<'CancelJobs'> })
    : post('/api/jobs/retry', { body: body as Schema<'RetryJobs'> });

/** How many jobs a verb would change, counted to 10,000. */
export const countMany = async (verb: ManyVerb, filters: ManyFilters): Promise<number> =>
  (await send(verb, { ...filters, dry_run: true })).remaining;

/**
 * Changes them, until none of `total` is left or `stop` aborts; reports after each request. Where the platform
 * takes no more requests for now, it waits for as long as that says.
 */
export async function changeMany(
  verb: ManyVerb,
  filters: ManyFilters,
  total: number,
  report: (progress: ManyProgress) => void,
  stop: AbortSignal,
): Promise<ManyProgress> {
  let sum: ManyProgress = { done: 0, stopping: 0, refused: {}, remaining: total, pausedFor: null };
  let after: string | undefined;
  for (let pauses = 0; ; ) {
    try {
      const answer = await send(verb, { ...filters, ...(after !== undefined && { after }) });
      sum = added(sum, answer);
      report(sum);
      if (answer.done || stop.aborted) return sum;
      after = answer.next ?? undefined;
      pauses = 0;
    } catch (error) {
      const pausedFor = error instanceof ApiError ? error.retryAfter : null;
      pauses += 1;
      if (pausedFor === null || pauses > pausesMax || stop.aborted) throw error;
      report({ ...sum, pausedFor });
      await pause(pausedFor, stop);
      if (stop.aborted) return sum;
      report(sum);
    }
  }
}

/** Resolves after so many seconds, or once `stop` aborts. */
const pause = (seconds: number, stop: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, seconds * 1_000);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    stop.addEventListener('abort', end, { once: true });
  });

function added(sum: ManyProgress, answer: Awaited<ReturnType<typeof send>>): ManyProgress {
  const { remaining } = answer;
  if ('cancelled' in answer) {
    const stopping = sum.stopping + answer.stopping;
    return { ...sum, done: sum.done + answer.cancelled, stopping, remaining };
  }
  const refused = { ...sum.refused };
  for (const [code, n] of Object.entries(answer.refused)) refused[code] = (refused[code] ?? 0) + n;
  return { ...sum, done: sum.done + answer.retried, refused, remaining };
}
