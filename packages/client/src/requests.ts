/** One request to the platform; everything but a success is a SkillwrightError. */
import { SkillwrightError } from './errors.ts';

export interface RequestsDeps {
  /** The platform's address, without a slash at the end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  /** For the operations below /admin. */
  readonly adminSecret: string | undefined;
  readonly fetch: typeof fetch;
  /** Milliseconds for one request. */
  readonly timeoutMs: number;
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** From the slash on. */
  readonly path: string;
  /** Undefined values are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** The body of the answer, parsed; null where there is none. */
export async function send(deps: RequestsDeps, request: ApiRequest): Promise<unknown> {
  const deadline = AbortSignal.timeout(deps.timeoutMs);
  const { signal } = request;
  const ending = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
  const response = await open(deps, { ...request, signal: ending }, signal);
  return await response.json().catch(() => null);
}

/** The answer as soon as its head has come. `signal` ends the body, too. */
export async function open(
  deps: RequestsDeps,
  { method, path, query = {}, body, headers, signal }: ApiRequest,
  abortedBy: AbortSignal | undefined = signal,
): Promise<Response> {
  let response: Response;
  try {
    response = await deps.fetch(`${deps.url}${path}${asSearch(query)}`, {
      method,
      headers: { ...credentialOf(deps, path), ...typeOf(body), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (cause) {
    abortedBy?.throwIfAborted();
    const message = `${deps.url} did not answer: ${reasonOf(cause)}`;
    throw new SkillwrightError(message, { code: 'unreachable', status: 0, cause });
  }
  if (response.ok) return response;
  throw refusal(response, await response.json().catch(() => null));
}

function asSearch(query: NonNullable<ApiRequest['query']>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  if (given.length === 0) return '';
  return `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

function credentialOf({ apiKey, adminSecret }: RequestsDeps, path: string): Record<string, string> {
  if (path.startsWith('/admin/')) {
    return adminSecret === undefined ? {} : { authorization: `Bearer ${adminSecret}` };
  }
  return apiKey === undefined ? {} : { 'x-api-key': apiKey };
}

function typeOf(body: unknown): Record<string, string> {
  const accept = 'application/json';
  return body === undefined ? { accept } : { accept, 'content-type': 'application/json' };
}

function refusal(response: Response, answer: unknown): SkillwrightError {
  const { error, message } = (answer ?? {}) as { error?: unknown; message?: unknown };
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new SkillwrightError(
    typeof message === 'string' ? message : `The platform answered with ${response.status}`,
    {
      code: typeof error === 'string' ? error : `http_${response.status}`,
      status: response.status,
      requestId: response.headers.get('x-request-id'),
      retryAfterMs: Number.isNaN(retryAfter) ? null : retryAfter * 1000,
    },
  );
}

/** `fetch` says "fetch failed" and keeps the reason in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message !== '' ? cause.message : error.message;
}
