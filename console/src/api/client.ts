/**
 * The client of the API: its paths, parameters and answers are the types of `@skillwright/client`, which
 * `npm run console:types` writes from /openapi.json. A cookie identifies the session.
 */
import createClient from 'openapi-fetch';
import type {
  components,
  operations,
  paths,
} from '../../../packages/client/src/generated/schema.ts';
import { pageOrganization } from './organization.ts';

/**
 * Headers that mark a request of the console, without which the cookie is ignored, and name the page's
 * organization: the platform refuses the request if the session belongs to another one.
 */
export function consoleHeaders(): Record<string, string> {
  const organization = pageOrganization();
  return {
    'x-skillwright-console': '1',
    ...(organization !== null && { 'x-skillwright-organization': organization }),
  };
}

/** Timeout of a response. Streams have none. */
const timeoutMs = 30_000;

/** No response, or none in time. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    const isLate = cause instanceof DOMException && cause.name === 'TimeoutError';
    super(isLate ? 'The platform did not answer in time' : 'The platform cannot be reached', {
      cause,
    });
    this.name = 'Unreachable';
  }
}

/** Like `fetch`; throws `Unreachable` for a network error, unless the caller has aborted. */
export async function ask(request: Request | string, init: RequestInit = {}): Promise<Response> {
  const given = request instanceof Request ? request.signal : init.signal;
  try {
    const signals = [AbortSignal.timeout(timeoutMs), ...(given ? [given] : [])];
    return await fetch(request, { ...init, signal: AbortSignal.any(signals) });
  } catch (error) {
    if (given?.aborted) throw error;
    throw new Unreachable(error);
  }
}

export const api = createClient<paths>({
  fetch(request) {
    for (const [name, value] of Object.entries(consoleHeaders())) request.headers.set(name, value);
    return ask(request);
  },
});

/** The schemas of the API by name. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name];

/** The query of an operation. */
export type QueryOf<Name extends keyof operations> = NonNullable<
  operations[Name]['parameters']['query']
>;

/** A refusal of the platform, with its message. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: readonly { readonly field: string; readonly issue: string }[];
  /** After how many seconds the same request may succeed. */
  readonly retryAfter: number | null;

  constructor(status: number, body: unknown, retryAfter: string | null = null) {
    const { error, message, details } = (body ?? {}) as Partial<Schema<'Error'>>;
    super(message ?? `The platform answered ${status}`);
    this.name = 'ApiError';
    this.status = status;
    this.code = error ?? 'unknown';
    this.details = details ?? [];
    this.retryAfter = /^\d+$/.test(retryAfter ?? '') ? Number(retryAfter) : null;
  }
}

/** Whether a request failed because the session lacks a scope. */
export const isRefused = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 'insufficient_scope';

/** Of a request made with `api`. */
interface Answer<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

/** The body of an answer; throws an `ApiError` for a refusal. */
export async function body<T>(request: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await request;
  if (!response.ok) {
    throw new ApiError(response.status, error, response.headers.get('retry-after'));
  }
  return data as T;
}

type Method = 'get' | 'post' | 'put' | 'delete';
type Operation = { readonly parameters: object; readonly responses: object };
/** The paths that have an operation of a method. */
type PathOf<M extends Method> = {
  [Path in keyof paths]: paths[Path][M] extends Operation ? Path : never;
}[keyof paths];

/** The parameters and the body of an operation. */
type Given<Op> = (Op extends { parameters: infer Parameters }
  ? Pick<Parameters, Extract<keyof Parameters, 'path' | 'query' | 'header'>>
  : object) &
  (Op extends { requestBody: { content: { 'application/json': infer Body } } }
    ? { body: Body }
    : Op extends { requestBody?: { content: { 'application/json': infer Body } } }
      ? { body?: Body }
      : object);

/** The body of a success. */
type Success<Op> = Op extends { responses: infer Responses }
  ? JsonOf<Responses[Extract<keyof Responses, 200 | 201 | 202>]>
  : never;
type JsonOf<Response> = Response extends { content: { 'application/json': infer Json } }
  ? Json
  : never;

/** Requests an operation of a method; returns the body of the answer, and throws an `ApiError` for a refusal. */
const requestWith =
  <M extends Method>(method: M) =>
  <Path extends PathOf<M>>(
    path: Path,
    ...[given]: object extends Given<paths[Path][M]>
      ? [given?: Given<paths[Path][M]>]
      : [given: Given<paths[Path][M]>]
  ): Promise<Success<paths[Path][M]>> => {
    const { body: sent, ...params } = (given ?? {}) as { readonly body?: unknown };
    const init = { params, ...(sent !== undefined && { body: sent }) };
    return body(api.request(method, path as never, init as never));
  };

export const get = requestWith('get');
export const post = requestWith('post');
export const put = requestWith('put');
export const remove = requestWith('delete');

/** A list whose body is an array, with the total from the headers. */
export async function listed<T>(
  request: Promise<Answer<T[]>>,
): Promise<{ data: T[]; total: number }> {
  const answer = await request;
  const data = await body(Promise.resolve(answer));
  return { data, total: Number(answer.response.headers.get('x-total-count') ?? data.length) };
}

export interface PageRange {
  readonly limit: number;
  readonly offset: number;
}

/**
 * Requests a whole page: one response, or several if the platform cut the page because its entries are
 * large.
 */
export async function wholePage<T>(
  { limit, offset }: PageRange,
  ask: (page: PageRange) => Promise<Answer<T>>,
): Promise<[Answer<T>, ...Answer<T>[]]> {
  const first = await ask({ limit, offset });
  const answers: [Answer<T>, ...Answer<T>[]] = [first];
  for (let next = nextOffset(first); next !== null && next < offset + limit; ) {
    const answer = await ask({ limit: offset + limit - next, offset: next });
    answers.push(answer);
    next = nextOffset(answer);
  }
  return answers;
}

function nextOffset({ response }: Answer<unknown>): number | null {
  const next = response.headers.get('x-next-offset');
  return next === null ? null : Number(next);
}

/** A page of a list whose body has the total. */
export async function pageOf<T extends { data: unknown[] }>(
  page: PageRange,
  ask: (page: PageRange) => Promise<Answer<T>>,
): Promise<T> {
  const bodies = await Promise.all(
    (await wholePage(page, ask)).map((answer) => body(Promise.resolve(answer))),
  );
  return { ...(bodies[0] as T), data: bodies.flatMap(({ data }) => data) };
}

/** The message of an error. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
