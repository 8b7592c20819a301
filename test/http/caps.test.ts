/** Limits of an organization, as a client sees them. */
import { afterAll, expect, test } from 'vitest';
import { startPlatform } from '../support/platform.ts';

const platform = await startPlatform({
  environment: {
    AGENTS_MAX: '2',
    API_KEYS_MAX: '2',
    SCHEDULED_JOBS_MAX: '2',
    TRIGGERS_MAX: '2',
    WEBHOOKS_MAX: '2',
  },
});
afterAll(() => platform.stop());

const skill = { skill_category: 'util', skill_name: 'echo' };

test.each([
  ['agents', '/api/agents', () => ({})],
  [
    'scheduled jobs',
    '/api/scheduled-jobs',
    (n: number) => ({
      agent_id: 'default',
      ...skill,
      cron_expression: `${n} 0 1 1 *`,
      input: { text: 'a' },
    }),
  ],
  ['triggers', '/api/agent-triggers', (n: number) => ({ agent_id: 'default', name: `no ${n}` })],
  [
    'webhooks',
    '/api/agent-webhooks',
    () => ({ agent_id: 'default', url: 'https://a.example/', events: ['agent.error'] }),
  ],
])(
  'an organization that has all its %s gets 409 conflict for one more',
  async (things, path, bodyOf) => {
    const organization_id = `has-${things.replace(' ', '-')}`;
    const key = await platform.key({ organization_id });
    const create = (n: number) => platform.request('POST', path, { key, body: bodyOf(n) });
    const answers = [await create(1), await create(2), await create(3)];

    const refused = answers.find(({ status }) => status !== 201);
    // Each organization has an agent from the start.
    const statuses = things === 'agents' ? [201, 409, 409] : [201, 201, 409];
    expect(answers.map(({ status }) => status)).toEqual(statuses);
    expect(refused?.body).toEqual({
      error: 'conflict',
      message: `The organization has 2 ${things}, which is as many as it may have: delete one first`,
    });
  },
);

test('an organization that has all its API keys gets 409 conflict for one more', async () => {
  const body = { client_name: 'a', scopes: ['*'], organization_id: 'has-keys' };
  const issue = () => platform.admin('POST', '/admin/api-keys', body);
  const answers = [await issue(), await issue(), await issue()];

  expect(answers.map(({ status }) => status)).toEqual([201, 201, 409]);
  expect(answers[2]?.body.message).toBe(
    'The organization has 2 API keys that are not revoked, which is as many as it may have: revoke one first',
  );
});
