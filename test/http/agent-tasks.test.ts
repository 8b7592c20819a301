/** `POST /api/agents/{agentId}/tasks`, and what a task may not ask for (docs/agents.md). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { answering } from '../support/scripted-provider.ts';
import { newTenant } from '../support/tenant.ts';
import { newThinker, runTask, startThinkers, type Thinkers } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const tasks = '/api/agents/thinker/tasks';

describe('a task for an agent', () => {
  test('is a run of agent/run-task as this agent, for a user, in a conversation', async () => {
    const { post } = await newThinker(world.platform);
    world.provider.script(answering('At nine.'));
    const ann = { 'x-user-id': 'ann', prefer: 'wait=20' };

    const { status, body: first } = await post(tasks, { task: 'When is it open?' }, ann);

    expect(status).toBe(200);
    expect(first).toMatchObject({
      status: 'completed',
      agent_id: 'thinker',
      user_id: 'ann',
      skill_category: 'agent',
      skill_name: 'run-task',
      output: { answer: 'At nine.' },
    });
    const goesOn = { ...ann, 'x-conversation-id': first.conversation_id };
    const { body: second } = await post(tasks, { task: 'Really?' }, goesOn);
    expect(second.conversation_id).toBe(first.conversation_id);
  });

  test('is answered with 202 and Location without a wait, and once for an Idempotency-Key', async () => {
    const { post } = await newThinker(world.platform);
    world.provider.script(answering('Yes.'));
    const once = { 'idempotency-key': 'one' };

    const first = await post(tasks, { task: 'Go' }, once);
    const again = await post(tasks, { task: 'Go' }, once);

    expect(first.status).toBe(202);
    expect(first.headers.get('location')).toBe(`/api/jobs/${first.body.job_id}`);
    expect(again.body.job_id).toBe(first.body.job_id);
    // The other way to give the same task.
    const byName = await post(
      `/api/${runTask}`,
      { task: 'Go' },
      { ...once, 'x-agent-id': 'thinker' },
    );
    expect(byName.body.job_id).toBe(first.body.job_id);
  });

  test('is refused with 400, 403 and 404', async () => {
    const { post, organization } = await newThinker(world.platform);
    expectInvalid(await post(tasks, {}), 'task');
    expectInvalid(await post(tasks, { task: 'x', more: 1 }), 'more');
    expectInvalid(await post(tasks, undefined), 'body');
    expectRefusal(await post('/api/agents/unknown/tasks', {}), 404, 'not_found');
    const narrow = await newTenant(world.platform, {
      organization_id: organization,
      scopes: ['text'],
    });
    expectRefusal(await narrow.post(tasks, { task: 'x' }), 403, 'insufficient_scope');
    const other = await newTenant(world.platform);
    expectRefusal(await other.post(tasks, { task: 'x' }), 404, 'not_found');
  });
});

test.each([
  ['a type that is none', { type: 'text' }, /^is no valid JSON Schema/],
  ['a reference that leads nowhere', { $ref: '#/$defs/none' }, /#\/\$defs\/none/],
  ['more than 64 KiB', { title: 'x'.repeat(70_000) }, /64 KiB/],
  ['another dialect', { $schema: 'http://json-schema.org/draft-04/schema#' }, /dialect/],
])(
  'a task whose schema has %s is refused with 400, and no model is asked',
  async (_, schema, issue) => {
    const { post, get } = await newThinker(world.platform);
    const before = world.provider.requests.length;

    const refused = await post(tasks, { task: 'x', schema });

    expectInvalid(refused, 'schema');
    expect(refused.body.details[0].issue).toMatch(issue);
    const trial = { agent: { instructions: 'x' }, input: { task: 'x', schema } };
    expectInvalid(await post('/api/agents/thinker/trials', trial), 'input.schema');
    expect((await get('/api/jobs')).body.total).toBe(0);
    expect(world.provider.requests).toHaveLength(before);
  },
);

test.each([
  ['shop/order', 'write shop/v1.0/order, or shop/*/order for all versions'],
  ['shop/order/v2.1', 'write shop/v2.1/order, or shop/*/order for all versions'],
])('the pattern %s is refused with what to write', async (pattern, words) => {
  const { post, put } = await newTenant(world.platform);

  const created = await post('/api/agents', { id: 'other', skills: ['text/*', pattern] });
  const changed = await put('/api/agents/default', { approvals: [pattern] });

  expectInvalid(created, 'skills.1');
  expect(created.text).toContain(words);
  expectInvalid(changed, 'approvals.0');
});
