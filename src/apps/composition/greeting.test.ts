import { expect, test } from 'vitest';
import { greeting } from './greeting.ts';

const config = { dataDir: './data', databaseUrl: null };
const started = { config, version: '1.2.3', address: 'http://127.0.0.1:3000' };

test('a start in a terminal says how to make a key', () => {
  const key = "./skillwright keys create me --scopes '*' --admin-secret";
  expect(greeting({ ...started, isSecretInFile: true })).toContain(
    `${key} "$(cat data/admin-secret)"\n`,
  );
  const spaced = { dataDir: "/my data's", databaseUrl: null };
  expect(greeting({ ...started, config: spaced, isSecretInFile: true })).toContain(
    `"$(cat '/my data'\\''s/admin-secret')"\n`,
  );
  const elsewhere = greeting({
    ...{ ...started, address: 'http://127.0.0.1:4000', isSecretInFile: false },
    config: { dataDir: './data', databaseUrl: 'postgres://user:hunter2@db/x' },
  });
  expect(elsewhere).toContain(`${key} "$ADMIN_SECRET" --url http://127.0.0.1:4000\n`);
  expect(elsewhere).not.toContain('hunter2');
});
