/** Runs of skills: a call that waits for the output, and handles of jobs. */
import { JobFailedError } from './errors.ts';
import { type FollowOptions, followJob, isFinal, type JobEvent, pathOf } from './follow.ts';
import type { components } from './generated/schema.ts';
import { type CallOptions, type RequestsDeps, send, userOf } from './requests.ts';
import { patienceOf, randomKey, within } from './retries.ts';

type Schemas = components['schemas'];
export type Job = Schemas['Job'];
export type ListedJob = Schemas['ListedJob'];

/** What a call of a skill takes. */
export interface RunOptions extends CallOptions {
  /** The agent that runs the skill; `default` when left out. */
  readonly agentId?: string | undefined;
  /** The user on whose behalf it runs. `undefined` is refused, so that a forgotten user does not make a run for all of them. */
  readonly userId?: string;
  /** What the user is called in the agent's instructions. */
  readonly userName?: string | undefined;
  /** The conversation that it continues. */
  readonly conversationId?: string | undefined;
  /**
   * While another job of the conversation has not ended: `queue` has the run begin after it, `steer` gives the message to its run, `interrupt` cancels it; with `reject`, the default, the
   * request fails with 409.
   */
  readonly conversationMode?: 'queue' | 'steer' | 'interrupt' | 'reject' | undefined;
  /** It does not begin before this moment. */
  readonly runAt?: Date | string | undefined;
  /** It does not begin before so many seconds have passed; instead of `runAt`. */
  readonly delaySeconds?: number | undefined;
  /** It is cancelled if it has not begun within so many seconds. */
  readonly expiresInSeconds?: number | undefined;
  /** Its place in the order of the organization's jobs; `normal` when left out. */
  readonly priority?: Job['priority'] | undefined;
  /** One of a kind among the jobs of the skill; what it does to an earlier job of its key, `jobKeyMode` says. */
  readonly jobKey?: string | undefined;
  /** `replace` when left out. */
  readonly jobKeyMode?: 'replace' | 'skip' | 'debounce' | undefined;
  /** With the mode `debounce`: it begins once no other of its key has come for so many seconds. */
  readonly debounceSeconds?: number | undefined;
  /** And at most so many seconds after the first of them. */
  readonly debounceMaxSeconds?: number | undefined;
}

/** A job of the platform. Nothing is sent before a method is called. */
export interface JobHandle<Output = unknown> {
  readonly jobId: string;
  /** The job as it is now. */
  get(options?: CallOptions): Promise<Job>;
  /**
   * What happens in the job, from its beginning, until it has ended. A connection that breaks is opened again
   * after the last event; `after` is the id of an event that is known already. With `follow: false` they end with the
   * last event so far.
   */
  events(options?: FollowOptions): AsyncIterable<JobEvent>;
  /** Waits for the end and gives the output; rejects with JobFailedError. */
  result(options?: CallOptions): Promise<Output>;
  /** Asks the job to stop; rejects with `job_not_cancellable` when it has completed or failed. */
  cancel(options?: CallOptions): Promise<Job>;
}

/** A job that this client has started, as it was accepted. */
export interface StartedJob<Output = unknown> extends JobHandle<Output> {
  readonly accepted: ListedJob;
}

/** The longest wait that the platform grants one request, in seconds. */
const waitMaxS = 60;
/** Of the time for a request, what its answer needs beside the wait. */
const answerS = 5;
const skillPattern = /^[^/\s]+\/v\d+\.\d+\/[^/\s]+$/;

export interface SkillCall {
  /** `category/version/name`. */
  readonly skill: string;
  readonly input: unknown;
  readonly options: RunOptions;
}

/** Runs a skill and waits for its output. */
export async function run(deps: RequestsDeps, call: SkillCall): Promise<unknown> {
  return await within(call.options, async (signal) => {
    const job = await accept(deps, call, { prefer: preference(deps), signal });
    return await outputOf(deps, job, signal);
  });
}

/** Runs a skill and gives a handle of its job. */
export async function start(deps: RequestsDeps, call: SkillCall): Promise<StartedJob> {
  const accepted = await within(call.options, (signal) =>
    accept(deps, call, { prefer: undefined, signal }),
  );
  return { ...handleOf(deps, accepted.job_id), accepted };
}

export function handleOf(deps: RequestsDeps, jobId: string): JobHandle {
  const path = pathOf(jobId);
  const sendWith = (
    options: CallOptions,
    request: { readonly method: string; readonly path: string },
  ) =>
    within(options, (signal) =>
      send(deps, { ...request, signal, headers: options.headers ?? {} }),
    ) as Promise<Job>;
  return {
    jobId,
    get: (options = {}) => sendWith(options, { method: 'GET', path }),
    cancel: (options = {}) => sendWith(options, { method: 'POST', path: `${path}/cancel` }),
    events: (options = {}) => followJob(deps, jobId, options),
    result: (options = {}) =>
      within(options, async (signal) => {
        const job = await waitOnce(deps, jobId, signal);
        return await outputOf(deps, job, signal);
      }),
  };
}

/** The 202, or the job as it is after the wait. */
async function accept(
  deps: RequestsDeps,
  { skill, input, options }: SkillCall,
  { prefer, signal }: { prefer: string | undefined; signal: AbortSignal | undefined },
): Promise<ListedJob & Partial<Job>> {
  if (!skillPattern.test(skill)) {
    throw new TypeError(`A skill is named category/version/name, not ${JSON.stringify(skill)}`);
  }
  const { idempotencyKey = randomKey(), agentId, conversationId, headers } = options;
  const { runAt, delaySeconds, expiresInSeconds, debounceSeconds, debounceMaxSeconds } = options;
  const given = Object.entries({
    'x-agent-id': agentId,
    'x-user-id': userOf(options),
    'x-user-name': options.userName,
    'x-conversation-id': conversationId,
    'x-conversation-mode': options.conversationMode,
    'x-run-at': runAt instanceof Date ? runAt.toISOString() : runAt,
    'x-delay-seconds': delaySeconds?.toString(),
    'x-expires-in': expiresInSeconds?.toString(),
    'x-priority': options.priority,
    'x-job-key': options.jobKey,
    'x-job-key-mode': options.jobKeyMode,
    'x-debounce-seconds': debounceSeconds?.toString(),
    'x-debounce-max-seconds': debounceMaxSeconds?.toString(),
    prefer,
  }).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const answer = await send(deps, {
    method: 'POST',
    path: `/api/${skill.split('/').map(encodeURIComponent).join('/')}`,
    body: input ?? {},
    headers: { 'idempotency-key': idempotencyKey, ...Object.fromEntries(given), ...headers },
    signal,
  });
  return answer as ListedJob & Partial<Job>;
}

async function outputOf(
  deps: RequestsDeps,
  first: Partial<Job> & Pick<Job, 'job_id' | 'status'>,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  let job = first;
  while (!isFinal(job.status)) job = await waitOnce(deps, job.job_id, signal);
  if (job.status === 'completed') return job.output;
  const message = `The job ${job.job_id} ended as ${job.status}`;
  throw new JobFailedError(job.job_id, job.error ?? { code: job.status, message });
}

/** The job when it has ended, or when the wait is over. */
async function waitOnce(
  deps: RequestsDeps,
  jobId: string,
  signal: AbortSignal | undefined,
): Promise<Job> {
  const request = { method: 'GET', path: pathOf(jobId), headers: { prefer: preference(deps) } };
  return (await send(deps, {
    ...request,
    signal,
    patienceMs: patienceOf(deps.retries.max),
  })) as Job;
}

function preference({ timeoutMs }: Pick<RequestsDeps, 'timeoutMs'>): string {
  const seconds = Math.floor(timeoutMs / 1000) - answerS;
  return `wait=${Math.max(1, Math.min(waitMaxS, seconds))}`;
}
