/** What runs remember, recall and forget (docs/decisions/memories.md), with real executors. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { MemoryStep } from '../fixtures/skills/staged/memory.ts';
import { anId, aTimestamp } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { gate, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const skill = 'staged/v1.0/memory';
const path = '/api/agents/default/memories';

/** Acts the steps of one attempt, or of each, to the end; the job. */
const act = async (tenant: Tenant, attempts: MemoryStep[][], headers = {}) =>
  (await tenant.run(skill, { attempts }, headers)).body;

/** The run that wrote a memory. */
const aSource = { job_id: anId, conversation_id: anId, step: null };

const contents = (memories: { content: string }[]) => memories.map(({ content }) => content);

async function known(tenant: Tenant, agent = 'default'): Promise<string[]> {
  const { body } = await tenant.get(`/api/agents/${agent}/memories?limit=200`);
  expect(body.total).toBe(body.data.length);
  return contents(body.data);
}

test('memories of a run are kept when it completes, as the run saw them', async () => {
  const tenant = await newTenant(platform);

  const { status, output } = await act(tenant, [
    [
      { remember: { content: 'Ada likes tea', tag: 'preference', metadata: { cups: [1, 2] } } },
      { remember: { content: 'plain' } },
    ],
  ]);

  expect(status).toBe('completed');
  const [first, second] = output;
  expect(first).toEqual({
    id: anId,
    content: 'Ada likes tea',
    tag: 'preference',
    metadata: { cups: [1, 2] },
    user_id: null,
    created_at: aTimestamp,
    updated_at: aTimestamp,
    expires_at: null,
  });
  expect(second).toMatchObject({ content: 'plain', tag: 'fact', metadata: {} });
  const { body } = await tenant.get(path);
  expect(body.data).toEqual([
    { ...second, agent_id: 'default', source: aSource },
    { ...first, agent_id: 'default', source: aSource },
  ]);
  expect((await tenant.get(`${path}?q=tea&tag=preference`)).body.total).toBe(1);
});

test('it is visible to the run at once, and to other readers only when the run completes', async () => {
  const tenant = await newTenant(platform);
  const held = gate();
  const id = await tenant.start(skill, {
    attempts: [[{ remember: { content: 'new' } }, { recall: {} }, { until: held.path }]],
  });
  await atGate(tenant, id);

  const meanwhile = await act(tenant, [[{ recall: {} }]]);
  expect(await known(tenant)).toEqual([]);
  held.open();
  const { body } = await tenant.jobIn(id, 'completed');

  expect(meanwhile.output).toEqual([[]]);
  expect(contents(body.output[1])).toEqual(['new']);
  expect(await known(tenant)).toEqual(['new']);
});

test('a failed attempt records no memory, and the next one none twice', async () => {
  const tenant = await newTenant(platform);
  const { body: old } = await tenant.post(path, { content: 'old' });

  const job = await act(tenant, [
    [{ remember: { content: 'once' } }, { forget: old.id }, { fail: 'it broke' }],
    [{ recall: {} }, { remember: { content: 'once' } }],
  ]);

  expect(job).toMatchObject({ status: 'completed', attempt: 2 });
  expect(contents(job.output[0])).toEqual(['old']);
  expect(await known(tenant)).toEqual(['once', 'old']);
});

test('a failed run neither remembers nor forgets', async () => {
  const tenant = await newTenant(platform);
  const { body: old } = await tenant.post(path, { content: 'old' });

  const job = await act(tenant, [
    [{ remember: { content: 'lost' } }, { forget: old.id }, { fail: 'it broke' }],
  ]);

  expect(job).toMatchObject({ status: 'failed', attempt: 3 });
  expect(await known(tenant)).toEqual(['old']);
});

test('a cancelled run remembers nothing', async () => {
  const tenant = await newTenant(platform);
  const held = gate();
  const id = await tenant.start(skill, {
    attempts: [[{ remember: { content: 'lost' } }, { until: held.path }]],
  });
  await atGate(tenant, id);

  await tenant.post(`/api/jobs/${id}/cancel`);
  await tenant.jobIn(id, 'cancelled');

  expect(await known(tenant)).toEqual([]);
});

test('a forgotten memory disappears for the run at once, and for others when it completes', async () => {
  const tenant = await newTenant(platform);
  const { body: stored } = await tenant.post(path, { content: 'old tea' });
  await tenant.post(path, { content: 'older tea' });

  const { output } = await act(tenant, [
    [
      { remember: { content: 'own tea' } },
      { forget: stored.id },
      { forget: stored.id },
      { recall: {} },
      { recall: { query: 'tea' } },
      { forget: 0 },
      { forget: 0 },
      { recall: { query: 'tea' } },
      { forget: '0191f3b0-0000-7000-8000-000000000000' },
      { forget: 'no id' },
    ],
  ]);

  expect(output.slice(1, 3)).toEqual([true, false]);
  expect(contents(output[3])).toEqual(['own tea', 'older tea']);
  expect(contents(output[4])).toEqual(['own tea', 'older tea']);
  expect(output.slice(5, 7)).toEqual([true, false]);
  expect(contents(output[7])).toEqual(['older tea']);
  expect(output.slice(8)).toEqual([false, false]);
  expect(await known(tenant)).toEqual(['older tea']);
});

test('a memory that was deleted before the run completes is no error', async () => {
  const tenant = await newTenant(platform);
  const { body: stored } = await tenant.post(path, { content: 'old' });
  const held = gate();
  const id = await tenant.start(skill, {
    attempts: [[{ forget: stored.id }, { remember: { content: 'new' } }, { until: held.path }]],
  });
  await atGate(tenant, id);

  await tenant.delete(`${path}/${stored.id}`);
  held.open();
  await tenant.jobIn(id, 'completed');

  expect(await known(tenant)).toEqual(['new']);
});

test.each([
  ['that was deleted: nothing is kept', false],
  ['that was deleted and created again: the new one begins with none', true],
])('nor is an agent %s', async (_, isCreatedAgain) => {
  const tenant = await newTenant(platform);
  const create = () => tenant.post('/api/agents', { id: 'brief' });
  await create();
  const held = gate();
  const id = await tenant.start(
    skill,
    { attempts: [[{ remember: { content: 'lost' } }, { until: held.path }]] },
    { 'x-agent-id': 'brief' },
  );
  await atGate(tenant, id);

  await tenant.delete('/api/agents/brief');
  if (isCreatedAgain) await create();
  held.open();
  await tenant.jobIn(id, 'completed');
  if (!isCreatedAgain) await create();

  expect(await known(tenant, 'brief')).toEqual([]);
});

test('recall returns the same as a search: stored and own memories in one order, filtered by tag', async () => {
  const tenant = await newTenant(platform);
  await tenant.post(path, { content: 'tea tea tea' });
  await tenant.post(path, { content: 'tea and a good many other things', tag: 'other' });

  const { output } = await act(tenant, [
    [
      { remember: { content: 'Tëa tea', tag: 'other' } },
      { remember: { content: 'coffee' } },
      { recall: { query: 'TEA!' } },
      { recall: { query: 'tea', tag: 'other' } },
      { recall: { query: 'tea', limit: 1 } },
      { recall: { query: 'tea coffee' } },
      { recall: { query: '?' } },
      { recall: { tag: 'other' } },
      { recall: { limit: 2 } },
      { recallAll: true },
    ],
  ]);

  const ranked = ['tea tea tea', 'Tëa tea', 'tea and a good many other things'];
  const recalled = output.slice(2).map(contents);
  expect(recalled).toEqual([
    ranked,
    ranked.slice(1),
    ranked.slice(0, 1),
    ['coffee', ...ranked],
    [],
    ranked.slice(1),
    ['coffee', 'Tëa tea'],
    ['coffee', 'Tëa tea', ranked[2], ranked[0]],
  ]);
  const { body } = await tenant.get(`${path}?q=tea`);
  expect(contents(body.data)).toEqual(ranked);
});

test('a run has the memory of its own agent in its own organization, and no other', async () => {
  const tenant = await newTenant(platform);
  const other = await newTenant(platform);
  await tenant.post('/api/agents', { id: 'bob' });
  const { body: bobs } = await tenant.post('/api/agents/bob/memories', { content: 'of Bob' });
  const { body: others } = await other.post(path, { content: 'of another' });

  const { output } = await act(tenant, [
    [{ recall: {} }, { recall: { query: 'of' } }, { forget: bobs.id }, { forget: others.id }],
  ]);
  await act(tenant, [[{ remember: { content: 'mine' } }]], { 'x-agent-id': 'bob' });

  expect(output).toEqual([[], [], false, false]);
  expect(await known(tenant)).toEqual([]);
  expect(await known(tenant, 'bob')).toEqual(['mine', 'of Bob']);
  expect(await known(other)).toEqual(['of another']);
});

test('a skill that is called shares the memory of the run', async () => {
  const tenant = await newTenant(platform);

  const { output } = await act(tenant, [
    [
      { remember: { content: 'outer' } },
      { call: [{ recall: {} }, { remember: { content: 'inner' } }] },
      { recall: {} },
    ],
  ]);

  expect(contents(output[1][0])).toEqual(['outer']);
  expect(contents(output[2])).toEqual(['inner', 'outer']);
  expect(await known(tenant)).toEqual(['inner', 'outer']);
});

test('a memory that the run does not await is kept', async () => {
  const tenant = await newTenant(platform);

  await act(tenant, [[{ rememberInPassing: { content: 'by the way' } }]]);

  expect(await known(tenant)).toEqual(['by the way']);
});

test('a run may remember 200 memories', async () => {
  const tenant = await newTenant(platform);

  const { status, output } = await act(tenant, [
    [{ rememberMany: [200, 1] }, { remember: { content: 'too much' } }, { recall: { limit: 1 } }],
  ]);

  expect(status).toBe('completed');
  expect(output[1]).toEqual({ error: 'a run may remember 200 memories' });
  expect(contents(output[2])).toEqual(['199']);
  expect((await tenant.get(path)).body.total).toBe(200);
});

test('a run may remember 2 MiB, and recalls as much as fits into an answer', async () => {
  const tenant = await newTenant(platform);

  const { output } = await act(tenant, [
    [{ rememberMany: [31, 65_536] }, { remember: { content: 'x'.repeat(65_536) } }, { recall: {} }],
  ]);

  expect(output[1]).toEqual({ error: 'a run may remember 2 MiB' });
  expect(output[2]).toHaveLength(15);
});

describe('an invalid call is refused with a message, and changes nothing:', () => {
  const text = 'x'.repeat(65_537);
  test.each<[string, MemoryStep[], RegExp]>([
    ['remember', [null, 5, 'text', [], [1]].map((remember) => ({ remember })), /as an object/],
    [
      'content',
      [undefined, null, '', 5, {}, text, '🏔'.repeat(16_385)].map((content) => ({
        remember: { content },
      })),
      /^content must be/,
    ],
    [
      'tag',
      [null, '', 5, {}, 'x'.repeat(201), '🏔'.repeat(201), 'x'.repeat(500_000)].map((tag) => ({
        remember: { content: 'x', tag },
      })),
      /^tag must be/,
    ],
    [
      'metadata',
      [null, 'x', 5, [], { a: text }].map((metadata) => ({ remember: { content: 'x', metadata } })),
      /^metadata must be/,
    ],
    [
      'a field',
      [{ remember: { content: 'x', id: 'mine' } }, { recall: { q: 'x' } }],
      /is not allowed$/,
    ],
    [
      'characters',
      ['\\u0000', '\\ud800'].map((c) => ({ rememberJson: `{"content":"a${c}b"}` })),
      /NUL/,
    ],
    [
      'limit',
      [0, -1, 1.5, 201, '5', null].map((limit) => ({ recall: { limit } })),
      /^limit must be an integer from 1 to 200$/,
    ],
    [
      'query',
      [null, 5, [], 'x'.repeat(1_001)].map((query) => ({ recall: { query } })),
      /^query must be/,
    ],
    ['recall', [null, 'tea', ['tea']].map((recall) => ({ recall })), /as an object/],
    ['id', [null, {}, ['x']].map((forget) => ({ forget })), /^the id of a memory is a text$/],
  ])('%s', async (_, steps, words) => {
    const tenant = await newTenant(platform);

    const { status, output } = await act(tenant, [steps]);

    expect(status).toBe('completed');
    for (const one of output) expect(one).toEqual({ error: expect.stringMatching(words) });
    expect(await known(tenant)).toEqual([]);
  });
});

/** Until the run has come to its gate, which it reports. */
async function atGate(tenant: Tenant, id: string): Promise<void> {
  await waitFor(async () => (await tenant.get(`/api/jobs/${id}`)).body.progress, {
    describe: 'the run has come to its gate',
  });
}

test('runs of one agent for two users share its own memories, and no others', async () => {
  const tenant = await newTenant(platform);
  const actFor = (user: string, steps: MemoryStep[]) => act(tenant, [steps], { 'x-user-id': user });
  const salary = 'The salary of Alice is 5,000';
  const told = await actFor('alice', [
    { remember: { content: salary } },
    { remember: { content: 'Salaries are paid on the 28th', whose: 'agent' } },
  ]);
  expect(told.output.map(({ user_id }: { user_id: string | null }) => user_id)).toEqual([
    'alice',
    null,
  ]);

  const asked = [{ recall: { query: 'salary of Alice' } }, { recall: {} }];
  const ofBob = await actFor('bob', [...asked, { forget: told.output[0].id }]);
  const withoutUser = await act(tenant, [asked]);
  const ofAlice = await actFor('alice', asked);

  const shared = ['Salaries are paid on the 28th'];
  expect(ofBob.output.slice(0, 2).map(contents)).toEqual([shared, shared]);
  expect(ofBob.output[2]).toBe(false);
  expect(withoutUser.output.map(contents)).toEqual([shared, shared]);
  expect(ofAlice.output.map((all: { content: string }[]) => contents(all).sort())).toEqual([
    [...shared, salary],
    [...shared, salary],
  ]);
  // The key's client_name is shown as the user of a run without one, and is none.
  const ofKey = await actFor('a test', asked);
  expect(ofKey.output.map(contents)).toEqual([shared, shared]);
  const { body } = await tenant.get(`${path}?user_id=alice`);
  expect(body.data).toMatchObject([
    { content: salary, user_id: 'alice', source: { job_id: told.job_id, step: null } },
  ]);
  expect((await tenant.get(`${path}?user_id=`)).body).toMatchObject({
    data: [{ content: shared[0], user_id: null }],
    total: 1,
  });
});

test('a retry and a called skill remember for the user of the job before them', async () => {
  const tenant = await newTenant(platform);
  const alice = { 'x-user-id': 'alice' };
  const called = { call: [{ remember: { content: 'of a call' } }] };
  const id = await tenant.start(skill, { attempts: [[called, { fail: 'so' }]] }, alice);
  await tenant.jobIn(id, 'failed');

  const { body: again } = await tenant.post(`/api/jobs/${id}/retry`);
  await tenant.jobIn(again.job_id, 'failed');
  const { output } = await act(tenant, [[called]], alice);

  expect(output[0][0]).toMatchObject({ content: 'of a call', user_id: 'alice' });
  expect((await tenant.get(`${path}?user_id=alice`)).body.total).toBe(1);
});
