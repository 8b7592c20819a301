/** One request to the platform; everything but a success is a SkillwrightError. */
import { SkillwrightError } from './errors.ts';

export interface RequestsDeps {
  /** The platform's address, without a slash at the end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly fetch: typeof fetch;
  /** Milliseconds for one request. */
  readonly timeoutMs: number;
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST';
  /** From the slash on. */
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** The body of the answer, parsed. */
export async function send(deps: RequestsDeps, request: ApiRequest): Promise<unknown> {
  const { method, path, body, headers, signal } = request;
  const deadline = AbortSignal.timeout(deps.timeoutMs);
  let response: Response;
  try {
    response = await deps.fetch(`${deps.url}${path}`, {
      method,
      headers: {
        accept: 'application/json',
        ...(deps.apiKey === undefined ? {} : { 'x-api-key': deps.apiKey }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
    });
  } catch (cause) {
    signal?.throwIfAborted();
    const message = `${deps.url} did not answer: ${reasonOf(cause)}`;
    throw new SkillwrightError(message, { code: 'unreachable', status: 0, cause });
  }
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok) return answer;
  throw refusal(response, answer);
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
