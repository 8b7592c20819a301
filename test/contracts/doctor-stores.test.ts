/** `skillwright doctor` on PostgreSQL, Redis, encrypted values and skills: sound ones, and each broken in one way. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { knownMigrations } from '../../src/adapters/database/migrate.ts';
import { credentialContext } from '../../src/adapters/database/sealed-values.ts';
import type { Finding } from '../../src/apps/cli/findings/finding.ts';
import { Cipher } from '../../src/kernel/encryption.ts';
import { cli } from '../support/cli.ts';
import { engines } from '../support/databases.ts';
import {
  dropDatabase,
  freshDatabase,
  freshRedis,
  isInstalled,
  migratedDatabase,
  migrateSqlite,
} from '../support/shared-servers.ts';

const root = mkdtempSync(join(tmpdir(), 'skillwright-doctor-'));
const dataDir = join(root, 'data');
const key = randomBytes(32);
const sound = {
  ...{ PORT: '0', DATA_DIR: dataDir, ADMIN_SECRET: 'a-secret-of-the-tests' },
  ENCRYPTION_KEY: key.toString('hex'),
};
beforeAll(() => migrateSqlite(dataDir));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const hasRedis = await isInstalled('Redis');

interface Diagnosis {
  readonly code: number;
  /** All that is not ok: `check state message: remedy`. */
  readonly troubles: string[];
  readonly found: readonly Finding[];
}

async function diagnose(env: Record<string, string>, now = Date.now): Promise<Diagnosis> {
  const { code, stdout } = await cli(['doctor', '--json'], { env: { ...sound, ...env }, now });
  const { data } = JSON.parse(stdout) as { data: Finding[] };
  const troubles = data
    // What is free on the disk of the machine is not this test's.
    .filter((finding) => finding.state !== 'ok' && finding.check !== 'disk')
    .map(({ check, state, message, remedy }) => `${check} ${state} ${message}: ${remedy}`);
  expect(JSON.stringify(data)).not.toContain('hunter2');
  return { code, troubles, found: data };
}

/** The trouble of an installation that has only one. */
async function trouble(env: Record<string, string>, now?: () => number): Promise<string> {
  const { troubles } = await diagnose(env, now);
  expect(troubles).toHaveLength(1);
  return troubles[0] ?? '';
}

describe.each(await engines())('secrets on $name', (engine) => {
  test('are decrypted with their key; another key and none are faults', async () => {
    const place = await engine.place();
    const database = await place.open();
    const named = { organization_id: 'default', provider: 'openai', base_url: null };
    const dates = { created_at: 0, updated_at: 0 };
    const api_key = new Cipher(key).encrypt('sk-of-tests', credentialContext(named));
    await database.write((tx) =>
      tx.insert('credentials', [{ ...named, api_key, protocol: null, ...dates }]),
    );
    await database.close();
    const at = engine.name === 'SQLite' ? { DATA_DIR: place.at } : { DATABASE_URL: place.at };

    expect(await diagnose(at)).toMatchObject({ troubles: [] });
    const other = randomBytes(32).toString('hex');
    expect(await trouble({ ...at, ENCRYPTION_KEY: other })).toMatch(
      /^encryption fault ENCRYPTION_KEY does not decrypt 1 of 1 stored secrets: put the key back/,
    );
    const { ENCRYPTION_KEY: _, ...without } = { ...sound, ...at };
    const { code, stdout } = await cli(['doctor'], { env: without });
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^fault\tencryption\tStored secrets are encrypted, and their key is gone/m,
    );
  });
});

describe.skipIf(!(await isInstalled('PostgreSQL')))('PostgreSQL', () => {
  let url: string;
  beforeAll(async () => {
    url = await migratedDatabase();
  });
  afterAll(() => dropDatabase(url));

  /** The same address with a change. */
  const changed = (change: Change) => ({ DATABASE_URL: withChange(url, change) });

  test('a sound one has no trouble', async () => {
    expect(await diagnose({ DATABASE_URL: url })).toMatchObject({ code: 0, troubles: [] });
  });

  test('a host, a port, a database and a password that are wrong have sentences of their own', async () => {
    expect(await trouble(changed({ hostname: 'nowhere.invalid' }))).toMatch(
      /^database fault The host nowhere\.invalid of DATABASE_URL is not known: correct it/,
    );
    expect(await trouble(changed({ port: '1' }))).toMatch(
      /^database fault Nothing listens at \S+:1: start PostgreSQL there, or correct/,
    );
    expect(await trouble(changed({ pathname: '/none' }))).toMatch(
      /^database fault PostgreSQL at \S+ has no database none: create it \(createdb none\)/,
    );
    const port = await refusing('28P01', 'password authentication failed for user "ada"');
    const refused = { DATABASE_URL: `postgres://ada:hunter2@127.0.0.1:${port}/skillwright` };
    expect(await trouble(refused)).toMatch(
      /^database fault PostgreSQL at \S+ refuses the user ada or its password: correct them in DATABASE_URL/,
    );
    expect((await diagnose(refused)).code).toBe(1);
  });

  test('a schema that is newer or older, a user without rights and a wrong clock are found', async () => {
    const own = await freshDatabase();
    onTestFinished(() => dropDatabase(own));
    // The first start fills it.
    expect(await diagnose({ DATABASE_URL: own })).toMatchObject({ troubles: [] });
    const client = new pg.Client(own);
    await client.connect();
    await client.query('create table kysely_migration (name text, timestamp text)');
    await client.query('insert into kysely_migration values ($1, $2)', [
      knownMigrations[0],
      '2026',
    ]);
    expect(await trouble({ DATABASE_URL: own })).toMatch(
      /^database warning The next start runs \d+ migrations: back up first, and try them with/,
    );
    await client.query("insert into kysely_migration values ('9999-later', '2026')");
    await client.end();
    expect(await trouble({ DATABASE_URL: own })).toMatch(
      /^database fault It was last used by a newer Skillwright \(migration 9999-later\): run that/,
    );
    const readOnly = changed({ search: '?options=-c%20default_transaction_read_only%3Don' });
    expect(await trouble(readOnly)).toMatch(/^database fault PostgreSQL takes no writes/);
    expect(await trouble({ DATABASE_URL: url }, () => Date.now() + 60_000)).toMatch(
      /^clock warning The clocks of this machine and of PostgreSQL are 60 s apart: set them/,
    );
  });

  test('upgrade --check tries migrations beside the data, which stays as it is, and removes its schema', async () => {
    const own = await freshDatabase();
    onTestFinished(() => dropDatabase(own));
    const check = () => cli(['upgrade', '--check', '--json'], { env: { DATABASE_URL: own } });
    const all = JSON.parse((await check()).stdout);
    expect(all).toMatchObject({ rows: 0, migrations: all.missing.length });
    expect(all.seconds).toBeGreaterThan(0);

    // A database of an earlier version: one migration has not been run.
    const old = await migratedDatabase();
    onTestFinished(() => dropDatabase(old));
    const data = new pg.Client(old);
    await data.connect();
    onTestFinished(() => data.end());
    const missing = knownMigrations.at(-1) as string;
    await data.query("insert into organizations values ('acme', 0)");
    await data.query('delete from kysely_migration where name = $1', [missing]);
    const ended = await cli(['upgrade', '--check'], { env: { DATABASE_URL: old } });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toMatch(
      new RegExp(
        `^On a copy of the schema with [1-9]\\d* rows, 1 migrations \\(${missing}\\) ran in`,
      ),
    );
    const schemas = await data.query("select from pg_namespace where nspname like 'skillwright%'");
    expect(schemas.rowCount).toBe(0);

    await data.query('alter table organizations rename created_at to made_at');
    const drifted = await cli(['upgrade', '--check'], { env: { DATABASE_URL: old } });
    expect(drifted).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('lacks the column created_at of the table organizations'),
    });
  });

  describe.skipIf(!hasRedis)('with Redis', () => {
    let redis: string;
    beforeAll(async () => {
      redis = await freshRedis();
    });
    const using = (change: Change = {}) => ({
      DATABASE_URL: url,
      REDIS_URL: withChange(redis, change),
    });

    test('a sound cluster has no trouble', async () => {
      const { troubles, found } = await diagnose(using());
      // What the tests' own server drops is theirs.
      expect(troubles.filter((one) => !one.includes('evicts'))).toEqual([]);
      expect(found).toContainEqual({ check: 'redis', state: 'ok', message: 'It answers' });
    });

    test('a port, a number and a password that are wrong have sentences of their own', async () => {
      expect(await trouble(using({ port: '1' }))).toMatch(
        /^redis fault Nothing listens at \S+:1: start Redis there, or correct/,
      );
      expect(await trouble(using({ pathname: '/1000000' }))).toMatch(
        /^redis fault Redis at \S+ has no database 1000000: correct the number in REDIS_URL/,
      );
      const admin = new Redis(redis);
      await admin.call('ACL', 'SETUSER', 'ada', 'on', '>right', '~*', '+@all');
      onTestFinished(async () => {
        await admin.call('ACL', 'DELUSER', 'ada');
        admin.disconnect();
      });
      const wrong = using({ username: 'ada', password: 'hunter2' });
      expect(await trouble(wrong)).toMatch(
        /^redis fault Redis at \S+ refuses the user or the password: correct them in REDIS_URL/,
      );
    });
  });
});

describe('skills', () => {
  /** A directory of skills with this file. */
  function skillsDir(name: string, text: string): Record<string, string> {
    const directory = mkdtempSync(join(root, 'skills-'));
    mkdirSync(join(directory, 'own'));
    writeFileSync(join(directory, 'own', name), text);
    return { SKILLS_DIR: directory };
  }
  const definition = (fields = '') => `import { defineSkill } from 'skillwright';
    console.log('not a line of the doctor');
    export default defineSkill({
      category: 'own', name: 'one', version: 'v1.0', displayName: 'One', description: 'One.', ${fields}
      parameters: { type: 'object' }, output: { type: 'object' },
      async run() { return {}; },
    });`;

  test('that load are counted, with what they import', async () => {
    const { troubles, found } = await diagnose(skillsDir('one.ts', definition()));
    expect(troubles).toEqual([]);
    expect(found.find(({ check }) => check === 'skills')?.message).toMatch(/^1 skills? of .* load/);
  });

  test.each<[what: string, name: string, text: string, sentence: RegExp]>([
    [
      'with a syntax error',
      'one.ts',
      'export default {\n  ]',
      /one\.ts: cannot be loaded: .*\(line 2, column 3\)/,
    ],
    [
      'that throws',
      'one.ts',
      "const no = 1;\nthrow new Error('no paper');",
      /no paper \(line 2, column 7\)/,
    ],
    ['with an invalid field', 'one.ts', definition('timeoutMs: -1,'), /one\.ts: .*timeout/i],
    ['with an import that is not there', 'one.ts', "import 'left-pad';", /one\.ts: .*left-pad/],
    ['that ends its process', 'one.ts', 'process.exit(3);', /one\.ts ended the process/],
  ])('%s is named with file and reason', async (_what, name, text, sentence) => {
    const found = await trouble(skillsDir(name, text));
    expect(found).toMatch(/^skills fault .*: correct it; a start is refused until then$/);
    expect(found).toMatch(sentence);
  });

  test('that never loads is named after its own time, however long the thread takes to begin', async () => {
    const skills = skillsDir('one.ts', 'for (;;) {}');
    const found = await trouble({ ...skills, SKILL_LOAD_MS: '1000' });
    expect(found).toMatch(/one\.ts does not load within 1000 ms \(SKILL_LOAD_MS\): correct it/);
  });

  test('a SKILL.md that breaks a rule is left out, which is a warning', async () => {
    const found = await trouble(skillsDir('SKILL.md', 'no front matter'));
    expect(found).toMatch(
      /^skills warning .*SKILL\.md: .*: correct it; a start leaves this skill out/,
    );
  });
});

type Change = Partial<
  Record<'hostname' | 'password' | 'pathname' | 'port' | 'search' | 'username', string>
>;

function withChange(url: string, change: Change): string {
  return Object.assign(new URL(url), change).href;
}

/** A server that refuses every connection with this error of PostgreSQL; its port. */
async function refusing(code: string, message: string): Promise<number> {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`);
  const head = Buffer.alloc(5, 'E');
  head.writeInt32BE(fields.length + 4, 1);
  const server = createServer((socket) => {
    socket.once('data', () => socket.end(Buffer.concat([head, fields])));
    socket.on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}
