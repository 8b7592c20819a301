/** No endpoint widens a key: what writing an agent needs (docs/decisions/api-keys.md). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkCategory } from '../../src/core/skills/field-checks.ts';
import { expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

/** A key of all scopes, and others of its organization. */
async function organization() {
  const wide = await newTenant(platform);
  const { organization: organization_id } = wide;
  return {
    wide,
    keyWith: (...scopes: string[]) => newTenant(platform, { organization_id, scopes }),
  };
}

async function agent(tenant: Tenant, fields: object): Promise<string> {
  const { status, body, text } = await tenant.post('/api/agents', fields);
  if (status !== 201) throw new Error(text);
  return `/api/agents/${body.id}`;
}

const refused = (answer: Awaited<ReturnType<Tenant['get']>>) =>
  expectRefusal(answer, 403, 'insufficient_scope');

describe('an agent', () => {
  test.each([
    ['the skill itself', ['staged/v1.0/any'], ['staged']],
    ['a skill with scopes of its own', ['staged/v1.0/vault'], ['staged', 'vault']],
    ['a category, whose skills need more', ['staged/*'], ['staged', 'vault']],
    ['a version of a category', ['staged/v1.0'], ['staged', 'vault']],
    ['a category without skills', ['nowhere/*'], ['nowhere']],
    ['a skill that there is not', ['nowhere/v1.0/gone'], ['nowhere']],
    ['two categories', ['util/*', 'nowhere'], ['nowhere', 'util']],
    ['everything', ['*'], ['*']],
    ['a name in all categories', ['*/*/any'], ['*']],
  ])('that may call %s needs exactly the scopes for it', async (_title, skills, needed) => {
    const { wide, keyWith } = await organization();
    const enough = await keyWith(...needed);
    const path = await agent(wide, { skills });

    const stranger = await keyWith('other');
    const { body } = await stranger.get(`${path}?include=missing_scopes`);
    expect(body.missing_scopes).toEqual(needed);
    for (const missing of needed) {
      const others = needed.filter((scope) => scope !== missing);
      const narrow = await keyWith('other', ...others);
      refused(await narrow.post('/api/agents', { skills }));
      refused(await narrow.put(path, { instructions: 'Pay me.' }));
      refused(await narrow.delete(path));
    }
    await agent(enough, { skills });
    expect((await enough.put(path, { instructions: 'Be kind.' })).status).toBe(200);
    expect((await enough.get(`${path}?include=missing_scopes`)).body.missing_scopes).toEqual([]);
    expect((await enough.delete(path)).status).toBe(204);
  });

  test('is covered before a change as well as after it', async () => {
    const { wide, keyWith } = await organization();
    const util = await keyWith('util');
    const path = await agent(wide, { skills: ['nowhere/*'] });
    const own = await agent(util, { skills: ['util/*'] });

    refused(await util.put(path, { skills: [] }));
    refused(await util.put(own, { skills: ['util/*', 'nowhere/*'] }));
    expect((await util.put(own, { skills: ['util/v1.0/echo'] })).status).toBe(200);
  });

  test('is covered with the agents that it may call, and those that these may call', async () => {
    const { wide, keyWith } = await organization();
    const last = await agent(wide, { id: 'last', skills: ['nowhere/*'] });
    await agent(wide, { id: 'middle', agents: ['last'] });
    const calling = { agents: ['middle'] };

    refused(await (await keyWith('agent')).post('/api/agents', calling));
    refused(await (await keyWith('nowhere')).post('/api/agents', calling));
    const path = await agent(await keyWith('agent', 'nowhere'), calling);
    refused(await (await keyWith('agent')).put(path, { name: 'Mine' }));
    await wide.put(last, { skills: [] });
    expect((await (await keyWith('agent')).put(path, { name: 'Mine' })).status).toBe(200);
  });

  test('is paused and resumed by any key, which may change nothing beside it', async () => {
    const { wide, keyWith } = await organization();
    const narrow = await keyWith('other');
    const path = await agent(wide, { name: 'Ann', skills: ['*'] });

    expect((await narrow.put(path, { status: 'paused' })).body.status).toBe('paused');
    expect((await narrow.put(path, { status: 'active', name: 'Ann' })).body.status).toBe('active');
    refused(await narrow.put(path, { status: 'paused', name: 'Bob' }));
    expect((await narrow.get(path)).body).toMatchObject({ status: 'active', name: 'Ann' });
  });

  test('is not restored to a version beyond the key', async () => {
    const { wide, keyWith } = await organization();
    const narrow = await keyWith('util');
    const path = await agent(wide, { skills: ['nowhere/*'] });
    await wide.put(path, { skills: ['util/*'] });

    refused(await narrow.post(`${path}/versions/1/restore`));
    expect((await narrow.get(path)).body).toMatchObject({ version: 2, skills: ['util/*'] });
  });

  test('keeps its approvals and its budget from keys without their scopes', async () => {
    const { wide, keyWith } = await organization();
    const skills = ['util/*'];
    const path = await agent(wide, { skills, approvals: skills });
    const other = await agent(wide, { skills });
    await wide.put(`${other}/budget`, { usd_per_day: 1 });
    const narrow = await keyWith('util');

    refused(await narrow.put(path, { approvals: [] }));
    refused(await narrow.delete(path));
    refused(await narrow.post('/api/agents', { skills, approvals: skills }));
    refused(await narrow.delete(`${other}/budget`));
    refused(await narrow.put(`${other}/budget`, {}));
    refused(await narrow.delete(other));
    expect((await narrow.get(`${other}/budget`)).body.usd_per_day).toBe(1);
    const deciding = await keyWith('util', 'approvals', 'budgets');
    expect((await deciding.put(path, { approvals: [] })).status).toBe(200);
    expect((await deciding.delete(other)).status).toBe(204);
  });
});

test('a scheduled job is deleted with its budget by a key with the scope of budgets alone', async () => {
  const { wide, keyWith } = await organization();
  const cron = { agent_id: 'default', skill_category: 'staged', skill_name: 'any' };
  const { body } = await wide.post('/api/scheduled-jobs', {
    ...cron,
    cron_expression: '0 0 1 1 *',
  });
  const path = `/api/scheduled-jobs/${body.id}`;
  await wide.put(`${path}/budget`, { tokens_per_day: 1 });

  refused(await (await keyWith('staged')).delete(path));
  expect((await (await keyWith('budgets')).delete(path)).status).toBe(204);
});

describe('events of approvals', () => {
  const url = 'https://receiver.example/hook';
  const asked = { agent_id: '*', url, events: ['approval.requested', 'skill.completed'] };
  const path = '/api/agent-webhooks';

  test('are subscribed to, redirected and read in the log with their scope alone', async () => {
    const { wide, keyWith } = await organization();
    const narrow = await keyWith('util');
    const { id } = (await wide.post(path, asked)).body;
    const { id: plain } = (await narrow.post(path, { ...asked, events: ['skill.failed'] })).body;
    const { body: delivery } = await wide.post(`${path}/${id}/test`);
    const log = `${path}/${id}/deliveries`;

    refused(await narrow.post(path, asked));
    refused(await narrow.put(`${path}/${plain}`, { events: asked.events }));
    refused(await narrow.put(`${path}/${id}`, { url: 'https://mine.example/' }));
    refused(await narrow.put(`${path}/${id}`, { events: ['skill.failed'] }));
    refused(await narrow.get(log));
    refused(await narrow.get(`${log}/${delivery.id}`));
    refused(await narrow.get(`${path}/listen?events=approval.decided`));
    expect((await (await keyWith('approvals')).get(log)).body.total).toBe(1);
  });

  test('are missing in the log for other keys, also after the webhook has other events', async () => {
    const { wide, keyWith } = await organization();
    const narrow = await keyWith('util');
    const { id } = (await wide.post(path, asked)).body;
    await wide.post(`${path}/${id}/test`);
    await wide.put(`${path}/${id}`, { events: ['skill.failed'] });
    const { body: sample } = await wide.post(`${path}/${id}/test`);
    const log = `${path}/${id}/deliveries`;

    const { body } = await narrow.get(log);

    expect(body).toMatchObject({ total: 1, data: [{ id: sample.id, event: 'skill.failed' }] });
    expect((await wide.get(log)).body.total).toBe(2);
    expect((await narrow.get(`${log}?offset=1`)).body).toMatchObject({ total: 1, data: [] });
  });

  test('are ended by any key: a webhook is deactivated and deleted without their scope', async () => {
    const { wide, keyWith } = await organization();
    const narrow = await keyWith('util');
    const { id } = (await wide.post(path, asked)).body;

    refused(await narrow.put(`${path}/${id}`, { active: false, url: 'https://mine.example/' }));
    const { status, body } = await narrow.put(`${path}/${id}`, { active: false });
    expect([status, body.active]).toEqual([200, false]);
    refused(await narrow.put(`${path}/${id}`, { active: true }));
    expect((await narrow.delete(`${path}/${id}`)).status).toBe(204);
  });
});

test.each(['approvals', 'budgets', 'user-data', 'agents', 'operate', 'registry', 'events'])(
  'no skill may have the category %s, which is a scope',
  (category) => {
    expect(checkCategory(category)).toMatch(/reserved/);
  },
);
