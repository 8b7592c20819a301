/**
 * A database of each earlier version of the schema, with something of everything in it, is migrated by this program,
 * read over its API, and worked on. `UPGRADE_DUMP=write` makes the dumps of the present schema instead, before a version
 * is released or where a new kind of data is to be in them, and names them as those of the version of package.json.
 */
import { createHash, createHmac } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { knownMigrations } from '../../src/adapters/database/migrate.ts';
import type { Finding } from '../../src/apps/cli/findings/finding.ts';
import { runningVersion } from '../../src/core/config/version.ts';
import { cli } from '../support/cli.ts';
import { engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';
import {
  dumps,
  type Facts,
  isWhole,
  readFacts,
  recordRelease,
  releasedDumps,
  restoreDump,
  writeDump,
} from '../support/upgrade-dumps.ts';
import { fillUpgradeWorld, secrets, startUpgradeWorld } from '../support/upgrade-world.ts';
import { waitFor } from '../support/wait-for.ts';
import { expectSigned } from '../support/webhooks.ts';

const isWriting = process.env['UPGRADE_DUMP'] === 'write';
const all = await engines();
const minute = 60_000;
const day = 24 * 60 * minute;
const support = { 'x-agent-id': 'support' };

/** Tables without rows at rest. */
const emptyAtRest: Record<string, string> = {
  write_probes: 'a probe of the disk is deleted at once',
};
/** The tables of files. */
const ofFiles = ['file_blobs', 'file_garbage', 'file_totals', 'files'] as const;
/** The tables of kept prompts. */
const ofPrompts = ['prompt_settings', 'prompt_totals', 'prompts'] as const;
/** Tables that came after a dump was made. */
const laterThan: Record<string, readonly string[]> = {
  '0022-calls-within-calls': [...ofFiles, 'profiles', ...ofPrompts, 'provider_paces'],
  '0071-keys-of-jobs': [
    'batches',
    ...ofFiles,
    'gate_settings',
    'gates',
    'job_keys',
    'places',
    'profiles',
    ...ofPrompts,
    'provider_paces',
    'rate_starts',
    'timed_pauses',
  ],
};

/** An answer without what earlier versions said where a field of ours was not set. */
function withoutUnset(answer: unknown): unknown {
  const text = JSON.stringify(answer, (name, value) => {
    const isUnset = value === null || (Array.isArray(value) && value.length === 0);
    return ['priority', 'forked_from', 'files'].includes(name) && isUnset ? undefined : value;
  });
  return JSON.parse(text);
}

describe.runIf(isWriting).each(all)('on $name', (engine) => {
  test('a dump of the present schema is made', async () => {
    const place = await engine.place();
    const database = await place.open();
    const filled = await fillUpgradeWorld(await startUpgradeWorld(database));
    expect(await emptyTables(database)).toEqual([]);
    const facts: Facts = { ...filled, madeAt: Date.now() };
    const present = knownMigrations.at(-1) as string;
    await writeDump(present, engine.name, place.at, facts);
    recordRelease(runningVersion().replace(/\+.*/, ''), present);
  });
});

const cases = all.flatMap((engine) => dumps.map((dump) => ({ engine, dump, name: engine.name })));

describe.skipIf(isWriting).each(cases)('a database on $name of $dump', ({ engine, dump, name }) => {
  /** The database after this program has migrated it. */
  async function restored() {
    const place = await engine.emptyPlace();
    await restoreDump(dump, name, place.at);
    return { database: await place.open(), facts: readFacts(dump, name) };
  }

  /** A platform on it, at the moment of the dump. */
  async function started() {
    const { database, facts } = await restored();
    const clock = manualClock(new Date(facts.madeAt).toISOString());
    const world = await startUpgradeWorld(database, clock);
    const { key } = facts;
    const request = (method: string, path: string, body?: unknown) =>
      world.platform.request(method, path, { key, body });
    const jobIn = (id: string | undefined, status: string) =>
      world.platform.jobIn(key, id ?? '', status);
    return { ...world, clock, facts, request, jobIn };
  }

  test('is migrated, and has rows in every table', async () => {
    const { database } = await restored();
    expect(await emptyTables(database)).toEqual(laterThan[dump] ?? []);
    const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(
      database.read.kysely,
    );
    expect(rows.map((row) => row.name).sort()).toEqual(knownMigrations);
  });

  test('is tried on a copy, and is of an earlier version for the command line, before its first start', async () => {
    const place = await engine.emptyPlace();
    await restoreDump(dump, name, place.at);
    const env = name === 'SQLite' ? { DATA_DIR: place.at } : { DATABASE_URL: place.at };
    const tried = await cli(['upgrade', '--check', '--json'], { env });
    expect(tried.code, tried.stderr).toBe(0);
    expect(JSON.parse(tried.stdout).missing).not.toContain('0001-schema');

    const doctor = await cli(['doctor', '--json'], { env });
    const { data } = JSON.parse(doctor.stdout) as { data: Finding[] };
    const messages = data.filter(({ check }) => check === 'database').map((one) => one.message);
    expect(messages).toContainEqual(
      expect.stringMatching(/^(The next start runs|It has the schema)/),
    );
  });

  test('has the schema of a new installation', async () => {
    const { database } = await restored();
    const fresh = await engine.fresh();
    expect(await schemaOf(database, name)).toEqual(await schemaOf(fresh, name));
  });

  test('is shown by the API as it was', async () => {
    const { platform, request, facts } = await started();
    for (const [path, answer] of Object.entries(facts.answers)) {
      const { body } = path.startsWith('/admin/')
        ? await platform.admin('GET', path)
        : await request('GET', path);
      expect({ path, body }).toMatchObject({ path, body: withoutUnset(answer) });
    }
  });

  test('knows its keys, sessions and secrets', async () => {
    const { platform, provider, receiver, facts, request } = await started();
    const revoked = await platform.request('GET', '/api/jobs', { key: facts.revokedKey });
    expect(revoked.status).toBe(401);
    const session = await platform.request('GET', '/console/session', {
      headers: { 'x-skillwright-console': '1', cookie: facts.cookie },
    });
    expect(session.body, session.text).toMatchObject({ kind: 'administrator' });

    const kept = await platform.run(facts.key, 'upgrade/v1.0/keeper', {});
    const key_sha256 = createHash('sha256').update(secrets.setting).digest('hex');
    expect(kept.body.output).toEqual({ key_sha256, region: 'us' });

    await platform.run(facts.key, 'agent/v1.0/run-task', { task: 'Hello?' }, support);
    expect(provider.requests[0]?.headers['authorization']).toBe(`Bearer ${secrets.credential}`);

    const { id, secret } = facts.webhook;
    const webhook = `/api/agent-webhooks/${id}`;
    await request('PUT', webhook, { url: `${receiver.origin}/again` });
    await request('POST', `${webhook}/test`);
    const delivery = await receiver.receivedWhere(({ json }) => json.event === 'skill.completed');
    expectSigned(delivery, secret);

    const body = JSON.stringify({ message: 'Hello' });
    const signature = createHmac('sha256', secrets.signing).update(body).digest('hex');
    const called = await platform.request('POST', facts.triggerPath, {
      body,
      headers: { 'x-hub-signature-256': `sha256=${signature}` },
    });
    expect(called.status, called.text).toBe(202);
  });

  test('has its queued jobs run, and those that were interrupted', async () => {
    const { clock, facts, jobIn } = await started();
    for (const id of facts.queued) await jobIn(id, 'completed');
    clock.advance(minute);
    for (const id of facts.active) await jobIn(id, 'completed');
    await jobIn(facts.leftId, 'cancelled');
  });

  test('has its waiting jobs go on', async () => {
    const { clock, facts, jobIn, request } = await started();
    const { waiting } = facts;
    await request('POST', '/api/events', { event: 'order.paid', key: 'desk', data: { total: 3 } });
    await request('POST', `/api/approvals/${facts.approvalId}/approve`);
    const outputOf = async (id: string | undefined) => (await jobIn(id, 'completed')).body.output;
    expect(await outputOf(waiting['event'])).toEqual({
      reserved: 'desk is reserved',
      waited: { total: 3 },
      sent: 'desk is sent',
    });
    expect(await outputOf(waiting['approve'])).toMatchObject({ waited: true });
    clock.advance(day);
    expect(await outputOf(waiting['sleep'])).toMatchObject({ waited: null, sent: 'bed is sent' });
    expect(await outputOf(waiting['run'])).toMatchObject({
      waited: { sent: 'label of shelf is sent' },
    });
  });

  test('has its schedule fire in its time zone, and its delivery tried again', async () => {
    const { clock, facts, receiver, request } = await started();
    const webhook = `/api/agent-webhooks/${facts.webhook.id}`;
    await request('PUT', webhook, { url: `${receiver.origin}/again` });
    const schedule = `/api/scheduled-jobs/${facts.scheduleId}`;
    const { next_run_at } = (await request('GET', schedule)).body;
    const local = { timeZone: 'Europe/Berlin', hour: '2-digit', minute: '2-digit' } as const;
    expect(new Date(next_run_at).toLocaleTimeString('de', local)).toBe('09:30');

    clock.advance(Date.parse(next_run_at) - clock.now());

    const shown = await waitFor(
      async () => {
        const { body } = await request('GET', schedule);
        return body.last_run_at === next_run_at && body.last_run_status === 'completed';
      },
      { describe: 'the schedule has fired' },
    );
    expect(shown).toBe(true);
    // A dump may have been made less than the delay of a delivery before that time of day.
    clock.advance(60 * minute);
    const pending = await waitFor(
      async () => {
        const path = `${webhook}/deliveries/${facts.pendingDeliveryId}`;
        const { body } = await request('GET', path);
        return body.status === 'delivered' ? body : null;
      },
      { describe: 'the delivery has arrived' },
    );
    expect(pending.attempts).toHaveLength(2);
  });
});

test.skipIf(isWriting)('there are dumps', () => {
  expect(dumps).not.toEqual([]);
});

test.skipIf(isWriting)('the dump of each release is whole', () => {
  const missing = Object.entries(releasedDumps()).filter(([, dump]) => !isWhole(dump));
  expect(missing).toEqual([]);
});

/** The tables that have no row, but for those without rows at rest. */
async function emptyTables({ read }: Database): Promise<string[]> {
  const tables = await read.kysely.introspection.getTables();
  const names = tables
    .map(({ name }) => name)
    .filter((name) => !/^(sqlite|kysely)_|^memory_index_/.test(name) && !(name in emptyAtRest));
  const empty: string[] = [];
  for (const name of names) {
    const { rows } = await sql`select 1 from ${sql.table(name)} limit 1`.execute(read.kysely);
    if (rows.length === 0) empty.push(name);
  }
  return empty;
}

/** Tables with their columns, indexes and functions, in words that do not depend on how they were written. */
async function schemaOf(database: Database, engine: string): Promise<unknown[]> {
  const { rows } =
    engine === 'SQLite'
      ? await sql<{ text: string }>`
          select replace(replace(lower(name || ' ' || coalesce(sql, '')), '"', ''), 'not null default 0', 'default 0 not null')
            as text from sqlite_schema where name not like 'sqlite_%'`.execute(database.read.kysely)
      : await sql<{ text: string }>`
          select concat_ws(' ', table_name, column_name, data_type, column_default, is_nullable,
            generation_expression) as text from information_schema.columns where table_schema = current_schema()
          union all select indexdef from pg_indexes where schemaname = current_schema()
          union all select pg_get_functiondef(oid) from pg_proc
            where pronamespace = current_schema()::regnamespace`.execute(database.read.kysely);
  const spaced = (text: string) => text.replaceAll(/\s+/g, ' ').replaceAll(/ ?([(),]) ?/g, '$1');
  return rows.map(({ text }) => spaced(text)).sort();
}
