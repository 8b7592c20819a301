/**
 * Models that make vectors of texts (embeddings): one request, without retries, by OpenAI's protocol
 * (`POST …/embeddings`), which other providers and local servers speak as well. Vectors have the length 1, so the
 * similarity of two is their scalar product.
 */
import type { Clock } from '../../kernel/clock.ts';
import { isObject, objectOf, parsed } from '../../kernel/json.ts';
import { countIn } from './counts.ts';
import { messageIn } from './error-body.ts';
import { failureOf } from './failure.ts';
import { ModelError, nothingReported, type Usage } from './model.ts';
import {
  type Access,
  accessTo,
  embeddingsFault,
  type ProviderSettings,
  partsOfModel,
} from './providers.ts';
import { connectionFault, type WireFault } from './wire.ts';

/** Bytes of an answer: 64 vectors of the most dimensions, written as numbers. */
const answerBytesMax = 32 * 1024 * 1024;
const dimensionsMax = 8_192;

export interface EmbeddingCall {
  /** `provider/model`. */
  readonly model: string;
  /** How the provider is reached; undefined where nothing is known of it. */
  readonly settings: ProviderSettings | undefined;
  /** At least one; none of them empty. */
  readonly texts: readonly string[];
  /** The longest time until the whole answer. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface EmbeddingAnswer {
  /** One for each text, all of the same dimensions. */
  readonly vectors: readonly Float32Array[];
  readonly usage: Usage;
}

/** The provider refuses these texts; other texts may work. */
export class TextsRefusedError extends ModelError {}

/** Makes vectors at the providers. */
export class Embeddings {
  readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Throws only ModelErrors. */
  embed(call: EmbeddingCall): Promise<EmbeddingAnswer> {
    return embed(this.clock, call);
  }
}

async function embed(clock: Clock, call: EmbeddingCall): Promise<EmbeddingAnswer> {
  const { provider, name } = partsOfModel(call.model);
  const fault = embeddingsFault(provider);
  if (fault !== null) throw new ModelError('credentials', fault);
  const access = accessTo(provider, call.settings);
  const failed = (wireFault: WireFault, usage = nothingReported) =>
    failureOf(wireFault, { access, name, text: '', usage, seenBytes: 0 }, clock);
  const deadline = AbortSignal.timeout(call.timeoutMs);
  try {
    const response = await request(access, name, call, AbortSignal.any([call.signal, deadline]));
    const text = await boundedText(response);
    if (!response.ok) {
      const body = parsed(text);
      const message = isObject(body) ? messageIn(body) : text;
      const { status, headers } = response;
      const error = failed({
        kind: 'status',
        status,
        headers,
        message,
        errorKind: '',
        retryDelay: '',
      });
      throw isOfTexts(status) ? new TextsRefusedError('refused', error.message) : error;
    }
    const body = objectOf(parsed(text));
    const usage = usageIn(body);
    const read = readVectors(body, call.texts.length);
    if ('detail' in read) throw failed({ kind: 'malformed', detail: read.detail }, usage);
    return { vectors: read.vectors, usage };
  } catch (error) {
    if (error instanceof ModelError) throw error;
    if (call.signal.aborted) throw failed({ kind: 'aborted' });
    if (deadline.aborted) throw failed({ kind: 'late', ms: call.timeoutMs });
    throw failed(connectionFault(error));
  }
}

/** Statuses that may be the fault of one text: too long, empty for its tokenizer, too many at once. */
const isOfTexts = (status: number) => status === 400 || status === 413 || status === 422;

function request(
  { baseUrl, apiKey }: Access,
  model: string,
  { texts }: EmbeddingCall,
  signal: AbortSignal,
): Promise<Response> {
  return fetch(`${baseUrl}/embeddings`, {
    method: 'POST',
    redirect: 'manual',
    headers: {
      'content-type': 'application/json',
      ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify({ model, input: texts }),
    signal,
  });
}

async function boundedText({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > answerBytesMax) throw new Error(`it has more than ${answerBytesMax} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function usageIn(body: ReturnType<typeof objectOf>): Usage {
  const counts = objectOf(body?.['usage']);
  if (counts === null) return nothingReported;
  const prompt = countIn(counts, 'prompt_tokens') ?? countIn(counts, 'total_tokens');
  return { prompt, completion: 0 };
}

/** The vectors in the order of the texts, or what is wrong with the answer. */
function readVectors(
  body: ReturnType<typeof objectOf>,
  count: number,
): Pick<EmbeddingAnswer, 'vectors'> | { readonly detail: string } {
  const data: unknown = body?.['data'];
  if (!Array.isArray(data)) return { detail: 'it has no list of vectors' };
  if (data.length !== count) return { detail: `it has ${data.length} vectors for ${count} texts` };
  const vectors: Float32Array[] = [];
  for (const [i, item] of data.entries()) {
    const entry = objectOf(item);
    const index = entry?.['index'] ?? i;
    const vector = vectorOf(entry?.['embedding']);
    if (vector === null) return { detail: 'a vector is no list of numbers other than zeros' };
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= count) {
      return { detail: 'a vector has no valid index' };
    }
    vectors[index] = vector;
  }
  const dimensions = vectors[0]?.length;
  for (let i = 0; i < count; i++) {
    if (vectors[i] === undefined) return { detail: 'two vectors have the same index' };
    if (vectors[i]?.length !== dimensions) return { detail: 'its vectors differ in dimensions' };
  }
  return { vectors };
}

/** A vector of length 1, of numbers or of base64 of 32-bit floats; null for anything else. */
function vectorOf(value: unknown): Float32Array | null {
  const given = typeof value === 'string' ? floatsOf(value) : value;
  if (!Array.isArray(given) || given.length === 0 || given.length > dimensionsMax) return null;
  let squares = 0;
  for (const number of given) {
    if (typeof number !== 'number' || !Number.isFinite(number)) return null;
    squares += number * number;
  }
  const length = Math.sqrt(squares);
  if (!(length > 0) || !Number.isFinite(length)) return null;
  return Float32Array.from(given as number[], (number) => number / length);
}

function floatsOf(base64: string): number[] {
  const bytes = Buffer.from(base64, 'base64');
  return Array.from({ length: Math.floor(bytes.length / 4) }, (_, i) => bytes.readFloatLE(i * 4));
}
