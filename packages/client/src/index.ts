/** The client: runs skills of a platform, follows their jobs, and calls the rest of its API. */
import { ErasureHeldError, eraseAll } from './erase-user.ts';
import { JobFailedError, SkillwrightError } from './errors.ts';
import { readEvents, type StreamedEvent } from './event-stream.ts';
import { type FileTransfers, fileTransfers } from './files.ts';
import { isFinal } from './follow.ts';
import { type Api, operationTable, type WebhookEvent } from './generated/operations.ts';
import { handleOf, type JobHandle, type RunOptions, run, type StartedJob, start } from './jobs.ts';
import { createApi } from './operations.ts';
import { type ApiRequest, type RequestsDeps, send, sendOnce } from './requests.ts';
import type { Retry } from './retries.ts';
import { type InputOf, type OutputOf, type SkillTree, skillTree } from './skills.ts';
import { verifyWebhook, WebhookVerificationError } from './webhooks.ts';

export type { ErasedUserData } from './erase-user.ts';
export type { ErrorCode, Issue, JobErrorCode } from './errors.ts';
export type { StreamedEvent } from './event-stream.ts';
export type { UploadOptions } from './files.ts';
export type { FollowOptions, JobEvent } from './follow.ts';
export type { components } from './generated/schema.ts';
export type { Job, ListedJob } from './jobs.ts';
export type { Page, Pages } from './pages.ts';
export type { ApiRequest, CallOptions } from './requests.ts';
export type { Retry } from './retries.ts';
export type { SkillVersion } from './skills.ts';
export type {
  RawBody,
  VerifiedEvent,
  VerifyOptions,
  WebhookFault,
  WebhookHeaders,
} from './webhooks.ts';
export {
  ErasureHeldError,
  eraseAll,
  isFinal,
  JobFailedError,
  type JobHandle,
  type RunOptions,
  SkillwrightError,
  type StartedJob,
  verifyWebhook,
  type WebhookEvent,
  WebhookVerificationError,
};

/**
 * The skills of a platform, with the types of their input and output. It is empty here; the file that
 * `skillwright types` writes adds to it, which TypeScript allows only where it is declared.
 */
// biome-ignore lint/suspicious/noEmptyInterface: a generated file adds to it
export interface Skills {}

/** `category/version/name`: a skill that has types, or any text where none has. */
export type SkillName = [keyof Skills] extends [never] ? string : keyof Skills;

/** A skill that has types, or a text that is known at run time alone. A misspelt name is neither. */
type Named<Id> = Id extends SkillName ? Id : string extends Id ? Id : SkillName;

export interface ClientOptions {
  /** The platform's address, for example `https://skills.example.com`. */
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** For what administrators do, such as `apiKeys.create`. It is sent with nothing else. */
  readonly adminSecret?: string | undefined;
  /** In place of the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /**
   * How often a request is sent again after a refusal for now or a fault; 3 when left out. A request with an idempotency
   * key, and one that waits for a job, is retried for two minutes instead. 0 sends nothing again.
   */
  readonly retries?: number | undefined;
  /** Milliseconds for one request; 90,000 when left out. `deadlineMs` bounds a whole call. */
  readonly timeoutMs?: number | undefined;
  /** Called before each pause, for a log or a display. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
}

/** The output that a caller names, else the one that its skill is known to have. */
type Result<Output, Id> = [Output] extends [never] ? OutputOf<Id> : NoInfer<Output>;

export interface Client extends Omit<Api, 'webhooks' | 'files'> {
  /**
   * Runs a skill, named `category/version/name`, waits for the end of its job and gives its output. Where skills have
   * types, the compiler knows no other names; `run<Output, string>` takes any.
   */
  run<Output = never, Id extends string = SkillName>(
    skill: Named<Id>,
    input: InputOf<Id>,
    options?: RunOptions,
  ): Promise<Result<Output, Id>>;
  /** Starts a skill and gives a handle of its job, once the platform has recorded it. */
  start<Output = never, Id extends string = SkillName>(
    skill: Named<Id>,
    input: InputOf<Id>,
    options?: RunOptions,
  ): Promise<StartedJob<Result<Output, Id>>>;
  /** A handle of a job that was started elsewhere. */
  job<Output = unknown>(jobId: string): JobHandle<Output>;
  /** `skills.text.wordCount.v1_0.run(input)`; `skillwright types` gives them their types. */
  readonly skills: SkillTree;
  /** Any operation, also one that this client does not know: the body of its answer, null where there is none. */
  request<Answer = unknown>(request: ApiRequest): Promise<Answer>;
  /** The server-sent events of one connection, until it ends; `last-event-id` as a header resumes a stream. */
  stream(request: ApiRequest): AsyncIterable<StreamedEvent>;
  readonly files: Api['files'] & FileTransfers;
  readonly webhooks: Api['webhooks'] & {
    /** `verifyWebhook`. */
    readonly verify: typeof verifyWebhook;
  };
}

const timeoutMsDefault = 90_000;
const retriesDefault = 3;

/** Makes a client; no request is sent before the first call. */
export function createClient(options: ClientOptions): Client {
  const { apiKey, adminSecret, timeoutMs = timeoutMsDefault, retries = retriesDefault } = options;
  if (!/^https?:\/\//i.test(options.url)) {
    throw new TypeError(
      `The url of a platform begins with http:// or https://, not ${options.url}`,
    );
  }
  const deps: RequestsDeps = {
    url: options.url.replace(/\/+$/, ''),
    credentials: { apiKey, adminSecret },
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    timeoutMs,
    retries: { max: retries, onRetry: options.onRetry },
  };
  const api = createApi(deps, operationTable);
  const runSkill = (skill: string, input: unknown, runOptions: RunOptions = {}) =>
    run(deps, { skill, input, options: runOptions });
  const startSkill = (skill: string, input: unknown, runOptions: RunOptions = {}) =>
    start(deps, { skill, input, options: runOptions });
  return {
    ...api,
    files: { ...api.files, ...fileTransfers(deps) },
    webhooks: { ...api.webhooks, verify: verifyWebhook },
    run: runSkill,
    start: startSkill,
    job: (jobId) => handleOf(deps, jobId),
    request: async (request) => (await send(deps, request)) ?? null,
    stream: (request) => stream(deps, request),
    skills: skillTree((id) => ({
      run: (input, runOptions) => runSkill(id, input, runOptions),
      start: (input, runOptions) => startSkill(id, input, runOptions),
    })),
  } as Client;
}

async function* stream(deps: RequestsDeps, request: ApiRequest): AsyncGenerator<StreamedEvent> {
  const headers = { accept: 'text/event-stream', ...request.headers };
  // The time limit is for the beginning of the stream alone.
  const slow = new AbortController();
  const timer = setTimeout(() => slow.abort(), deps.timeoutMs);
  try {
    const { body } = await sendOnce(deps, { ...request, headers }, slow.signal);
    clearTimeout(timer);
    if (body !== null) yield* readEvents(body);
  } finally {
    clearTimeout(timer);
  }
}
