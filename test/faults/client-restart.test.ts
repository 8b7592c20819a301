/**
 * A platform that is killed while clients start jobs: each start is given to its caller once the platform runs
 * again, and each is one job. The client's promise is in packages/client/README.md.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, createClient } from '@skillwright/client';
import { afterAll, expect, test } from 'vitest';
import { type PlatformProcess, startProcess } from '../support/process.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'skillwright-client-restart-'));
let platform: PlatformProcess;
afterAll(async () => {
  await platform.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const startPlatform = () => startProcess(dataDir, { EXECUTORS: '1' });
/** More than three retries, which is what other requests get. */
const failuresOfEach = 5;

test('no start is lost to its caller while the platform is killed and started again', async () => {
  platform = await startPlatform();
  const { key } = await newTenant(platform);
  // Its port stays, as a platform's own does.
  const proxy = await startTcpProxy(() => Number(new URL(platform.url).port));
  const failures = new Map<string, number>();
  const client = createClient({
    url: `http://127.0.0.1:${proxy.port}`,
    apiKey: key,
    async fetch(input, init) {
      try {
        return await fetch(input, init);
      } catch (error) {
        const start = new Headers(init?.headers).get('idempotency-key') ?? '';
        failures.set(start, (failures.get(start) ?? 0) + 1);
        throw error;
      }
    },
  });
  // Some of these have been accepted when it is killed, and their answers are lost.
  const starts = Array.from({ length: 60 }, (_one, number) => startEcho(client, number));
  platform.signal('SIGKILL');
  await platform.exit;
  starts.push(...Array.from({ length: 60 }, (_one, number) => startEcho(client, 60 + number)));
  const failedOften = () => [...failures.values()].filter((count) => count >= failuresOfEach);
  await waitFor(() => failedOften().length >= 60, { describe: 'starts have failed often' });
  platform = await startPlatform();

  const started = await Promise.all(starts);
  const ids = started.map(({ jobId }) => jobId);
  expect(new Set(ids).size).toBe(120);
  const outputs = await Promise.all(started.map((job) => job.result()));
  expect(outputs).toEqual(Array.from({ length: 120 }, (_one, number) => ({ text: `${number}` })));
  const { total } = await client.jobs.list({ limit: 1 });
  expect(total).toBe(120);
  proxy.close();
});

function startEcho(client: Client, number: number) {
  return client.start('util/v1.0/echo', { text: String(number) });
}
