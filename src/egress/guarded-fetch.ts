/**
 * Requests to the outside. Promises that every url, redirects included, passes url-guard.ts and
 * every connection guarded-agent.ts; that a request ends by its deadline, DNS to last body byte;
 * that no more than `maxBytes` of a body are kept; and that credentials do not follow a redirect
 * to another origin. Every failure is an EgressError.
 */

import { type Dispatcher, errors, request } from 'undici';
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
  /** What a longer body leads to; `fail` when left out. */
  readonly overflow?: 'fail' | 'truncate';
  /** Milliseconds for everything, all redirects included. */
  readonly timeoutMs: number;
  /** How many redirects are followed, at most 5; 0 (the default) returns the redirect itself. */
  readonly redirects?: number;
  /** Whether gzip, deflate and br are asked for and undone; true when left out. */
  readonly decompress?: boolean;
}

export interface EgressResponse {
  readonly status: number;
  /** Names in lower case; a header that came several times is an array. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer;
  /** The body was longer than `maxBytes`, and `overflow` is `truncate`. */
  readonly truncated: boolean;
  /** The url that answered, after redirects. */
  readonly url: string;
}

export interface Egress {
  /** Sends one request and reads the answer. Statuses are not judged: a 500 is an answer. */
  request(url: string, options: EgressRequest): Promise<EgressResponse>;
  /** Breaks off what is under way and frees the connections. */
  close(): Promise<void>;
}

/** One request on its way, as it changes from hop to hop. */
interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}

/** Headers that the connection itself sets; a caller's would desynchronize it or name another host. */
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

/** What may follow a redirect to another origin. Any other header could be a key. */
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

/** Opens a way out with one set of rules; made once for a process and closed when it stops. */
export function openEgress(options: EgressOptions): Egress {
  const rules: UrlRules = {
    schemes: options.schemes,
    allowed: options.allowed,
    fragment: options.fragment ?? 'ignored',
  };
  const agent = guardedAgent(options);
  return {
    request: (url, asked) => guardedRequest(agent, rules, url, asked),
    close: () => agent.destroy(),
  };
}

/** How far a request has come, for the words of its failure. */
interface Progress {
  host: string;
  /** Whether anything may have left this machine. */
  sent: boolean;
  /** The status of the answer whose body is being read. */
  status: number | null;
  /** What has been read of that body. */
  readonly received: Buffer[];
}

async function guardedRequest(
  agent: Dispatcher,
  rules: UrlRules,
  url: string,
  asked: EgressRequest,
): Promise<EgressResponse> {
  const deadline = AbortSignal.timeout(asked.timeoutMs);
  const signal = asked.signal === undefined ? deadline : AbortSignal.any([asked.signal, deadline]);
  const progress: Progress = { host: 'the url', sent: false, status: null, received: [] };
  try {
    const first = firstHop(allowedUrl(url, rules), asked);
    const followed = follow(agent, rules, first, { ...asked, signal }, progress);
    // undici looks at the signal only once it is connected.
    return await Promise.race([followed, aborted(signal)]);
  } catch (error) {
    throw explained(error, progress, asked, deadline);
  }
}

/** Fails when the signal aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** Sends the first hop and those that its redirects lead to, and reads the last answer. */
async function follow(
  agent: Dispatcher,
  rules: UrlRules,
  first: Hop,
  asked: EgressRequest & { readonly signal: AbortSignal },
  progress: Progress,
): Promise<EgressResponse> {
  const redirects = Math.min(asked.redirects ?? 0, redirectsMax);
  let hop = first;
  for (let followed = 0; ; followed++) {
    progress.host = hop.url.hostname;
    asked.signal.throwIfAborted();
    const answer = await dispatch(agent, hop, asked.signal);
    progress.sent = true;
    const target = redirects > 0 ? redirectTarget(answer, hop.url) : null;
    if (target === null) {
      progress.status = answer.statusCode;
      return await readAnswer(answer, hop.url, asked, progress.received);
    }
    discard(answer.body);
    if (followed === redirects) {
      throw new EgressError('too_many_redirects', `There were more than ${redirects} redirects`);
    }
    hop = nextHop(hop, answer.statusCode, allowedUrl(target, rules));
  }
}

function allowedUrl(text: string, rules: UrlRules): URL {
  const verdict = checkUrl(text, rules);
  if (!verdict.ok) throw new EgressError(verdict.code, `The url ${verdict.reason}`);
  return verdict.url;
}

function firstHop(url: URL, asked: EgressRequest): Hop {
  const headers: Record<string, string> = {
    accept: '*/*',
    'user-agent': 'Skillwright',
    ...(asked.decompress === false ? {} : { 'accept-encoding': acceptedEncodings }),
  };
  for (const [name, value] of Object.entries(asked.headers ?? {})) {
    const lower = name.toLowerCase();
    if (connectionHeaders.has(lower)) {
      throw new EgressError('invalid_request', `The header ${lower} cannot be set`);
    }
    headers[lower] = value;
  }
  return { url, method: asked.method ?? 'GET', headers, body: asked.body ?? null };
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

/** Where an answer leads to, as an absolute url; null when it is no redirect. */
function redirectTarget(answer: Dispatcher.ResponseData, from: URL): string | null {
  if (![301, 302, 303, 307, 308].includes(answer.statusCode)) return null;
  const location = answer.headers['location'];
  if (typeof location !== 'string') return null;
  if (!URL.canParse(location, from)) {
    throw new EgressError('protocol', 'The answer redirects to something that is not a url');
  }
  return new URL(location, from).href;
}

/** What a redirect turns a request into, as browsers read RFC 9110. */
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
  { decompress = true, maxBytes, overflow = 'fail' }: EgressRequest,
  received: Buffer[],
): Promise<EgressResponse> {
  const { statusCode: status, headers } = answer;
  const encoding = decompress ? joined(headers['content-encoding']) : null;
  const limits = { maxBytes, overflow };
  const { bytes, truncated } = await readBounded(answer.body, encoding, limits, received);
  return { status, headers, body: bytes, truncated, url: url.href };
}

function joined(header: string | string[] | undefined): string | null {
  return Array.isArray(header) ? header.join(',') : (header ?? null);
}

/** Breaks the connection off, so that a redirect's endless body costs nothing. */
function discard(body: Dispatcher.ResponseData['body']): void {
  body.on('error', () => undefined).destroy();
}

/** Any failure as an EgressError that knows how far the request had come. */
function explained(
  error: unknown,
  { host, sent, status, received: chunks }: Progress,
  asked: EgressRequest,
  deadline: AbortSignal,
): EgressError {
  const received = Buffer.concat(chunks);
  // Only what is refused before it is sent, or by the connector, is an EgressError already.
  if (error instanceof EgressError) {
    const { code, message, cause } = error;
    return new EgressError(code, message, { sent, status, received, cause });
  }
  const how = { sent: true, status, received, cause: error };
  if (asked.signal?.aborted === true) {
    return new EgressError('aborted', 'The request was broken off', how);
  }
  if (deadline.aborted) {
    const seconds = asked.timeoutMs / 1000;
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
