/**
 * One request to a provider. It is made with undici's `request`, because a body of `fetch` takes a chain of
 * streams and several promises for each chunk, and a model's answer has a chunk for each word.
 */
import { pipeline, type Readable } from 'node:stream';
import type { buildConnector, Dispatcher } from 'undici';
import { skipInterimResponses } from '../../kernel/interim-responses.ts';
import { lazily } from '../../kernel/lazy.ts';

export interface ProviderRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body: string;
}

export interface ProviderResponse {
  readonly status: number;
  readonly headers: Headers;
  /** Decoded. */
  readonly body: Readable;
}

/** undici's own. */
const connectTimeoutMs = 10_000;

/** The silence timer of a call bounds silence. undici's own time limits of five minutes would be too short. */
const client = lazily(async () => {
  const { Agent, buildConnector, request } = await import('undici');
  const connectDefault = buildConnector({ timeout: connectTimeoutMs });
  const connect: buildConnector.connector = (target, callback) =>
    connectDefault(target, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      // HTTP/2 has frames, and undici skips their interim responses.
      const isPlain = !('alpnProtocol' in socket) || socket.alpnProtocol !== 'h2';
      callback(null, isPlain ? skipInterimResponses(socket) : socket);
    });
  return { request, dispatcher: new Agent({ connect, headersTimeout: 0, bodyTimeout: 0 }) };
});

const zlib = lazily(() => import('node:zlib'));

/**
 * Resolves with the head of the response. Redirects are not followed. When the signal aborts, it rejects at once and
 * the body ends with an error.
 */
export async function requestProvider(
  { url, headers: own, body: content }: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderResponse> {
  const { request, dispatcher } = await client();
  signal.throwIfAborted();
  const asked = request(url, {
    dispatcher,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': 'skillwright',
      // An encoded stream would have to be decoded word by word.
      'accept-encoding': 'identity',
      ...own,
    },
    body: content,
    signal,
  });
  // undici looks at the signal only once it is connected.
  const { statusCode, headers, body } = await Promise.race([asked, aborted(signal)]);
  const all = headersOf(headers);
  return { status: statusCode, headers: all, body: await decoded(body, all) };
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function headersOf(raw: Dispatcher.ResponseData['headers']): Headers {
  const headers = new Headers();
  for (const [name, value = []] of Object.entries(raw)) {
    for (const one of [value].flat()) headers.append(name, one);
  }
  return headers;
}

/** Some gateways encode although they were asked not to. */
async function decoded(body: Readable, headers: Headers): Promise<Readable> {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? '';
  if (!['gzip', 'x-gzip', 'deflate', 'br'].includes(encoding)) return body;
  const { constants, createBrotliDecompress, createUnzip } = await zlib();
  // An event is decoded as it arrives, and a body that is cut as far as it goes.
  const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = constants;
  const decoder =
    encoding === 'br'
      ? createBrotliDecompress({
          flush: BROTLI_OPERATION_FLUSH,
          finishFlush: BROTLI_OPERATION_FLUSH,
        })
      : createUnzip({ flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH });
  // An error of either reaches the reader through the decoder.
  return pipeline(body, decoder, () => {});
}
