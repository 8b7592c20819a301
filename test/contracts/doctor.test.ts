/** `skillwright doctor` and `upgrade --check` on installations that are broken, each in one way. */
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openSqlite } from '../../src/adapters/database/sqlite.ts';
import { doctor } from '../../src/apps/cli/doctor.ts';
import type { Finding } from '../../src/apps/cli/findings/finding.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { cli, ioOf } from '../support/cli.ts';
import { migrateSqlite } from '../support/shared-servers.ts';

const root = mkdtempSync(join(tmpdir(), 'skillwright-doctor-'));
const sound = join(root, 'sound');
beforeAll(async () => {
  mkdirSync(sound);
  await migrateSqlite(sound);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A data directory as a first start makes it, with a change. */
let made = 0;
async function installation(damage: (dataDir: string) => void = () => {}): Promise<string> {
  made += 1;
  const dataDir = join(root, String(made));
  mkdirSync(dataDir);
  await migrateSqlite(dataDir);
  damage(dataDir);
  return dataDir;
}

/** As the platform has it that runs, until the end of the test. */
async function taken(dataDir: string): Promise<void> {
  const database = await openSqlite(dataDir, createLogger('silent'));
  onTestFinished(() => database.close());
}

function inDatabase(dataDir: string, statement: string): void {
  const database = new DatabaseSync(join(dataDir, 'skillwright.db'));
  database.exec(statement);
  database.close();
}

const gibibyte = 1024 ** 3;
interface Machine {
  readonly node?: string;
  readonly free?: number;
  readonly now?: number;
  readonly temporary?: string;
}

/** What doctor finds with this environment on this machine. */
async function findings(
  env: Record<string, string>,
  { node = '26.10.0', free = 100 * gibibyte, now = Date.now(), temporary = root }: Machine = {},
): Promise<Finding[]> {
  const { io, stdout } = ioOf({ env: { PORT: '0', ...env }, now: () => now });
  const runtime = { node, temporary, diskOf: () => ({ free, total: free * 2 }) };
  await doctor(io, io.env, '1.2.3', runtime, { json: true }).catch(() => {});
  return JSON.parse(stdout.text()).data;
}

const troubles = (found: readonly Finding[]) =>
  found.filter(({ state }) => state !== 'ok').map(({ check, state }) => `${check} ${state}`);

test('a sound installation has no faults, and ends with code 0', async () => {
  const { code, stdout, stderr } = await cli(['doctor'], { env: { PORT: '0', DATA_DIR: sound } });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('ok\tdatabase\tIt has the schema of this version\n');
});

type Broken = [
  what: string,
  trouble: string,
  remedy: RegExp,
  make: () => Promise<readonly [env: Record<string, string>, machine?: Machine]>,
];
const broken: Broken[] = [
  [
    'a setting that a start refuses',
    'configuration fault',
    /docs\/configuration\.md/,
    async () => [{ PORT: 'many' }],
  ],
  [
    'a misspelt setting',
    'configuration warning',
    /did you mean EXECUTORS\?/,
    async () => [{ EXECUTERS: '3', DATA_DIR: sound }],
  ],
  [
    'several settings that a start refuses, and what else is wrong, at once',
    'configuration fault, configuration fault, temporary fault, skills fault',
    /set TMPDIR/,
    async () => [
      { PORT: 'many', LOG_LEVEL: 'loud', SKILLS_DIR: join(root, 'none'), DATA_DIR: sound },
      { temporary: join(root, 'none') },
    ],
  ],
  [
    'a data directory that another process uses',
    'data fault',
    /stop it, or set DATA_DIR/,
    async () => {
      const dataDir = await installation();
      await taken(dataDir);
      return [{ DATA_DIR: dataDir }];
    },
  ],
  [
    'a lock that is damaged, and a secret that is a directory',
    'data fault, data fault',
    /delete it while no platform/,
    async () => {
      const dataDir = await installation((directory) => {
        writeFileSync(join(directory, 'skillwright.lock'), 'not a lock'.repeat(100));
        mkdirSync(join(directory, 'admin-secret'));
      });
      return [{ DATA_DIR: dataDir }];
    },
  ],
  [
    'a data directory below a file, with a space behind it',
    'configuration warning, data fault',
    /is it a part of the name/,
    async () => {
      const file = join(root, 'file');
      writeFileSync(file, '');
      return [{ DATA_DIR: `${file}/data ` }];
    },
  ],
  [
    'a provider of the default model that nothing is known of',
    'model fault',
    /did you mean openai\? Else set OPNAI_BASE_URL/,
    async () => [{ DATA_DIR: sound, DEFAULT_MODEL: 'opnai/gpt-5' }],
  ],
  [
    'a default model without credentials',
    'model warning',
    /set OPENAI_API_KEY/,
    async () => [{ DATA_DIR: sound, DEFAULT_MODEL: 'openai/gpt-5' }],
  ],
  [
    'a provider of vectors that nothing is known of',
    'model fault',
    /did you mean openai\?/,
    async () => [{ DATA_DIR: sound, EMBEDDING_MODEL: 'opnai/text-embedding-3-small' }],
  ],
  [
    'a provider that makes no vectors',
    'configuration fault',
    /docs\/configuration/,
    async () => [{ DATA_DIR: sound, EMBEDDING_MODEL: 'anthropic/claude-opus-4-5' }],
  ],
  [
    'a directory of skills that is not there',
    'skills fault',
    /create it/,
    async () => [{ SKILLS_DIR: join(root, 'none'), DATA_DIR: sound }],
  ],
  [
    'a Node that is too old',
    'runtime fault',
    /own Node/,
    async () => [{ DATA_DIR: sound }, { node: '20.1.0' }],
  ],
  [
    'a data directory that is a file',
    'data fault',
    /name another/,
    async () => {
      const file = join(root, 'file');
      writeFileSync(file, '');
      return [{ DATA_DIR: file }];
    },
  ],
  [
    'a secret that others can read',
    'data warning',
    /chmod 600/,
    async () => {
      const dataDir = await installation((directory) => {
        writeFileSync(join(directory, 'admin-secret'), 'a-secret-of-the-tests');
        chmodSync(join(directory, 'admin-secret'), 0o644);
      });
      return [{ DATA_DIR: dataDir }];
    },
  ],
  [
    'an encryption key that is damaged',
    'data fault',
    /restore it/,
    async () => {
      const dataDir = await installation((directory) => {
        writeFileSync(join(directory, 'encryption-key'), 'half', { mode: 0o600 });
      });
      return [{ DATA_DIR: dataDir }];
    },
  ],
  [
    'data that was moved into PostgreSQL',
    'data fault',
    /start with DATABASE_URL/,
    async () => {
      const dataDir = await installation((directory) => {
        const move = { id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11', into: 'db:5432/skillwright' };
        const times = { begun_at: '2026-01-01', finished_at: '2026-01-01' };
        writeFileSync(join(directory, 'moved-to-cluster'), JSON.stringify({ ...move, ...times }));
      });
      return [{ DATA_DIR: dataDir }];
    },
  ],
  [
    'a disk that is nearly full',
    'disk fault',
    /make room/,
    async () => [{ DATA_DIR: sound }, { free: 1_000 }],
  ],
  [
    'a database that is damaged',
    'database fault',
    /restore a backup/,
    async () => {
      const dataDir = join(root, 'damaged');
      mkdirSync(dataDir);
      writeFileSync(join(dataDir, 'skillwright.db'), 'not a database'.repeat(1_000));
      return [{ DATA_DIR: dataDir }];
    },
  ],
  [
    'a database that a newer version has used',
    'database fault',
    /run that version/,
    async () => {
      const dataDir = await installation((directory) =>
        inDatabase(directory, "insert into kysely_migration values ('9999-later', '2026')"),
      );
      return [{ DATA_DIR: dataDir }];
    },
  ],
  [
    'a clock that was set back',
    'clock fault',
    /set it/,
    async () => [{ DATA_DIR: sound }, { now: Date.UTC(2001, 0, 1) }],
  ],
  [
    'a PostgreSQL and a Redis that do not answer',
    'database fault, redis fault',
    /DATABASE_URL/,
    async () => [
      {
        DATABASE_URL: 'postgres://user:password@127.0.0.1:1/none',
        REDIS_URL: 'redis://127.0.0.1:1',
        ADMIN_SECRET: 'a-secret-of-the-tests',
      },
    ],
  ],
  [
    'an address of another machine',
    'port fault',
    /set HOST/,
    async () => [{ HOST: '192.0.2.1', DATA_DIR: sound }],
  ],
];

describe('doctor names', () => {
  test.each(broken)('%s', async (_what, trouble, remedy, make) => {
    const [env, machine] = await make();
    const found = await findings(env, machine);
    expect(troubles(found).join(', ')).toBe(trouble);
    expect(found.map((finding) => finding.remedy ?? '').join('\n')).toMatch(remedy);
    expect(JSON.stringify(found)).not.toContain('password');
  });

  test('a port that another program has, or a platform with another data directory', async () => {
    const other = createServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nhello'));
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const env = { DATA_DIR: sound, PORT: String((other.address() as AddressInfo).port) };
    expect(troubles(await findings(env))).toEqual(['port fault']);
    const health = (fields: object) => async () => Response.json({ status: 'ok', ...fields });
    const seen = async (fields: object) => {
      const { code, stdout } = await cli(['doctor'], { env, fetch: health(fields) });
      return `${code} ${/(ok|warning|fault)\t(port|version)\t.*/.exec(stdout)?.[0]}`;
    };
    expect(await seen({ version: '1.2.3' })).toMatch(/^1 fault\tport\t.* with another DATA_DIR:/);
    await taken(sound);
    expect(await seen({ version: '1.2.3' })).toMatch(/^0 ok\tport/);
    expect(await seen({ version: '1.2.2' })).toMatch(/^0 warning\tversion/);
    expect(await seen({ version: '1.2.3', status: 'unhealthy' })).toMatch(/^1 fault\tport/);
    // The platform of this data directory has another port.
    const socket = createServer().listen(join(sound, 'replace-4000.sock'));
    await once(socket, 'listening');
    expect(await seen({ version: '1.2.3' })).toMatch(/^1 fault\tport\t.* with another DATA_DIR:/);
    expect(troubles(await findings(env))).toEqual(['data fault', 'port fault']);
    socket.close();
    other.close();
  });
});

describe('upgrade --check', () => {
  test('runs missing migrations on a copy, which it removes', async () => {
    const dataDir = join(root, 'old');
    mkdirSync(dataDir);
    const database = new DatabaseSync(join(dataDir, 'skillwright.db'));
    database.exec('PRAGMA journal_mode = WAL');
    database.close();
    const { code, stdout } = await cli(['upgrade', '--check'], { env: { DATA_DIR: dataDir } });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^On a copy, \d+ migrations \(0001-.*\) ran in \d/);
    expect(readdirSync(dataDir).filter((name) => name.startsWith('upgrade-check'))).toEqual([]);
    const json = await cli(['upgrade', '--check', '--json'], { env: { DATA_DIR: dataDir } });
    expect(JSON.parse(json.stdout).missing.length).toBeGreaterThan(0);
  });

  test('says that nothing is to do, and refuses a database of a newer version', async () => {
    const upToDate = await cli(['upgrade', '--check'], { env: { DATA_DIR: sound } });
    expect(upToDate).toMatchObject({ code: 0, stdout: expect.stringContaining('has the schema') });
    const newer = await installation((directory) =>
      inDatabase(directory, "insert into kysely_migration values ('9999-later', '2026')"),
    );
    expect((await cli(['upgrade', '--check'], { env: { DATA_DIR: newer } })).code).toBe(1);
    expect((await cli(['upgrade'])).code).toBe(2);
  });
});
