import { expect, test } from 'vitest';
import { manualClock } from '../../../test/support/manual-clock.ts';
import { createLogger } from '../../kernel/log.ts';
import { allowOrigins } from './cors.ts';
import { Metrics } from './metrics.ts';
import { createServer } from './server.ts';

const limits = {
  perAddress: 10,
  stallMs: 60_000,
  answerMs: 60_000,
  uploadMs: 60_000,
  unreadBytes: 10_000_000,
};
const origin = 'http://127.0.0.1:5173';
/** What a browser adds to a request of a page. */
const ofPage = (site: string) => ({ 'sec-fetch-mode': 'cors', 'sec-fetch-site': site });

/** A server that allows no origin, and the origins that its log has named. */
function serverWithLog() {
  const named: unknown[] = [];
  const clock = manualClock();
  const server = createServer(
    createLogger('silent'),
    new Metrics({ version: '1.0.0', roles: 'api' }).http,
    limits,
  );
  const log = createLogger('info', { write: (line) => void named.push(JSON.parse(line).origin) });
  allowOrigins(server, null, log, clock);
  server.get('/health', () => ({}));
  const get = async (headers: Record<string, string>) =>
    (await server.inject({ method: 'GET', url: '/health', headers })).statusCode;
  return { named, clock, get };
}

test('the log names the origin of a page whose browser keeps the answer from it, once', async () => {
  const { named, get } = serverWithLog();

  for (const site of ['cross-site', 'same-site', 'cross-site']) {
    expect(await get({ origin, ...ofPage(site) })).toBe(200);
  }

  expect(named).toEqual([origin]);
});

test('requests of own pages and of programs are not logged', async () => {
  const { named, get } = serverWithLog();

  for (const headers of [{}, { origin }, { origin, ...ofPage('same-origin') }]) {
    expect(await get(headers)).toBe(200);
  }

  expect(named).toEqual([]);
});

test('at most twenty origins an hour are logged, and none of a form that no browser sends', async () => {
  const { named, clock, get } = serverWithLog();

  for (let i = 0; i < 50; i++) await get({ origin: `https://${i}.test`, ...ofPage('cross-site') });
  expect(named).toHaveLength(20);
  clock.advance(3_600_000);
  await get({ origin: '"><script>', ...ofPage('cross-site') });
  await get({ origin, ...ofPage('cross-site') });

  expect(named.slice(20)).toEqual([undefined, origin]);
});
