import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger } from '../../kernel/log.ts';
import { compressAnswers } from './compress.ts';
import { Metrics } from './metrics.ts';
import { createServer, type Server } from './server.ts';

const limits = {
  perAddress: 10,
  stallMs: 60_000,
  answerMs: 60_000,
  uploadMs: 60_000,
  unreadBytes: 10_000_000,
};
const large = { items: Array.from({ length: 500 }, (_, id) => ({ id, name: `item ${id}` })) };
const small = { id: 1 };

let server: Server;
beforeAll(async () => {
  server = createServer(
    createLogger('silent'),
    new Metrics({ version: '1.0.0', roles: 'api' }).http,
    limits,
  );
  compressAnswers(server);
  server.get('/large', async () => large);
  server.get('/small', async () => small);
  server.post('/large', async () => large);
  await server.ready();
});
afterAll(() => server.close());

/** An answer to a request that accepts these codings, and its body as JSON. */
async function asked(url: string, accepted: string | undefined, method: 'GET' | 'POST' = 'GET') {
  const headers = accepted === undefined ? {} : { 'accept-encoding': accepted };
  const answer = await server.inject({ method, url, headers });
  const coding = answer.headers['content-encoding'];
  const bytes = coding === 'gzip' ? gunzipSync(answer.rawPayload) : answer.rawPayload;
  expect(Number(answer.headers['content-length'])).toBe(answer.rawPayload.length);
  return { coding, vary: answer.headers['vary'], body: JSON.parse(bytes.toString()) };
}

test.each(['gzip', 'br, gzip;q=0.5', 'GZIP', '*', 'deflate, *;q=0.1'])(
  'a large answer is compressed for a client that accepts gzip: %s',
  async (accepted) => {
    const answer = await asked('/large', accepted);

    expect(answer).toEqual({ coding: 'gzip', vary: 'accept-encoding', body: large });
  },
);

test.each([undefined, '', 'br', 'identity', 'gzip;q=0', 'gzip;q=0.0, *'])(
  'it is sent as it is to a client that does not: %s',
  async (accepted) => {
    const answer = await asked('/large', accepted);

    expect(answer).toEqual({ coding: undefined, vary: 'accept-encoding', body: large });
  },
);

test('small answers, and answers that may hold a new secret, are sent as they are', async () => {
  expect(await asked('/small', 'gzip')).toEqual({
    coding: undefined,
    vary: undefined,
    body: small,
  });
  expect(await asked('/large', 'gzip', 'POST')).toMatchObject({ coding: undefined, body: large });
});
