/**
 * A provider of embeddings whose vectors a test can foresee: a real HTTP server on the loopback device that speaks OpenAI's
 * protocol. A vector has a dimension for each concept of which a text has a word, so that synonyms meet and words
 * without a concept point elsewhere.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

const concepts: readonly string[] = [
  'car vehicle automobile driving auto',
  'doctor physician medic clinic',
  'money salary wages earns pay income',
  'dog puppy hound',
  'rain weather storm umbrella',
  'meal dinner food eats hungry',
  'holiday vacation trip travel beach',
  'house home flat lives residence',
  'sick ill fever unwell',
  'happy glad cheerful joy',
];
const dimensionsMin = 32;

export interface EmbeddingRequest {
  readonly model: string;
  readonly input: readonly string[];
  readonly key: string | null;
}

/** Null: an answer as it should be. `hang`: none at all. */
export type Trouble =
  | null
  | 'hang'
  | 'malformed'
  /** No vector for the last text. */
  | 'too-few'
  | { readonly status: number; readonly headers?: Record<string, string> };

export interface ScriptedEmbedder {
  readonly baseUrl: string;
  readonly requests: readonly EmbeddingRequest[];
  /** What is wrong with the answer to each request from now on. */
  script(trouble: (request: EmbeddingRequest) => Trouble | Promise<Trouble>): void;
  /** Vectors have so many dimensions from now on. */
  dimensions(count: number): void;
  close(): Promise<void>;
}

/** Tokens that the provider counts: its words. */
export const tokensOf = (text: string) => text.split(/\s+/).filter(Boolean).length;

export async function startScriptedEmbedder(): Promise<ScriptedEmbedder> {
  const requests: EmbeddingRequest[] = [];
  let trouble: (request: EmbeddingRequest) => Trouble | Promise<Trouble> = () => null;
  let dimensions = dimensionsMin;
  const server = createServer(async (message, response) => {
    const send = (status: number, body: unknown, headers = {}) =>
      response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(typeof body === 'string' ? body : JSON.stringify(body));
    const { model, input } = JSON.parse(await textOf(message)) as EmbeddingRequest;
    if (message.url !== '/v1/embeddings') return send(404, { error: { message: 'no such path' } });
    const key = message.headers.authorization?.replace('Bearer ', '') ?? null;
    const request = { model, input, key };
    requests.push(request);
    const wrong = await trouble(request);
    if (wrong === 'hang') return;
    if (wrong === 'malformed') return send(200, '{"data": [{"embedding": "no');
    if (wrong !== null && wrong !== 'too-few')
      return send(wrong.status, { error: { message: 'scripted' } }, wrong.headers);
    const tokens = input.reduce((sum, text) => sum + tokensOf(text), 0);
    send(200, {
      object: 'list',
      model,
      data: (wrong === 'too-few' ? input.slice(1) : input)
        .map((text, index) => ({ index, embedding: vectorOf(text, dimensions) }))
        .reverse(),
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    script(next) {
      trouble = next;
    },
    dimensions(count) {
      dimensions = count;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Words of a concept count alike; a text without any points in a direction of its own. */
function vectorOf(text: string, dimensions: number): number[] {
  const vector: number[] = Array.from({ length: dimensions }, () => 0);
  const words = new Set(text.toLowerCase().match(/\p{L}+/gu) ?? []);
  for (const [i, concept] of concepts.entries()) {
    if (concept.split(' ').some((word) => words.has(word))) vector[i] = 1;
  }
  if (Math.max(...vector) === 0) {
    const place = createHash('sha256').update(text).digest().readUInt32LE(0);
    vector[concepts.length + (place % (dimensions - concepts.length))] = 1;
  }
  return vector;
}

async function textOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
