/** The configuration that deploy/compose.yaml gives to Valkey, with the Redis or Valkey of this machine. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { findRedis } from '../support/redis.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { freePort, logTail, serverDirectory, supervise } from '../support/supervised.ts';
import { waitFor } from '../support/wait-for.ts';

const password = 'a-password-of-the-test';

test.skipIf(!(await isInstalled('Redis')))(
  'it persists its data, evicts nothing, and requires the password',
  async () => {
    const { configs } = parse(
      readFileSync(join(import.meta.dirname, '../../deploy/compose.yaml'), 'utf8'),
      { merge: true },
    );
    const directory = serverDirectory('valkey', null);
    const file = join(directory, 'valkey.conf');
    const content = configs.valkey.content as string;
    writeFileSync(
      file,
      content.replace(/\$\{VALKEY_PASSWORD[^}]*\}/, password).replace('/data', directory),
    );
    const port = await freePort();
    const program = findRedis() as string;
    const here = ['--port', String(port), '--bind', '127.0.0.1'];
    const server = await supervise(directory, null, 'KILL', [program, file, ...here]);
    onTestFinished(() => server.end());

    const client = new Redis({ host: '127.0.0.1', port, password });
    client.on('error', () => {});
    onTestFinished(() => client.disconnect());
    await waitFor(async () => (await client.ping()) === 'PONG', {
      describe: () => `it answers. Its log:\n${logTail(directory)}`,
    });
    const settings = await client.config('GET', 'maxmemory-policy', 'appendonly', 'appendfsync');
    const stranger = new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: 0 });
    stranger.on('error', () => {});
    onTestFinished(() => stranger.disconnect());

    expect(Object.fromEntries(pairs(settings as string[]))).toEqual({
      'maxmemory-policy': 'noeviction',
      appendonly: 'yes',
      appendfsync: 'everysec',
    });
    await expect(stranger.ping()).rejects.toThrow('NOAUTH');
  },
);

function pairs(flat: readonly string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!]);
}
