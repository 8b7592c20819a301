/**
 * Outgoing requests. url-guard.ts checks every url, also those of redirects, and guarded-agent.ts checks
 * every connection. A request ends by its deadline, from DNS to the last byte of the body. At most
 * `maxBytes` of a body are kept. Credentials do not follow a redirect to another origin. Every failure is
 * an EgressError.
 */

import { type Dispatcher, errors, request } from 'undici';
import { aborted } from '../../kernel/aborted.ts';
import { acceptedEncodings, readBounded } from './bounded-body.ts';
import { EgressError } from './egress-error.ts';
import { type GuardOptions, guardedAgent } from './guarded-agent.ts';
import { checkUrl, type UrlRules } from './url-guard.ts';

const redirectsMax = 5;

export interface EgressOptions extends GuardOptions {
  readonly schemes: UrlRules['schemes'];
  /** `ignored` when left out. */
  readonly fragment?: UrlRules['fragment'];
}

export interface EgressRequest {
  /** GET when left out. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal;
  /** Bytes of the body, after decompression, that are kept. */
  readonly maxBytes: number;
  /** What happens to a longer body; `fail` when left out. */
  readonly overflow?: 'fail' | 'truncate';
  /** Takes the pieces of the body, which is empty then; one that fails ends the request, and is the cause of its error. */
  readonly onPiece?: (piece: Buffer) => Promise<void>;
  /** Milliseconds for everything, all redirects included. */
  readonly timeoutMs: number;
  /** How many redirects are followed, at most 5; 0 (the default) returns the redirect itself. */
  readonly redirects?: number;
  /** Whether to request and decode gzip, deflate and br; true when left out. */
  readonly decompress?: boolean;
}

export interface EgressResponse {
  readonly status: number;
  /** Names in lower case; a repeated header is an array. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer;
  /** The body was longer than `maxBytes`, and `overflow` is `truncate`. */
  readonly truncated: boolean;
  /** The url that answered, after redirects. */
  readonly url: string;
}

/** One hop of a request; a redirect makes the next one. */
interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}

/** Headers that only the client sets; a caller's could desynchronize the connection or name another host. */
const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Headers that follow a redirect to another origin. Any other header could hold a credential. */
const harmlessHeaders: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'content-language',
  'content-type',
  'range',
  'user-agent',
]);

/** A client with one set of rules, one for a process; close it when the process stops. */
export class Egress {
  readonly #rules: UrlRules;
  readonly #agent: Dispatcher;

  constructor(options: EgressOptions) {
    const { schemes, allowed, fragment = 'ignored' } = options;
    this.#rules = { schemes, allowed, fragment };
    this.#agent = guardedAgent(options);
  }

  /** Sends one request and reads the answer. Every status is an answer, also a 500. */
  request(url: string, options: EgressRequest): Promise<EgressResponse> {
    return guardedRequest(this.#agent, this.#rules, url, options);
  }

  /** Aborts the requests under way and closes the connections. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** The progress of a request, for the message of its failure. */
interface Progress {
  host: string;
  /** Whether anything may have left this machine. */
  sent: boolean;
  /** The status of the answer whose body is being read. */
  status: number | null;
  /** The part of that body that was read. */
  readonly received: Buffer[];
}

async function guardedRequest(
  agent: Dispatcher,
  rules: UrlRules,
  url: string,
  options: EgressRequest,
): Promise<EgressResponse> {
  const deadline = AbortSignal.timeout(options.timeoutMs);
  const signal =
    options.signal === undefined ? deadline : AbortSignal.any([options.signal, deadline]);
  const progress: Progress = { host: 'the url', sent: false, status: null, received: [] };
  try {
    const first = firstHop(allowedUrl(url, rules), options);
    const followed = follow(agent, rules, first, { ...options, signal }, progress);
    // undici checks the signal only after it has connected.
    return await Promise.race([followed, aborted(signal)]);
  } catch (error) {
    throw explained(error, progress, options, deadline);
  }
}

/** Sends the first hop and those that its redirects lead to, and reads the last answer. */
async function follow(
  agent: Dispatcher,
  rules: UrlRules,
  first: Hop,
  options: EgressRequest & { readonly signal: AbortSignal },
  progress: Progress,
): Promise<EgressResponse> {
  const redirects = Math.min(options.redirects ?? 0, redirectsMax);
  let hop = first;
  for (let followed = 0; ; followed++) {
    progress.host = hop.url.hostname;
    options.signal.throwIfAborted();
    const answer = await dispatch(agent, hop, options.signal);
    progress.sent = true;
    const target = redirects > 0 ? redirectTarget(answer, hop.url) : null;
    if (target === null) {
      progress.status = answer.statusCode;
      return await readAnswer(answer, hop.url, options, progress.received);
    }
    discard(answer.body);
    if (followed === redirects) {
      throw new EgressError('too_many_redirects', `There were more than ${redirects} redirects`);
    }
    hop = nextHop(hop, answer.statusCode, allowedUrl(target, rules));
  }
}

function allowedUrl(text: string, rules: UrlRules): URL {
  const checked = checkUrl(text, rules);
  if (!checked.ok) throw new EgressError(checked.code, `The url ${checked.reason}`);
  return checked.url;
}

function firstHop(url: URL, options: EgressRequest): Hop {
  const headers: Record<string, string> = {
    accept: '*/*',
    'user-agent': 'Skillwright',
    ...(options.decompress === false ? {} : { 'accept-encoding': acceptedEncodings }),
  };
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    const lower = name.toLowerCase();
    if (connectionHeaders.has(lower)) {
      throw new EgressError('invalid_request', `The header ${lower} cannot be set`);
    }
    headers[lower] = value;
  }
  return { url, method: options.method ?? 'GET', headers, body: options.body ?? null };
}

function dispatch(agent: Dispatcher, hop: Hop, signal: AbortSignal) {
  return request(hop.url, {
    dispatcher: agent,
    method: hop.method as Dispatcher.HttpMethod,
    headers: hop.headers,
    body: hop.body,
    signal,
  });
}

/** The absolute url of a redirect; null when the answer is no redirect. */
function redirectTarget(answer: Dispatcher.ResponseData, from: URL): string | null {
  if (![301, 302, 303, 307, 308].includes(answer.statusCode)) return null;
  const location = answer.headers['location'];
  if (typeof location !== 'string') return null;
  if (!URL.canParse(location, from)) {
    throw new EgressError('protocol', 'The answer redirects to something that is not a url');
  }
  return new URL(location, from).href;
}

/** The request after a redirect, by RFC 9110 as browsers implement it. */
function nextHop(hop: Hop, status: number, url: URL): Hop {
  const becomesGet =
    (status === 303 && hop.method !== 'HEAD') ||
    ((status === 301 || status === 302) && hop.method === 'POST');
  const sameOrigin = url.origin === hop.url.origin;
  const kept = Object.entries(hop.headers).filter(
    ([name]) =>
      (sameOrigin || harmlessHeaders.has(name)) && !(becomesGet && name.startsWith('content-')),
  );
  return {
    url,
    method: becomesGet ? 'GET' : hop.method,
    headers: Object.fromEntries(kept),
    body: becomesGet ? null : hop.body,
  };
}

async function readAnswer(
  answer: Dispatcher.ResponseData,
  url: URL,
  { decompress = true, maxBytes, overflow = 'fail', onPiece }: EgressRequest,
  received: Buffer[],
): Promise<EgressResponse> {
  const { statusCode: status, headers } = answer;
  const encoding = decompress ? joined(headers['content-encoding']) : null;
  const limits = { maxBytes, overflow };
  const into = onPiece ?? received;
  const { bytes, truncated } = await readBounded(answer.body, encoding, limits, into);
  return { status, headers, body: bytes, truncated, url: url.href };
}

function joined(header: string | string[] | undefined): string | null {
  return Array.isArray(header) ? header.join(',') : (header ?? null);
}

/** Closes the connection, so that an endless body of a redirect costs nothing. */
function discard(body: Dispatcher.ResponseData['body']): void {
  body.on('error', () => undefined).destroy();
}

/** Turns any failure into an EgressError with the progress of the request. */
function explained(
  error: unknown,
  { host, sent, status, received: chunks }: Progress,
  options: EgressRequest,
  deadline: AbortSignal,
): EgressError {
  const received = Buffer.concat(chunks);
  // Refusals before the request is sent, and errors of the connector, are EgressErrors already.
  if (error instanceof EgressError) {
    const { code, message, cause } = error;
    return new EgressError(code, message, { sent, status, received, cause });
  }
  const how = { sent: true, status, received, cause: error };
  if (options.signal?.aborted === true) {
    return new EgressError('aborted', 'The request was broken off', how);
  }
  if (deadline.aborted) {
    const seconds = options.timeoutMs / 1000;
    return new EgressError('timeout', `${host} did not answer in full within ${seconds} s`, how);
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED') {
    const cannot = 'The request has a method, header or body that cannot be sent';
    return new EgressError('invalid_request', cannot, { ...how, sent });
  }
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new EgressError('too_large', `The headers of ${host} are too long`, how);
  }
  if (error instanceof errors.HTTPParserError) {
    return new EgressError('protocol', `${host} does not answer in valid HTTP`, how);
  }
  return new EgressError('connection', `The connection to ${host} broke`, how);
}
