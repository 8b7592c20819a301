/**
 * One request to the platform, sent again where that is safe: a request that was refused for now (429), and
 * after a fault one whose repetition changes nothing. Everything but a success is a SkillwrightError.
 */
import { type ErrorFacts, type Issue, SkillwrightError } from './errors.ts';
import { withOriginHint } from './other-origin.ts';
import { type Attempts, patienceOf, pauseAfterFailure, type Retry, sleep } from './retries.ts';

export interface RequestsDeps {
  /** The platform's address, without a slash at the end. */
  readonly url: string;
  readonly credentials: {
    readonly apiKey: string | undefined;
    readonly adminSecret: string | undefined;
  };
  readonly fetch: typeof fetch;
  /** Milliseconds for one request. */
  readonly timeoutMs: number;
  readonly retries: {
    /** How often a request is sent again. */
    readonly max: number;
    readonly onRetry: ((retry: Retry) => void) | undefined;
  };
}

/** What every call takes. */
export interface CallOptions {
  /** Ends the call; work that the platform has accepted goes on. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for the whole call, with its retries and waits; unlimited when left out. */
  readonly deadlineMs?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** For calls that take one: a repeat with the same key has no second effect. Random when left out. */
  readonly idempotencyKey?: string | undefined;
}

export type Credential = 'key' | 'admin' | 'none';

export interface ApiRequest {
  readonly method: string;
  /** From the slash on. */
  readonly path: string;
  /** Undefined values are left out. */
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly body?: unknown;
  /** A body that is no JSON. */
  readonly bytes?: Blob | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** What it carries; by default what its path needs. */
  readonly credential?: Credential;
  /** Whether a repetition has no second effect; by default that of its method, or of its `idempotency-key`. */
  readonly isSafe?: boolean;
  /** Whether it is sent again where it was refused for now (503 with Retry-After), too. */
  readonly mayBeRefused?: boolean;
  /** Ends the request with its own reason. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for which the request is retried, however many attempts fail, in place of `retries`. */
  readonly patienceMs?: number | undefined;
}

export const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);
/** Of what did not reach the platform, or stopped halfway. */
const faultStatuses: ReadonlySet<number> = new Set([502, 503, 504]);

/** The body of a successful answer, parsed; undefined for one without a body. */
export async function send(deps: RequestsDeps, request: ApiRequest): Promise<unknown> {
  return await withRetries(
    deps,
    request,
    async () => await readJson(await sendOnce(deps, request)),
  );
}

/** Calls `attempt` until it succeeds or another try is useless; `attempt` sends the request. */
export async function withRetries<Result>(
  deps: Pick<RequestsDeps, 'url' | 'fetch' | 'retries'>,
  request: ApiRequest,
  attempt: (isRepeated: boolean) => Promise<Result>,
): Promise<Result> {
  const retriesMax = deps.retries.max;
  const { method, headers = {}, signal } = request;
  const isKeyed = Object.keys(headers).some((name) => name.toLowerCase() === 'idempotency-key');
  const { isSafe = isKeyed || safeMethods.has(method) } = request;
  const { patienceMs = isKeyed && isSafe ? patienceOf(retriesMax) : undefined } = request;
  const attempts: Attempts = { failed: 0, retriesMax, patienceMs, since: undefined };
  for (;;) {
    try {
      return await attempt(attempts.failed > 0);
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      const pauseMs = mayPass(error, isSafe || (request.mayBeRefused && isRefusedForNow(error)))
        ? pauseAfterFailure(attempts, error.retryAfterMs)
        : null;
      if (pauseMs === null) throw await withOriginHint(deps, error, signal);
      reportRetry(deps, attempts, { error: error as SkillwrightError, pauseMs });
      await sleep(pauseMs, signal);
    }
  }
}

export function reportRetry(
  { retries }: Pick<RequestsDeps, 'retries'>,
  { since = Date.now() }: Pick<Attempts, 'since'>,
  retry: Pick<Retry, 'error' | 'pauseMs'>,
): void {
  retries.onRetry?.({ ...retry, failingForMs: Date.now() - since });
}

const isRefusedForNow = (error: unknown) =>
  error instanceof SkillwrightError && error.status === 503 && error.retryAfterMs !== null;

/** Whether the same request may succeed later, and may be sent again. */
export function mayPass(error: unknown, isSafe = false): error is SkillwrightError {
  if (!(error instanceof SkillwrightError)) return false;
  const { code, status } = error;
  if (status === 429) return true;
  return isSafe && (code === 'unreachable' || code === 'timeout' || faultStatuses.has(status));
}

/** Sends the request once; throws for everything but a success. Its body has not been read. */
export async function sendOnce(
  deps: RequestsDeps,
  {
    method,
    path,
    query,
    body,
    bytes,
    headers,
    signal,
    credential = credentialOf(path),
  }: ApiRequest,
  timeout: AbortSignal = AbortSignal.timeout(deps.timeoutMs),
): Promise<Response> {
  const encoded = encodedHeaders({
    accept: 'application/json',
    ...credentialHeaders(deps, credential),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(bytes === undefined ? {} : { 'content-type': 'application/octet-stream' }),
    ...headers,
  });
  try {
    const response = await deps.fetch(`${deps.url}${path}${searchOf(query)}`, {
      method,
      headers: encoded,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(bytes === undefined ? {} : { body: bytes }),
      // A redirect would take the key to another place.
      redirect: 'manual',
      // The platform knows no cookies of other pages.
      credentials: 'omit',
      signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
    });
    if (response.ok) return response;
    throw refusal(response, await response.json().catch(() => null));
  } catch (error) {
    throw asFault(deps, error, signal, timeout);
  }
}

/** The headers as UTF-8: `fetch` sends each character as one byte. Throws a TypeError for what is no header. */
function encodedHeaders(given: Readonly<Record<string, string>>): Headers {
  const encoded = new Headers();
  for (const [name, value] of Object.entries(given)) {
    const bytes = Array.from(new TextEncoder().encode(value), (byte) => String.fromCharCode(byte));
    encoded.set(name, bytes.join(''));
  }
  return encoded;
}

/** The user of a call; undefined where none is named. Throws a TypeError where the value that names one is missing. */
export function userOf(options: { readonly userId?: string }): string | undefined {
  const { userId } = options;
  if ('userId' in options && typeof userId !== 'string') {
    throw new TypeError(`userId is ${userId}: leave it out for a call without a user`);
  }
  return userId;
}

/** The body of an answer, with a fault of the connection as the error of the call. */
export async function readJson(response: Response): Promise<unknown> {
  if (response.status === 204) return undefined;
  const text = await whole(response.text());
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    const message = 'The answer is not JSON: is this the address of a platform?';
    throw new SkillwrightError(message, {
      code: 'unexpected_answer',
      status: response.status,
      cause,
    });
  }
}

/** What is read of an answer, with a fault of the connection as the error of the call. */
export async function whole<Body>(reading: Promise<Body>): Promise<Body> {
  try {
    return await reading;
  } catch (cause) {
    if (isAbort(cause)) throw cause;
    throw new SkillwrightError(`The answer broke off: ${reasonOf(cause)}`, unreachable(cause));
  }
}

/** The error of a call for whatever was thrown while it was made. */
export function asFault(
  { url, timeoutMs }: Pick<RequestsDeps, 'url' | 'timeoutMs'>,
  error: unknown,
  signal: AbortSignal | undefined,
  timeout: AbortSignal,
): unknown {
  if (error instanceof SkillwrightError) return error;
  if (signal?.aborted) return signal.reason;
  if (isAbort(error) && !timeout.aborted) return error;
  if (timeout.aborted) {
    const message = `${url} did not answer within ${timeoutMs} ms`;
    return new SkillwrightError(message, { code: 'timeout', status: 0, cause: error });
  }
  return new SkillwrightError(`${url} did not answer: ${reasonOf(error)}`, unreachable(error));
}

function searchOf(query: ApiRequest['query'] = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  if (given.length === 0) return '';
  return `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

function credentialOf(path: string): Credential {
  return path.startsWith('/admin/') ? 'admin' : 'key';
}

/** Also by a signal that a `fetch` of the caller's own has: it is meant, and no fault. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

/** The secret goes only where it is asked for. */
function credentialHeaders({ credentials }: RequestsDeps, credential: Credential) {
  const { apiKey, adminSecret } = credentials;
  if (credential === 'admin' && adminSecret !== undefined) {
    return { authorization: `Bearer ${adminSecret}` };
  }
  return credential === 'key' && apiKey !== undefined ? { 'x-api-key': apiKey } : {};
}

function refusal(response: Response, answer: unknown): SkillwrightError {
  const { error, message, details } = (answer ?? {}) as Record<string, unknown>;
  const { status, type } = response;
  const facts: ErrorFacts = {
    code: typeof error === 'string' ? error : 'unexpected_answer',
    status,
    requestId: response.headers.get('x-request-id'),
    retryAfterMs: retryAfterMs(response.headers.get('retry-after')),
    details: Array.isArray(details) ? (details as Issue[]) : [],
  };
  if (typeof message === 'string') return new SkillwrightError(message, facts);
  // Browsers do not show the status of a redirect.
  const isRedirect = type === 'opaqueredirect' || (status >= 300 && status < 400);
  const what = isRedirect ? 'a redirect, which is not followed' : String(status);
  return new SkillwrightError(`The address answered with ${what}`, facts);
}

/** Seconds, or a date, which a proxy may send. */
function retryAfterMs(text: string | null): number | null {
  if (text === null) return null;
  const seconds = Number(text);
  if (!Number.isNaN(seconds)) return Math.max(0, seconds * 1000);
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now());
}

function unreachable(cause: unknown): ErrorFacts {
  return { code: 'unreachable', status: 0, cause };
}

/** `fetch` says "fetch failed" and keeps the reason in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message !== '' ? cause.message : error.message;
}
