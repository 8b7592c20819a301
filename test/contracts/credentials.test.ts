/** Credentials of providers on every database. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import type { ModelError } from '../../src/adapters/models/model.ts';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { ApiKeys } from '../../src/core/api-keys/api-keys.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { Credentials } from '../../src/core/credentials/credentials.ts';
import { Cipher } from '../../src/kernel/encryption.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';

const second = 1_000;
const page = { limit: 50, offset: 0 };
const apiKey = 'sk-of-the-provider-0123456789';
/** What settings of an organization have beside its key and address. */
const others = { protocol: null, source: 'organization' };
const baseUrl = 'https://gateway.example/v1';
/** The platform's own account with openai. */
const platform = { apiKey: 'sk-of-the-platform', baseUrl: 'https://platform.example/v1' };

/** All that the table holds, as text. */
async function storedIn(database: Database): Promise<string> {
  return JSON.stringify(await database.read.kysely.selectFrom('credentials').selectAll().execute());
}

function sealedIn(database: Database, organizationId: string) {
  return database.read.kysely
    .selectFrom('credentials')
    .select(['api_key', 'base_url'])
    .where('organization_id', '=', organizationId)
    .executeTakeFirstOrThrow();
}

/** Changes rows of an organization as an attacker with write access to the database would. */
async function tamper(
  database: Database,
  organizationId: string,
  change: { provider?: string; api_key?: string; base_url?: string | null },
): Promise<void> {
  await database.write((tx) =>
    tx.kysely
      .updateTable('credentials')
      .set(change)
      .where('organization_id', '=', organizationId)
      .execute(),
  );
}

describe.each(await engines())('on $name', (engine) => {
  /** Two processes that share a database and a key; on SQLite two sets of verbs in one. */
  async function world() {
    const clock = manualClock();
    const place = await engine.emptiedPlace();
    const database = await place.open();
    const other = engine.name === 'SQLite' ? database : await place.open();
    const key = randomBytes(32);
    const { agents } = composeAgents(contextOf({ database, clock }));
    const apiKeys = new ApiKeys(contextOf({ database, clock }), agents);
    for (const organization_id of ['acme', 'globex']) {
      await apiKeys.issue({ client_name: 'a client', scopes: ['*'], organization_id });
    }
    const config = { ...readConfig({}), providers: new Map([['openai', platform]]) };
    const processWith = (cipher: Cipher | null, on = database) =>
      new Credentials(contextOf({ database: on, clock, config }), cipher);
    return {
      clock,
      database,
      processWith,
      credentials: processWith(new Cipher(key)),
      elsewhere: processWith(new Cipher(Buffer.from(key)), other),
    };
  }

  test('credentials are stored, shown without the key, and read decrypted', async () => {
    const { credentials, elsewhere, clock } = await world();
    const now = new Date(clock.now()).toISOString();

    const stored = await credentials.replace('acme', 'openai', {
      api_key: apiKey,
      base_url: baseUrl,
    });

    expect(stored).toEqual({
      organization_id: 'acme',
      provider: 'openai',
      base_url: baseUrl,
      protocol: null,
      has_api_key: true,
      created_at: now,
      updated_at: now,
    });
    expect(await credentials.list('acme', page)).toEqual({ credentials: [stored], total: 1 });
    expect(await credentials.settingsOf('acme', 'openai')).toEqual({ apiKey, baseUrl, ...others });
    expect(await elsewhere.settingsOf('acme', 'openai')).toEqual({ apiKey, baseUrl, ...others });
  });

  test('the key is in no row, in no encoding, and two equal keys are stored differently', async () => {
    const { credentials, database } = await world();
    await credentials.replace('acme', 'openai', { api_key: apiKey });
    const first = await sealedIn(database, 'acme');
    await credentials.replace('acme', 'openai', { api_key: apiKey });
    const second = await sealedIn(database, 'acme');

    expect(first.api_key).toMatch(/^v1\.[\w-]+$/);
    expect(second.api_key).not.toBe(first.api_key);
    const stored = await storedIn(database);
    for (const encoding of ['utf8', 'hex', 'base64', 'base64url'] as const) {
      const text = Buffer.from(apiKey).toString(encoding).replace(/=+$/, '');
      expect(stored).not.toContain(text);
    }
  });

  test('storing again replaces all but created_at, and deletes omitted fields', async () => {
    const { credentials, clock } = await world();
    const first = await credentials.replace('acme', 'openai', {
      api_key: apiKey,
      base_url: baseUrl,
    });
    clock.advance(second);

    const other = await credentials.replace('acme', 'openai', { api_key: 'another' });

    expect(other).toEqual({
      ...first,
      base_url: null,
      updated_at: new Date(clock.now()).toISOString(),
    });
    expect(await credentials.settingsOf('acme', 'openai')).toEqual({
      apiKey: 'another',
      baseUrl: null,
      ...others,
    });
    const withoutKey = await credentials.replace('acme', 'openai', { base_url: baseUrl });
    expect(withoutKey.has_api_key).toBe(false);
    expect(await credentials.settingsOf('acme', 'openai')).toEqual({
      apiKey: null,
      baseUrl,
      ...others,
    });
    expect((await credentials.list('acme', page)).total).toBe(1);
  });

  test('20 simultaneous writes for one provider store one row', async () => {
    const { credentials, elsewhere } = await world();

    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? credentials : elsewhere).replace('acme', 'openai', { api_key: `key-${i}` }),
      ),
    );

    expect((await credentials.list('acme', page)).total).toBe(1);
    expect(await credentials.settingsOf('acme', 'openai')).toEqual({
      apiKey: expect.stringMatching(/^key-\d+$/),
      baseUrl: null,
      ...others,
    });
  });

  test('they are listed newest first, page by page, of one organization', async () => {
    const { credentials, clock } = await world();
    for (const provider of ['b', 'c', 'a']) {
      clock.advance(1);
      await credentials.replace('acme', provider, { api_key: apiKey });
    }
    await credentials.replace('globex', 'theirs', { api_key: apiKey });
    const providers = async (limit: number, offset: number) => {
      const { credentials: listed, total } = await credentials.list('acme', { limit, offset });
      return [...listed.map(({ provider }) => provider), total];
    };

    expect(await providers(50, 0)).toEqual(['a', 'c', 'b', 3]);
    expect(await providers(1, 1)).toEqual(['c', 3]);
    expect(await providers(50, 3)).toEqual([3]);
  });

  test('an organization has only its own, and only of the provider that is asked for', async () => {
    const { credentials } = await world();
    await credentials.replace('acme', 'openai', { api_key: apiKey });

    expect(await credentials.settingsOf('globex', 'openai')).toBeUndefined();
    expect(await credentials.settingsOf('acme', 'anthropic')).toBeUndefined();
    await expect(credentials.remove('globex', 'openai')).rejects.toMatchObject({
      code: 'not_found',
    });
    await expect(credentials.find('globex', 'openai')).rejects.toMatchObject({ code: 'not_found' });
    expect(await credentials.settingsOf('acme', 'openai')).toEqual({
      apiKey,
      baseUrl: null,
      ...others,
    });
  });

  test('an unknown organization is not found', async () => {
    const { credentials } = await world();

    await credentials.requireOrganization('acme');
    for (const unknown of ['nobody', 'Acme', '', 'acme ', 'é'.repeat(5_000)]) {
      await expect(credentials.requireOrganization(unknown)).rejects.toMatchObject({
        code: 'not_found',
        message: 'Organization not found',
      });
    }
  });

  test('deleted credentials are not found, also by a second deletion', async () => {
    const { credentials, database } = await world();
    await credentials.replace('acme', 'openai', { api_key: apiKey });
    await credentials.settingsOf('acme', 'openai');

    await credentials.remove('acme', 'openai');

    expect(await credentials.settingsOf('acme', 'openai')).toBeUndefined();
    expect(await storedIn(database)).toBe('[]');
    await expect(credentials.remove('acme', 'openai')).rejects.toMatchObject({
      code: 'not_found',
      message: 'Credentials not found',
    });
  });

  test('a change applies here at once, in other processes within a second', async () => {
    const { credentials, elsewhere, clock } = await world();
    const seen = async () =>
      Promise.all(
        [credentials, elsewhere].map(async (one) => {
          const settings = await one.settingsOf('acme', 'openai');
          return settings && 'apiKey' in settings ? settings.apiKey : settings;
        }),
      );
    expect(await seen()).toEqual([undefined, undefined]);

    await credentials.replace('acme', 'openai', { api_key: 'first' });
    expect(await seen()).toEqual(['first', undefined]);
    clock.advance(second);
    expect(await seen()).toEqual(['first', 'first']);

    await credentials.replace('acme', 'openai', { api_key: 'second' });
    expect(await seen()).toEqual(['second', 'first']);
    clock.advance(second);
    expect(await seen()).toEqual(['second', 'second']);

    await credentials.remove('acme', 'openai');
    expect(await seen()).toEqual([undefined, 'second']);
    clock.advance(second);
    expect(await seen()).toEqual([undefined, undefined]);
  });

  test('under another encryption key they are listed but not usable, until they are stored again', async () => {
    const { credentials, processWith } = await world();
    await credentials.replace('acme', 'openai', { api_key: apiKey, base_url: baseUrl });
    const after = processWith(new Cipher(randomBytes(32)));

    expect(await after.settingsOf('acme', 'openai')).toEqual({
      fault:
        'The stored API key for openai cannot be decrypted: it was stored under another ENCRYPTION_KEY; store it again',
    });
    expect((await after.list('acme', page)).credentials).toMatchObject([{ has_api_key: true }]);
    expect(await after.countUnusable()).toBe(1);

    await after.replace('acme', 'openai', { api_key: 'again' });
    expect(await after.settingsOf('acme', 'openai')).toEqual({
      apiKey: 'again',
      baseUrl: null,
      ...others,
    });
  });

  test('without an encryption key no API key is stored or used: 409 conflict; all else works', async () => {
    const { credentials, processWith, database } = await world();
    await credentials.replace('acme', 'openai', { api_key: apiKey });
    const before = await storedIn(database);
    const keyless = processWith(null);

    await expect(keyless.replace('acme', 'openai', { api_key: 'other' })).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('set ENCRYPTION_KEY'),
    });
    expect(await storedIn(database)).toBe(before);
    expect(await keyless.settingsOf('acme', 'openai')).toEqual({
      fault: 'The stored API key for openai cannot be decrypted: ENCRYPTION_KEY is not set',
    });

    await keyless.replace('acme', 'ollama', { base_url: baseUrl });
    expect(await keyless.settingsOf('acme', 'ollama')).toEqual({
      apiKey: null,
      baseUrl,
      ...others,
    });
    expect((await keyless.list('acme', page)).total).toBe(2);
    await keyless.remove('acme', 'openai');
    expect(await keyless.settingsOf('acme', 'openai')).toBeUndefined();
  });

  test('a call has the credentials of its organization, else those of the platform', async () => {
    const { credentials } = await world();
    await credentials.replace('acme', 'openai', { api_key: apiKey });
    const settings = (organization: string, model: string) =>
      credentials.settingsForModel(organization, model);

    expect(await settings('acme', 'openai/gpt')).toEqual({
      ...{ apiKey, ...others, protocol: undefined, isOpen: false },
      baseUrl: platform.baseUrl,
    });
    expect(await settings('globex', 'openai/gpt')).toEqual(platform);
    expect(await settings('acme', 'other/model')).toBeUndefined();

    await credentials.replace('acme', 'openai', { base_url: baseUrl });
    // The platform's key serves no other address.
    expect(await settings('acme', 'openai/gpt')).toEqual({
      ...{ apiKey: null, ...others, isOpen: true },
      baseUrl,
    });
    await expect(settings('acme', 'openai')).rejects.toMatchObject({ fault: 'credentials' });
  });

  test('a call whose credentials cannot be decrypted fails for good, and one whose cannot be read may be repeated', async () => {
    const { credentials, processWith, database } = await world();
    await credentials.replace('acme', 'openai', { api_key: apiKey });
    const failure = (of: Credentials) =>
      of.settingsForModel('acme', 'openai/gpt').catch((error: unknown) => error as ModelError);
    const broken = Object.create(database, {
      read: {
        get() {
          throw new Error('the database is gone');
        },
      },
    }) as Database;

    expect(await failure(processWith(null))).toMatchObject({
      fault: 'credentials',
      message: expect.stringContaining('ENCRYPTION_KEY is not set'),
    });
    expect(await failure(processWith(new Cipher(randomBytes(32)), broken))).toMatchObject({
      fault: 'unavailable',
      message: 'The credentials for openai cannot be read',
    });
  });

  test('a key that was copied to another organization, provider or address cannot be decrypted', async () => {
    const { credentials, database, clock } = await world();
    const unusable = { fault: expect.stringContaining('cannot be decrypted') };
    await credentials.replace('acme', 'openai', { api_key: apiKey, base_url: baseUrl });
    await credentials.replace('globex', 'openai', { api_key: 'theirs', base_url: baseUrl });
    const { api_key } = await sealedIn(database, 'acme');

    await tamper(database, 'globex', { api_key: api_key as string });
    expect(await credentials.settingsOf('globex', 'openai')).toEqual(unusable);

    await tamper(database, 'acme', { provider: 'anthropic' });
    expect(await credentials.settingsOf('acme', 'anthropic')).toEqual(unusable);

    clock.advance(second);
    for (const base_url of ['https://evil.example/v1', null]) {
      await tamper(database, 'acme', { provider: 'openai', base_url });
      clock.advance(second);
      expect(await credentials.settingsOf('acme', 'openai')).toEqual(unusable);
    }
    await tamper(database, 'acme', { base_url: baseUrl });
    clock.advance(second);
    expect(await credentials.settingsOf('acme', 'openai')).toEqual({ apiKey, baseUrl, ...others });
  });

  test('a key that was changed in the database cannot be decrypted', async () => {
    const { credentials, database, clock } = await world();
    await credentials.replace('acme', 'openai', { api_key: apiKey });
    const { api_key } = await sealedIn(database, 'acme');
    const sealed = api_key as string;
    const changedInside = `${sealed.slice(0, 10)}${sealed[10] === 'A' ? 'B' : 'A'}${sealed.slice(11)}`;

    for (const changed of ['', apiKey, sealed.slice(0, -4), changedInside]) {
      await tamper(database, 'acme', { api_key: changed });
      clock.advance(second);
      expect(await credentials.settingsOf('acme', 'openai')).toEqual({
        fault: expect.not.stringContaining(apiKey),
      });
    }
  });
});
