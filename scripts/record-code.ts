/**
 * `node scripts/record-code.ts <directory of a bundle>`: starts the platform of a bundle in a temporary folder, has it answer
 * first requests, and writes the code that V8 compiled of it beside it (src/apps/start/compiled-bundle.ts).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { entryName } from '../src/apps/start/bundle.ts';
import { CompiledBundle } from '../src/apps/start/compiled-bundle.ts';
import { allowHeapGrowth } from '../src/kernel/heap.ts';

const [directory = ''] = process.argv.slice(2);
const secret = 'secret-of-a-platform-that-is-recorded';
const dataDir = mkdtempSync(join(tmpdir(), 'skillwright-recorded-'));
process.once('exit', () => rmSync(dataDir, { recursive: true, force: true }));
// V8 would drop the code of functions that have not been called for a while.
setFlagsFromString('--no-flush-bytecode');
const bundle = new CompiledBundle(directory);
const port = await freePort();
const { run } = bundle.load(entryName) as typeof import('../src/apps/composition/run.ts');
const environment = {
  ...{ PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
  ...{ DATA_DIR: dataDir, ADMIN_SECRET: secret, PORT: String(port), LOG_LEVEL: 'warn' },
};
await run(environment, { isBundled: true, isRecorded: true });
await makeRequests(`http://127.0.0.1:${port}`);
setFlagsFromString('--flush-bytecode');
bundle.record(allowHeapGrowth);
process.kill(process.pid, 'SIGTERM');

/** What a client does first: a key, a run, its list of jobs. */
async function makeRequests(url: string): Promise<void> {
  await request(`${url}/health`, {});
  const admin = { 'x-admin-secret': secret, 'content-type': 'application/json' };
  const named = JSON.stringify({ client_name: 'recorded', scopes: ['*'] });
  const { plaintext_key: key } = await request(`${url}/admin/api-keys`, {
    headers: admin,
    body: named,
  });
  const headers = {
    'x-api-key': String(key),
    'content-type': 'application/json',
    prefer: 'wait=10',
  };
  await request(`${url}/api/util/v1.0/echo`, { headers, body: '{"text":"recorded"}' });
  await request(`${url}/api/jobs`, { headers });
}

async function request(url: string, options: { headers?: Record<string, string>; body?: string }) {
  const method = options.body === undefined ? 'GET' : 'POST';
  const answer = await fetch(url, { ...options, method, signal: AbortSignal.timeout(30_000) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

function freePort(): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port: free } = server.address() as AddressInfo;
    server.close(() => resolve(free));
  });
  return promise;
}
