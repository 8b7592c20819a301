/** The client: runs skills of a platform and returns their outputs. */
import { JobFailedError, SkillwrightError } from './errors.ts';
import { readEvents, type StreamedEvent } from './event-stream.ts';
import { type ApiRequest, open, type RequestsDeps, send } from './requests.ts';

export type { ApiRequest, StreamedEvent };
export { JobFailedError, SkillwrightError };

export interface ClientOptions {
  /** The platform's address, for example `https://skills.example.com`. */
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** For the operations below `/admin`. */
  readonly adminSecret?: string | undefined;
  /** In place of the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /** Milliseconds for one request; 90,000 when left out. */
  readonly timeoutMs?: number | undefined;
}

export interface RunOptions {
  /** Ends the wait; the job goes on. */
  readonly signal?: AbortSignal | undefined;
  /** A repeat with the same key within 24 hours runs nothing again; random when left out. */
  readonly idempotencyKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface Client {
  /** Runs a skill, named `category/version/name`, waits for the end of its job and returns its output. */
  run<Output = unknown>(skill: string, input: unknown, options?: RunOptions): Promise<Output>;
  /** Any operation of the API: the body of its answer, null where there is none. */
  request<Answer = unknown>(request: ApiRequest): Promise<Answer>;
  /** An operation that answers with server-sent events, until the platform or the signal ends them. */
  stream(request: ApiRequest): AsyncIterable<StreamedEvent>;
}

interface Job {
  readonly job_id: string;
  readonly status: string;
  readonly output?: unknown;
  readonly error?: { readonly code: string; readonly message: string } | null;
}

const timeoutMsDefault = 90_000;
/** The longest wait that the platform grants one request. */
const wait = { prefer: 'wait=60' };
const skillPattern = /^[^/\s]+\/v\d+\.\d+\/[^/\s]+$/;

/** Makes a client; no request is sent before the first call. */
export function createClient(options: ClientOptions): Client {
  const deps: RequestsDeps = {
    url: options.url.replace(/\/+$/, ''),
    apiKey: options.apiKey,
    adminSecret: options.adminSecret,
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    timeoutMs: options.timeoutMs ?? timeoutMsDefault,
  };
  return {
    run: <Output>(skill: string, input: unknown, runOptions: RunOptions = {}) =>
      run(deps, { skill, input, ...runOptions }) as Promise<Output>,
    request: <Answer>(request: ApiRequest) => send(deps, request) as Promise<Answer>,
    stream: (request) => stream(deps, request),
  };
}

async function* stream(deps: RequestsDeps, request: ApiRequest): AsyncGenerator<StreamedEvent> {
  const headers = { accept: 'text/event-stream', ...request.headers };
  const { body } = await open(deps, { ...request, headers });
  if (body !== null) yield* readEvents(body);
}

async function run(
  deps: RequestsDeps,
  { skill, input, signal, idempotencyKey, headers }: { skill: string; input: unknown } & RunOptions,
): Promise<unknown> {
  if (!skillPattern.test(skill)) {
    throw new TypeError(`A skill is named category/version/name, not ${JSON.stringify(skill)}`);
  }
  let job = (await send(deps, {
    method: 'POST',
    path: `/api/${skill}`,
    body: input ?? {},
    headers: { ...wait, 'idempotency-key': idempotencyKey ?? randomKey(), ...headers },
    signal,
  })) as Job;
  while (!isEnded(job)) {
    const path = `/api/jobs/${job.job_id}`;
    job = (await send(deps, { method: 'GET', path, headers: wait, signal })) as Job;
  }
  if (job.status === 'completed') return job.output;
  const message = `The job ${job.job_id} ended as ${job.status}`;
  throw new JobFailedError(job.job_id, job.error ?? { code: job.status, message });
}

function isEnded({ status }: Job): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/** Not `randomUUID`, which browsers have only on pages that came over HTTPS. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
