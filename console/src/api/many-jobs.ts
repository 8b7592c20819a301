/** Cancels or repeats all jobs that filters name, request by request: each ends after some seconds. */
import { post, type Schema } from './client.ts';

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
}

const noProgress: ManyProgress = { done: 0, stopping: 0, refused: {}, remaining: 0 };

const send = (verb: ManyVerb, body: ManyFilters & { dry_run?: boolean; after?: string }) =>
  verb === 'cancel'
    ? post('/api/jobs/cancel', { body: body as Schema<'CancelJobs'> })
    : post('/api/jobs/retry', { body: body as Schema<'RetryJobs'> });

/** How many jobs a verb would change, counted to 10,000. */
export const countMany = async (verb: ManyVerb, filters: ManyFilters): Promise<number> =>
  (await send(verb, { ...filters, dry_run: true })).remaining;

/** Changes them, until none is left or `isStopped`; reports after each request. */
export async function changeMany(
  verb: ManyVerb,
  filters: ManyFilters,
  report: (progress: ManyProgress) => void,
  isStopped: () => boolean,
): Promise<ManyProgress> {
  let sum = noProgress;
  let after: string | undefined;
  for (;;) {
    const answer = await send(verb, { ...filters, ...(after !== undefined && { after }) });
    sum = added(sum, answer);
    report(sum);
    if (answer.done || isStopped()) return sum;
    after = answer.next ?? undefined;
  }
}

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
