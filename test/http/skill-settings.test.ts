/** Settings and secrets of skills: `/api/skills/:id/config`, and what runs make of them. */
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { cli } from '../support/cli.ts';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const logged: string[] = [];
let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform({
    skillsDirs: [join(import.meta.dirname, '../fixtures/skills/settings')],
    environment: { FROM_OUTSIDE: 'a-value-of-the-environment' },
    log: createLogger('info', { write: (line: string) => void logged.push(line) }),
    executors: 'own',
  });
});
afterAll(() => platform.stop());

/** An organization of each test's own. */
let tenant: Tenant;
beforeEach(async () => {
  tenant = await newTenant(platform);
});

const secret = 'sk-"secret"/0123 456';
const keeper = 'settings/v1.0/keeper';
const idOf = async (skill: string) => (await tenant.get(`/api/skills/${skill}`)).body.id as string;
const pathOf = async (skill = keeper) => `/api/skills/${await idOf(skill)}/config`;
const put = async (values: unknown, skill = keeper) =>
  tenant.send('PUT', await pathOf(skill), { body: values });
const show = async (skill = keeper) => tenant.get(await pathOf(skill));
const run = (skill: string, input: object = {}) => platform.run(tenant.key, skill, input);

/** The job that retries a failed one, once it has completed. */
async function retry({ job_id }: { job_id: string }) {
  const { status, body } = await tenant.post(`/api/jobs/${job_id}/retry`);
  expect(status).toBe(202);
  return tenant.jobIn(body.job_id, 'completed');
}

const setting = (name: string, fields: object) => ({
  name,
  description: expect.stringMatching(/\S/),
  secret: false,
  required: false,
  default: null,
  source: 'missing',
  value: null,
  updated_at: null,
  fault: null,
  ...fields,
});

describe('GET /api/skills/:id/config', () => {
  test('shows each declared setting, and where its value comes from', async () => {
    const { status, body } = await show();

    expect(status).toBe(200);
    expect(body).toEqual({
      skill: keeper,
      is_complete: false,
      settings: [
        setting('API_KEY', { secret: true, required: true }),
        setting('REGION', { default: 'eu', source: 'default', value: 'eu' }),
        setting('NICKNAME', {}),
      ],
    });
  });

  test('the same is part of the skill itself, unless it declares none', async () => {
    const one = await tenant.get(`/api/skills/${keeper}`);
    const none = await tenant.get('/api/skills/settings/v1.0/other');

    expect(one.body.config).toEqual((await show()).body.settings);
    expect(none.body).not.toHaveProperty('config');
    expect((await show('settings/v1.0/other')).body).toMatchObject({
      is_complete: true,
      settings: [],
    });
  });

  test('a value of the environment is never shown, and no setting of the platform is taken', async () => {
    const { body } = await show('settings/v1.0/printed');

    expect(body.settings).toEqual([
      setting('API_KEY', { secret: true, required: true }),
      setting('DATABASE_URL', {}),
      setting('FROM_OUTSIDE', { source: 'environment' }),
      setting('ENCRYPTION_KEY', { secret: true }),
    ]);
    expect(JSON.stringify(body)).not.toContain('a-value-of-the-environment');
  });

  test('an id that no version has is refused with skill_not_found', async () => {
    for (const id of ['nope', '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11']) {
      const path = `/api/skills/${id}/config`;
      expectRefusal(await tenant.get(path), 404, 'skill_not_found');
      expectRefusal(await tenant.send('PUT', path, { body: [] }), 404, 'skill_not_found');
      expectRefusal(await tenant.send('DELETE', path), 404, 'skill_not_found');
    }
  });
});

test('skillwright skills config shows where values come from, sets them, and deletes those that are null', async () => {
  const env = { SKILLWRIGHT_URL: platform.url, SKILLWRIGHT_API_KEY: tenant.key };
  const config = (...values: string[]) => cli(['skills', 'config', keeper, ...values], { env });

  expect((await config()).stdout).toBe(
    'API_KEY\tmissing\t-\nREGION\tdefault\t-\nNICKNAME\tmissing\t-\n',
  );
  expect((await config('API_KEY=sk-1', 'REGION=us')).stdout).toContain('API_KEY\torganization\t');
  expect((await config('REGION=null')).stdout).toContain('REGION\tdefault\t');
  // What looks like a number or a boolean is text, as settings are.
  for (const value of ['123456', 'true'])
    expect((await config(`NICKNAME=${value}`)).stdout).toContain('NICKNAME\torganization\t');
  expect((await config('NICKNAME=null')).code).toBe(0);
  expect((await show()).body.settings).toMatchObject([{ source: 'organization' }, {}, {}]);
});

describe('PUT /api/skills/:id/config', () => {
  test('sets the values that are sent, keeps the others, deletes those that are null', async () => {
    const first = await put({ API_KEY: secret, NICKNAME: 'Kay' });
    const second = await put({ NICKNAME: null, REGION: 'us' });

    expect(first.body).toEqual({
      skill: keeper,
      is_complete: true,
      settings: [
        setting('API_KEY', {
          secret: true,
          required: true,
          source: 'organization',
          updated_at: aTimestamp,
        }),
        setting('REGION', { default: 'eu', source: 'default', value: 'eu' }),
        setting('NICKNAME', { source: 'organization', value: 'Kay', updated_at: aTimestamp }),
      ],
    });
    expect(second.body.settings).toMatchObject([
      { source: 'organization', value: null },
      { source: 'organization', value: 'us', default: 'eu' },
      { source: 'missing', value: null },
    ]);
    for (const { text } of [first, second, await show()]) expect(text).not.toContain('sk-');
  });

  test('values are stored encrypted', async () => {
    await put({ API_KEY: secret, REGION: 'in-plain-sight' });

    const rows = await platform.database.read.kysely
      .selectFrom('skill_settings')
      .selectAll()
      .where('organization_id', '=', tenant.organization)
      .execute();
    expect(rows.map(({ name, secret: isSecret }) => [name, isSecret]).sort()).toEqual([
      ['API_KEY', 1],
      ['REGION', 0],
    ]);
    expect(JSON.stringify(rows)).not.toMatch(/sk-|in-plain-sight/);
  });

  test('other settings, other types and values that are too short or too long are refused', async () => {
    expectInvalid(await put({ NOPE: 'value' }), 'NOPE');
    expectInvalid(await put({ API_KEY: 'abc' }), 'API_KEY');
    expectInvalid(await put({ API_KEY: '' }), 'API_KEY');
    expectInvalid(await put({ API_KEY: 7 }), 'API_KEY');
    expectInvalid(await put({ API_KEY: 'ä'.repeat(5_000) }), 'API_KEY');
    expect((await put({ api_key: 'lower case' })).status).toBe(400);
    expect((await put(['API_KEY'])).status).toBe(400);
    expect((await put({ REGION: 'a\0b' })).status).toBe(400);
    expect((await show()).body.settings[0]).toMatchObject({ source: 'missing' });
  });

  test('needs the scopes of the skill; to look needs none', async () => {
    const key = await platform.key({ organization_id: tenant.organization, scopes: ['util'] });
    const path = await pathOf();
    const as = (method: string, body?: unknown) =>
      platform.request(method, path, { key, ...(body === undefined ? {} : { body }) });

    expectRefusal(await as('PUT', { API_KEY: secret }), 403, 'insufficient_scope');
    expectRefusal(await as('DELETE'), 403, 'insufficient_scope');
    expect((await as('GET')).status).toBe(200);
  });

  test('belongs to one organization, and to all versions of the skill', async () => {
    const other = await newTenant(platform);
    await put({ API_KEY: secret });

    expect((await show('settings/v1.1/keeper')).body.settings[0]).toMatchObject({
      source: 'organization',
    });
    expect((await other.get(await pathOf())).body.settings[0]).toMatchObject({ source: 'missing' });
  });
});

test('DELETE deletes all values of the organization, also when there are none', async () => {
  await put({ API_KEY: secret });
  await put({ TEAM: 'red' }, 'settings/v1.1/keeper');
  const path = await pathOf();

  expect((await tenant.send('DELETE', path)).status).toBe(204);
  expect((await tenant.send('DELETE', path)).status).toBe(204);

  for (const skill of [keeper, 'settings/v1.1/keeper']) {
    const { settings } = (await show(skill)).body;
    expect(settings.map(({ source }: { source: string }) => source)).not.toContain('organization');
  }
});

describe('a run', () => {
  test('fails for good with missing_credentials while a required setting has no value', async () => {
    const { body } = await run(keeper);

    expect(body).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code: 'missing_credentials', message: expect.stringContaining('API_KEY') },
    });
    expect(body.error.message).toContain(`PUT /api/skills/${await idOf(keeper)}/config`);

    await put({ API_KEY: secret });
    const retried = await retry(body);
    expect(retried.body.output).toEqual({ length: secret.length });
  });

  test('gets the values frozen, by name, and only those that are set', async () => {
    await put({ API_KEY: secret, REGION: 'us' });

    expect((await run(keeper, { say: 'keys' })).body.output).toEqual({
      config: ['API_KEY', 'REGION'],
      isFrozen: true,
      length: secret.length,
      region: 'us',
    });
  });

  test('of a skill that declares none gets none, and a skill that it calls gets its own', async () => {
    const refused = await run('settings/v1.0/other');
    expect(refused.body).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code: 'missing_credentials', message: expect.stringContaining('API_KEY') },
    });

    await put({ API_KEY: secret });
    const expected = { length: secret.length };
    const retried = await retry(refused.body);
    expect(retried.body.output).toEqual({ own: {}, called: expected });
    const parent = await run('settings/v1.0/other', { child: true });
    expect(parent.body.output).toEqual({ own: {}, child: expected });
  });

  test('cannot be read for its secrets, wherever it says them', async () => {
    await put({ API_KEY: secret });

    const said = await run(keeper, { say: 'everywhere' });
    const failed = await run(keeper, { say: 'error' });
    const called = await run('settings/v1.0/other', { with: { say: 'everywhere' } });

    expect(said.body.output).toEqual({
      step: { key: '***' },
      key: '***',
      list: ['***'],
      encoded: '***',
    });
    expect(failed.body.error.message).toBe('refused: ***');
    expect(called.body.output.called).toEqual(said.body.output);
    const shown = [said, failed, called];
    for (const { body } of [said, called]) {
      shown.push(
        await tenant.get(`/api/jobs/${body.job_id}/events`),
        await tenant.get(`/api/conversations/${body.conversation_id}`),
        await tenant.get(`/api/jobs/${body.job_id}/steps`),
      );
    }
    shown.push(await tenant.get('/api/agents/default/memories'));
    const all = shown.map(({ text }) => text).join('\n');
    expect(all).toContain('the key is ***');
    expect(all).toContain('I use ***.');
    expect(all).not.toMatch(/sk-|0123%20456/);
    const tables = ['events', 'job_events', 'job_steps', 'messages', 'memories'] as const;
    for (const table of tables) {
      const rows = await platform.database.read.kysely.selectFrom(table).selectAll().execute();
      expect(JSON.stringify(rows), table).not.toContain('sk-');
    }
  });

  test('cannot put its secrets into the log of the platform', async () => {
    await put({ API_KEY: secret }, 'settings/v1.0/printed');
    await put({ API_KEY: secret });

    const printed = await run('settings/v1.0/printed');
    await run(keeper, { say: 'crash' });

    expect(printed.body.output).toEqual({ names: ['API_KEY', 'FROM_OUTSIDE'], inProcess: false });
    await waitFor(() => logged.join('').includes('later ***'), { describe: 'the late line' });
    for (const line of [
      'run ***',
      '"stderr":"split"',
      '*** is it',
      "{ key: '***' }",
      'written ***',
    ]) {
      expect(logged.join('')).toContain(line);
    }
    expect(logged.join('')).toContain('refused: ***');
    expect(logged.join('')).not.toContain('sk-');
  });
});

test('the id of a skill is that of its version', async () => {
  expect(await idOf(keeper)).toEqual(anId);
  expect(await idOf(keeper)).not.toBe(await idOf('settings/v1.1/keeper'));
});
