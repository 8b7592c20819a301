/** Waits for the end of a job and prints its output; what the command does meanwhile is up to its options. */
import {
  type Client,
  isFinal,
  type Job,
  JobFailedError,
  type ListedJob,
} from '@skillwright/client';
import { jobFailed } from './errors.ts';
import { type Io, Output, writeJson } from './io.ts';
import { eventLine, writeEvent } from './job-events.ts';
import { clean, printFields, printValue, styled } from './print.ts';

/** A job as it was accepted, or as it is after a wait. */
export type AcceptedJob = ListedJob & Partial<Job>;

export interface AwaitOptions {
  /** False prints the job and does not wait. */
  readonly wait?: boolean;
  /** Prints the job's events meanwhile. */
  readonly follow?: boolean;
  readonly json?: boolean;
}

/** The longest wait that the platform grants one request. */
export const longestWait = { prefer: 'wait=60' };

/** Whether the first request itself may wait for the job: nothing is shown until it ends. */
export function waitsQuietly({ stderr }: Pick<Io, 'stderr'>, options: AwaitOptions): boolean {
  return options.wait !== false && options.follow !== true && !(stderr.isTTY && !options.json);
}

/** Goes on with a job that was accepted. Throws CliError when it fails. */
export async function awaitJob(
  io: Io,
  client: Client,
  accepted: AcceptedJob,
  options: AwaitOptions,
): Promise<void> {
  if (options.wait === false && options.follow !== true) {
    if (options.json) writeJson(io, accepted);
    else printFields(io, { job_id: accepted.job_id, status: accepted.status });
    return;
  }
  let job = accepted;
  if (!isFinal(job.status)) {
    if (options.follow) await showEvents(io, client, job.job_id, options);
    else if (!waitsQuietly(io, options)) await showProgress(io, client, job.job_id);
    job = await untilEnded(io, client, job.job_id);
  }
  if (options.json) writeJson(io, job);
  else if (job.status === 'completed') printValue(io, job.output);
  if (job.status === 'completed') return;
  const message = `It ended as ${job.status}`;
  throw jobFailed(job.job_id, job.error ?? { code: job.status, message });
}

/** Bears a restart of the platform meanwhile, as the handle does. */
async function untilEnded(io: Io, client: Client, jobId: string): Promise<Job> {
  const signal = io.interrupted;
  const handle = client.job(jobId);
  await handle.result({ signal }).catch((error: unknown) => {
    if (!(error instanceof JobFailedError)) throw error;
  });
  return await handle.get({ signal });
}

/** Events go to stderr, so that stdout has the output alone; with JSON they are its first lines. */
async function showEvents(
  io: Io,
  client: Client,
  jobId: string,
  { json }: AwaitOptions,
): Promise<void> {
  for await (const event of client.job(jobId).events({ signal: io.interrupted })) {
    if (json) {
      writeEvent(io, event);
      continue;
    }
    if (event.type === 'token') {
      io.stderr.write(clean(event.data.text));
      continue;
    }
    const line = eventLine(io.stderr, event);
    if (line !== null) io.stderr.write(`${line}\n`);
  }
}

const clearLine = '\r\u001b[2K';

/** The last event of the job, in one line of the terminal, until it ends. */
async function showProgress(io: Io, client: Client, jobId: string): Promise<void> {
  const { stderr } = io;
  const width = (stderr.columns ?? 80) - 1;
  // Its colours would be cut with the line.
  const plain = new Output(() => {}, { isTTY: true, hasColors: false });
  try {
    for await (const event of client.job(jobId).events({ signal: io.interrupted })) {
      const line = eventLine(plain, event);
      const [first = ''] = line?.split('\n', 1) ?? [];
      if (first !== '') stderr.write(clearLine + styled(stderr, 'dim', first.slice(0, width)));
    }
  } finally {
    stderr.write(clearLine);
  }
}
