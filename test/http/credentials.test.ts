import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { Credentials } from '../../src/core/credentials/credentials.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { Cipher } from '../../src/kernel/encryption.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { contextOf } from '../support/context.ts';
import { aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { hostileLimits, hostileOffsets } from '../support/hostile-pages.ts';
import { manualClock } from '../support/manual-clock.ts';
import { adminSecret, type Platform, startPlatform } from '../support/platform.ts';
import { spawnPlatform, startProcess } from '../support/process.ts';
import { freshRedis, isInstalled, migratedDatabase } from '../support/shared-servers.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

/** An organization of each test's own. */
let tenant: Tenant;
beforeEach(async () => {
  tenant = await newTenant(platform);
});

const apiKey = 'sk-of-the-provider-0123456789';
const baseUrl = 'https://gateway.example/v1';

const pathOf = (provider = '') =>
  `/admin/organizations/${tenant.organization}/credentials${provider && `/${provider}`}`;
const ofDefault = '/admin/organizations/default/credentials';
const put = (body: unknown, provider = 'openai') => platform.admin('PUT', pathOf(provider), body);
const list = (query = '') => platform.admin('GET', `${pathOf()}${query}`);
const remove = (provider = 'openai') => platform.admin('DELETE', pathOf(provider));

describe('PUT /admin/organizations/:organizationId/credentials/:provider', () => {
  test('answers 200 with the credentials, without the key', async () => {
    const answer = await put({ api_key: apiKey, base_url: baseUrl });

    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      organization_id: tenant.organization,
      provider: 'openai',
      base_url: baseUrl,
      protocol: null,
      has_api_key: true,
      created_at: aTimestamp,
      updated_at: aTimestamp,
    });
    expect(answer.text).not.toContain(apiKey);
  });

  test('a protocol is one that the platform speaks', async () => {
    const stored = await put({ base_url: baseUrl, protocol: 'messages' });
    expect(stored.body).toMatchObject({ protocol: 'messages' });

    const refused = await put({ base_url: baseUrl, protocol: 'grpc' });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('protocol');
    expect((await list()).body.data).toEqual([stored.body]);
  });

  test('replaces credentials as a whole: omitted fields and null are deleted', async () => {
    const first = (await put({ api_key: apiKey, base_url: baseUrl })).body;
    clock.advance(1);

    const keyAlone = (await put({ api_key: apiKey })).body;
    const urlAlone = (await put({ api_key: null, base_url: baseUrl })).body;

    expect(keyAlone).toMatchObject({ base_url: null, has_api_key: true });
    expect(urlAlone).toMatchObject({ base_url: baseUrl, has_api_key: false });
    expect(urlAlone.created_at).toBe(first.created_at);
    expect(urlAlone.updated_at > first.updated_at).toBe(true);
    expect((await list()).body.data).toEqual([urlAlone]);
  });

  test('accepts values of the maximum length', async () => {
    const longest = {
      api_key: '~'.repeat(4_096),
      base_url: `${baseUrl}/`.padEnd(2_048, 'x'),
    };

    expect((await put(longest, 'a'.repeat(63))).status).toBe(200);
    expect((await put({ api_key: '!' })).status).toBe(200);
    expect((await put({ api_key: 'two words' })).status).toBe(400);
    expect((await put({ base_url: 'http://127.0.0.1:11434/v1' }, 'ollama')).status).toBe(200);
  });

  const wrong: [string, unknown[]][] = [
    [
      'api_key',
      [
        ...['', ' ', ` ${apiKey}`, `${apiKey} `, `${apiKey}\n`, 'a\tb', 'ü', '🔑', '\u007f'],
        ...['x'.repeat(4_097), 1, true, [], {}, [apiKey]],
      ],
    ],
    [
      'base_url',
      [
        ...['', ' ', 'gateway.example', '/v1', 'ftp://gateway.example', 'https://', 1, [], {}],
        ...[`${baseUrl}#`, `${baseUrl}?a=1`, 'https://me:secret@gateway.example', `${baseUrl} `],
        `${baseUrl}/`.padEnd(2_049, 'x'),
      ],
    ],
  ];

  test.each(wrong)(
    '%s of a wrong type, form or size is refused and named',
    async (field, values) => {
      for (const value of values) {
        const other = field === 'api_key' ? { base_url: baseUrl } : { api_key: apiKey };
        const answer = await put({ ...other, [field]: value });

        expectInvalid(answer, field);
        expect(answer.text).not.toContain(apiKey);
      }
      expect((await list()).body.total).toBe(0);
    },
  );

  test.each([{}, { api_key: null }, { base_url: null }, { api_key: null, base_url: null }])(
    'a body that names neither a key nor a url is refused: %j',
    async (body) => {
      expectInvalid(await put(body), 'api_key');
    },
  );

  test.each(['provider', 'organization_id', 'has_api_key', 'apiKey', 'foo'])(
    'an unknown field is refused and named: %s',
    async (field) => {
      expectInvalid(await put({ api_key: apiKey, [field]: 'x' }), field);
    },
  );

  test.each([undefined, '', '[]', '"x"', 'null', '{', '{"api_key":"a"'])(
    'a body that is no JSON object is refused: %j',
    async (body) => {
      expectRefusal(await put(body), 400, 'validation_error');
    },
  );

  test('a body that is not JSON is 415, one that is too large 413', async () => {
    const headers = { 'x-admin-secret': adminSecret };
    const text = { headers: { ...headers, 'content-type': 'text/plain' }, body: 'x' };
    const large = { headers, body: { api_key: 'x'.repeat(1_100_000) } };

    const answers = [
      await platform.request('PUT', pathOf('openai'), text),
      await platform.request('PUT', pathOf('openai'), large),
    ];

    expectRefusal(answers[0]!, 415, 'unsupported_media_type');
    expectRefusal(answers[1]!, 413, 'payload_too_large');
  });

  test.each([
    'OpenAI',
    'open_ai',
    '-openai',
    '1openai',
    'open%20ai',
    '%C3%A9',
    'a%2Fb',
    'a'.repeat(64),
  ])('a provider that is no lower-case name is refused: %s', async (provider) => {
    expectInvalid(await put({ api_key: apiKey }, provider), 'provider');
  });

  test('50 at once for one provider leave one', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => put({ api_key: `key-${i}` })),
    );

    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await list()).body.total).toBe(1);
  });
});

describe('GET /admin/organizations/:organizationId/credentials', () => {
  test('is {data, total, limit, offset}, newest first, without any key', async () => {
    for (const provider of ['b', 'c', 'a']) {
      clock.advance(1);
      await put({ api_key: apiKey }, provider);
    }
    const page = async (query: string) => {
      const { status, body, text } = await list(query);
      expect(status).toBe(200);
      expect(text).not.toContain(apiKey);
      const { data, ...rest } = body;
      return [...data.map((one: { provider: string }) => one.provider), rest];
    };

    expect(await page('')).toEqual(['a', 'c', 'b', { total: 3, limit: 50, offset: 0 }]);
    expect(await page('?limit=1&offset=1')).toEqual(['c', { total: 3, limit: 1, offset: 1 }]);
    expect(await page('?offset=3')).toEqual([{ total: 3, limit: 50, offset: 3 }]);
  });

  test.each([...hostileLimits, 'limit=201'])('%s is 400', async (query) => {
    expectInvalid(await list(`?${query}`), 'limit');
  });

  test.each(hostileOffsets)('%s is 400', async (query) => {
    expectInvalid(await list(`?${query}`), 'offset');
  });

  test('shows the credentials of that organization alone', async () => {
    await put({ api_key: apiKey });
    const other = await newTenant(platform);

    const { body } = await platform.admin(
      'GET',
      `/admin/organizations/${other.organization}/credentials`,
    );

    expect(body.data).toEqual([]);
  });
});

describe('DELETE /admin/organizations/:organizationId/credentials/:provider', () => {
  test('answers 204, and 404 when they no longer exist', async () => {
    await put({ api_key: apiKey });

    const { status, text } = await remove();

    expect([status, text]).toEqual([204, '']);
    expect((await list()).body.total).toBe(0);
    expectRefusal(await remove(), 404, 'not_found');
  });

  test('leaves those for other providers', async () => {
    await put({ api_key: apiKey }, 'anthropic');
    await put({ api_key: apiKey }, 'openai');

    await remove('openai');

    expect((await list()).body.data).toMatchObject([{ provider: 'anthropic' }]);
  });

  test.each(['anthropic', 'OpenAI', '%F0%9F%94%91', '..%2Fopenai', "'", 'x'.repeat(5_000)])(
    'an unknown provider is 404, with any body: %s',
    async (provider) => {
      expectRefusal(await remove(provider), 404, 'not_found');
      const { body } = await platform.admin('DELETE', pathOf(provider), { a: 1 });
      expect(body.error).toBe('not_found');
    },
  );
});

describe('an unknown organization', () => {
  test.each(['nobody', 'Default', 'default%20', '%F0%9F%94%91', "'", 'x'.repeat(5_000)])(
    'is 404 before anything else is judged: %s',
    async (organization) => {
      const path = `/admin/organizations/${organization}/credentials`;

      const answers = [
        await platform.admin('GET', path),
        await platform.admin('GET', `${path}?limit=0`),
        await platform.admin('PUT', `${path}/openai`, { api_key: apiKey }),
        await platform.admin('PUT', `${path}/OpenAI`, '{'),
        await platform.admin('DELETE', `${path}/openai`),
      ];

      for (const answer of answers) expectRefusal(answer, 404, 'not_found');
    },
  );
});

describe('without the admin secret', () => {
  test.each([
    ['GET', ''],
    ['PUT', '/openai'],
    ['DELETE', '/openai'],
  ])('%s is 401, for an unknown organization too', async (method, end) => {
    await put({ api_key: apiKey });
    for (const organization of [tenant.organization, 'nobody']) {
      const path = `/admin/organizations/${organization}/credentials${end}`;
      const ask = (headers: Record<string, string>) =>
        platform.request(method, path, { headers, ...(method === 'PUT' ? { body: '{' } : {}) });

      expectRefusal(await ask({}), 401, 'authentication_required');
      expectRefusal(await ask({ 'x-api-key': tenant.key }), 401, 'authentication_required');
      expectRefusal(await ask({ 'x-admin-secret': 'wrong' }), 401, 'invalid_admin_secret');
      expectRefusal(
        await ask({ authorization: `Bearer ${tenant.key}` }),
        401,
        'invalid_admin_secret',
      );
    }
    expect((await list()).body.total).toBe(1);
  });
});

test('another method is 405', async () => {
  expectRefusal(await platform.admin('POST', pathOf(), {}), 405, 'method_not_allowed');
  expectRefusal(await platform.admin('GET', pathOf('openai')), 405, 'method_not_allowed');
});

describe('the encryption key', () => {
  /** A data directory of the test's own. */
  function dataDirectory(): string {
    const directory = mkdtempSync(join(tmpdir(), 'skillwright-credentials-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    return directory;
  }

  const quiet = { EXECUTORS: '1', LOG_LEVEL: 'trace' };

  test('is made at the first start with mode 0600, kept over restarts, and never shown; no file holds an API key', async () => {
    const dataDir = dataDirectory();
    const file = join(dataDir, 'encryption-key');
    const filesWith = (text: string) =>
      readdirSync(dataDir, { withFileTypes: true })
        .filter((entry) => entry.isFile() && readFileSync(join(dataDir, entry.name)).includes(text))
        .map(({ name }) => name);

    const first = await startProcess(dataDir, quiet);
    await first.key();
    const stored = await first.admin('PUT', `${ofDefault}/openai`, { api_key: apiKey });
    await first.admin('PUT', `${ofDefault}/openai`, `{"api_key":"${apiKey}",`);
    await first.admin('PUT', `${ofDefault}/${apiKey}`, { api_key: `${apiKey}\n` });
    const key = readFileSync(file, 'utf8').trim();
    const mode = statSync(file).mode & 0o777;
    const whileItRuns = filesWith(apiKey);
    await first.stop();
    const second = await startProcess(dataDir, quiet);
    const listed = await second.admin('GET', ofDefault);
    const metrics = (await second.request('GET', '/metrics')).text;
    await second.stop();

    expect(stored.status).toBe(200);
    expect(listed.body.data).toEqual([stored.body]);
    expect(mode).toBe(0o600);
    expect(readFileSync(file, 'utf8').trim()).toBe(key);
    expect(filesWith(key)).toEqual(['encryption-key']);
    expect([whileItRuns, filesWith(apiKey)]).toEqual([[], []]);
    for (const output of [first.output(), second.output(), metrics]) {
      expect(output).not.toContain(key);
      expect(output).not.toContain(apiKey);
    }
  });

  test('that is no key stops the start with a sentence that does not show it', async () => {
    const { exit, output } = spawnPlatform({
      DATA_DIR: dataDirectory(),
      ENCRYPTION_KEY: 'my-weak-passphrase',
    });

    expect((await exit).code).toBe(1);
    expect(output()).toContain('ENCRYPTION_KEY');
    expect(output()).toContain('32 random bytes as 64 hex digits or as base64');
    expect(output()).not.toContain('my-weak-passphrase');
  });

  test('of the file is the one that API keys are encrypted with', async () => {
    await put({ api_key: apiKey });
    const key = readFileSync(join(platform.dataDir, 'encryption-key'), 'utf8').trim();

    expect(await keyIn(platform, Buffer.from(key, 'hex'), tenant.organization)).toBe(apiKey);
  });
});

describe.skipIf(!(await isInstalled('PostgreSQL')))('the encryption key with DATABASE_URL', () => {
  async function startClustered(environment: Record<string, string> = {}): Promise<Platform> {
    const clustered = await startPlatform({
      environment: { DATABASE_URL: await migratedDatabase(), ...environment },
      skillsDirs: [],
    });
    onTestFinished(() => clustered.stop());
    await clustered.key();
    return clustered;
  }

  test('is the one that is set', async () => {
    const key = Buffer.alloc(32, 7);
    const clustered = await startClustered({ ENCRYPTION_KEY: key.toString('base64') });

    const { status } = await clustered.admin('PUT', `${ofDefault}/openai`, { api_key: apiKey });

    expect(status).toBe(200);
    expect(await keyIn(clustered, key, 'default')).toBe(apiKey);
    expect(existsSync(join(clustered.dataDir, 'encryption-key'))).toBe(false);
  });

  test('encrypts signing secrets only once no process of an older version is left', async () => {
    const environment = { DATABASE_URL: await migratedDatabase(), REDIS_URL: await freshRedis() };
    const database = await openPostgres(environment.DATABASE_URL, createLogger('silent'));
    onTestFinished(() => database.close());
    // It announces no capabilities, and its version number is the same.
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    await database.write((tx) =>
      sql`insert into processes (id, roles, version, skills, started_at, seen_at, last_claim_at)
        values (${newId()}, '["api"]', ${version}, '[]', 0, ${Date.now() + 3_600_000}, 0)`.execute(
        tx.kysely,
      ),
    );
    const clustered = await startClustered({ ...environment, ENCRYPTION_KEY: 'ab'.repeat(32) });
    const key = await clustered.key();
    const ask = (method: string, path: string, body: unknown) =>
      clustered.request(method, `/api/agent-webhooks${path}`, { key, body });
    const sealed = async () => {
      const { rows } = await sql<{ secret_sealed: number }>`
        select secret_sealed from webhooks`.execute(database.read.kysely);
      return rows.map((row) => row.secret_sealed);
    };
    const url = 'https://hooks.example.com';

    const { body } = await ask('POST', '', { agent_id: 'default', url, events: ['agent.error'] });
    expect(await sealed()).toEqual([0]);
    await database.write((tx) =>
      tx.kysely.deleteFrom('processes').where('started_at', '=', 0).execute(),
    );
    const isEncrypted = async () => {
      await ask('PUT', `/${body.id}`, { secret: 'another-secret-of-the-receiver' });
      return (await sealed())[0] === 1;
    };
    await waitFor(isEncrypted, { describe: 'a new secret is encrypted' });
  });

  test('is absent without a setting: API keys are refused with 409, and everything else works', async () => {
    const clustered = await startClustered();

    const refused = await clustered.admin('PUT', `${ofDefault}/openai`, { api_key: apiKey });
    const taken = await clustered.admin('PUT', `${ofDefault}/ollama`, { base_url: baseUrl });

    expectRefusal(refused, 409, 'conflict');
    expect(refused.body.message).toContain('set ENCRYPTION_KEY');
    expect(taken.status).toBe(200);
    expect((await clustered.admin('GET', ofDefault)).body.total).toBe(1);
    expect(existsSync(join(clustered.dataDir, 'encryption-key'))).toBe(false);
  });
});

/** The API key that a platform has stored for openai, decrypted with the encryption key. */
async function keyIn(on: Platform, key: Buffer, organization: string) {
  const credentials = new Credentials(
    contextOf({ database: on.database, clock: systemClock }),
    new Cipher(key),
  );
  const settings = await credentials.settingsOf(organization, 'openai');
  return settings && 'apiKey' in settings ? settings.apiKey : settings;
}
