/**
 * `fetch` for libraries that take one: the same checks of urls and connections as in guarded-fetch.ts, with a body that
 * is streamed. A response ends with an error beyond its bytes. Redirects are never followed: their answer is the
 * caller's. Its caller sets the time limit, by its signal.
 */
import { Readable } from 'node:stream';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { type Dispatcher, request } from 'undici';
import { EgressError } from './egress-error.ts';
import { type GuardOptions, guardedAgent } from './guarded-agent.ts';
import { checkUrl, type UrlRules } from './url-guard.ts';

export interface GuardedFetchOptions extends GuardOptions {
  readonly schemes: UrlRules['schemes'];
  /** Bytes of one response. */
  readonly maxBytes: number;
}

export class GuardedFetch {
  readonly #agent: Dispatcher;
  readonly #options: GuardedFetchOptions;

  constructor(options: GuardedFetchOptions) {
    this.#agent = guardedAgent(options);
    this.#options = options;
  }

  fetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
    return guardedFetch(this.#agent, this.#options, url, init);
  }

  /** Aborts the requests under way and closes the connections. */
  close(): Promise<void> {
    return this.#agent.destroy();
  }
}

/** Statuses whose responses have no body. */
const bodiless: ReadonlySet<number> = new Set([101, 204, 205, 304]);

async function guardedFetch(
  agent: Dispatcher,
  { schemes, allowed, maxBytes }: GuardedFetchOptions,
  url: string | URL,
  init: RequestInit,
): Promise<Response> {
  const checked = checkUrl(String(url), { schemes, allowed, fragment: 'ignored' });
  if (!checked.ok) throw new EgressError(checked.code, `The url ${checked.reason}`);
  const { host } = checked.url;
  const signal = init.signal ?? undefined;
  const answer = await request(checked.url, {
    dispatcher: agent,
    method: (init.method ?? 'GET') as Dispatcher.HttpMethod,
    headers: { 'user-agent': 'Skillwright', ...Object.fromEntries(new Headers(init.headers)) },
    body: init.body === undefined || init.body === null ? null : String(init.body),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    throw signal?.aborted ? signal.reason : explained(host, error);
  });
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers)) {
    for (const one of [value ?? []].flat()) headers.append(name, one);
  }
  if (bodiless.has(answer.statusCode)) {
    answer.body.on('error', () => {}).resume();
    return new Response(null, { status: answer.statusCode, headers });
  }
  const body = Readable.from(bounded(answer.body, host, maxBytes), { objectMode: false });
  // It is read by the library, or not at all; then its end is of no interest.
  body.on('error', () => {});
  const stream = Readable.toWeb(body) as ReadableStream<Uint8Array>;
  return new Response(stream, { status: answer.statusCode, headers });
}

async function* bounded(
  source: Readable,
  host: string,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        throw new EgressError(
          'too_large',
          `The answer of ${host} is longer than ${maxBytes} bytes`,
        );
      }
      yield chunk;
      // The library may handle thousands of messages of a chunk; other requests are answered in between.
      await yieldToEventLoop();
    }
  } finally {
    source.on('error', () => {}).destroy();
  }
}

function explained(host: string, error: unknown): EgressError {
  if (error instanceof EgressError) return error;
  return new EgressError('connection', `The connection to ${host} broke`, {
    sent: true,
    cause: error,
  });
}
