import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { examineConfig, misspeltSettings, readConfig } from './config.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'skillwright-secret-files-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fileOf(text: string): string {
  const file = join(folder, String(Math.random()));
  writeFileSync(file, text);
  return file;
}

test('a file stands for the secret that its variable names', () => {
  const environment = {
    ADMIN_SECRET_FILE: fileOf('the-secret-of-an-admin\n'),
    ENCRYPTION_KEY_FILE: fileOf(`${'0f'.repeat(32)}\n`),
    DATABASE_URL_FILE: fileOf('postgres://u:p@db/x'),
    REDIS_URL_FILE: fileOf('redis://:p@cache:6379'),
    OPENAI_API_KEY_FILE: fileOf('sk-known'),
    GATEWAY_BASE_URL: 'http://127.0.0.1:4000/v1',
    GATEWAY_API_KEY_FILE: fileOf('sk-named\n'),
  };
  const config = readConfig(environment);

  expect(config).toMatchObject({
    adminSecret: 'the-secret-of-an-admin',
    encryptionKey: Buffer.alloc(32, 0x0f),
    databaseUrl: 'postgres://u:p@db/x',
    redisUrl: 'redis://:p@cache:6379',
  });
  expect(config.providers.get('openai')?.apiKey).toBe('sk-known');
  expect(config.providers.get('gateway')?.apiKey).toBe('sk-named');
  expect(misspeltSettings(environment)).toEqual([]);
  expect(Object.keys(config.skillEnvironment)).toEqual(['GATEWAY_BASE_URL']);
});

test.each<[string, () => Record<string, string>, RegExp]>([
  [
    'is missing',
    () => ({ ADMIN_SECRET_FILE: '/nowhere/a' }),
    /^ADMIN_SECRET_FILE="\/nowhere\/a" cannot be read: ENOENT$/,
  ],
  ['is empty', () => ({ ADMIN_SECRET_FILE: fileOf(' \n') }), /^ADMIN_SECRET_FILE=".*" is empty$/],
  [
    'is too long',
    () => ({ ADMIN_SECRET_FILE: fileOf('a'.repeat(64 * 1024 + 1)) }),
    /^ADMIN_SECRET_FILE=".*" is longer than 65536 bytes$/,
  ],
  [
    'is named beside the secret',
    () => ({ ADMIN_SECRET: 'a'.repeat(16), ADMIN_SECRET_FILE: fileOf('b'.repeat(16)) }),
    /^ADMIN_SECRET_FILE=".*" is set beside ADMIN_SECRET: unset one of them$/,
  ],
  ['holds no secret', () => ({ ADMIN_SECRET_FILE: fileOf('short') }), /^ADMIN_SECRET=…: expected /],
])('a file that %s is a fault, without its content', (_what, environment, message) => {
  const { faults } = examineConfig(environment());

  expect(faults).toEqual([{ variable: 'ADMIN_SECRET', message: expect.stringMatching(message) }]);
});

test('a file that another program may have named is not read', () => {
  const { faults } = examineConfig({ OTHER_API_KEY_FILE: '/nowhere', DATABASE_URL_FILE: '' });

  expect(faults).toEqual([]);
});
