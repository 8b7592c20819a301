/** What is kept of a user: taken out and erased (docs/memories.md). */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { Files } from '../../src/core/files/files.ts';
import type { Jobs } from '../../src/core/jobs/jobs.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createLogger } from '../../src/kernel/log.ts';
import type { Erased } from '../../src/platform/user-data/erasure.ts';
import { UserData } from '../../src/platform/user-data/user-data.ts';
import type { MemoryStep } from '../fixtures/skills/staged/memory.ts';
import { contextOf } from '../support/context.ts';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { embeddedTest, type Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const memory = 'staged/v1.0/memory';
const alice = { 'x-user-id': 'alice marker7' };
const path = '/api/users/alice%20marker7/data';
const memories = '/api/agents/default/memories';

const act = (tenant: Tenant, steps: MemoryStep[], headers = {}) =>
  tenant.run(memory, { attempts: [steps] }, headers);

/** The tables in which a text stands, of all tables and of the organization. */
async function tablesWith(text: string): Promise<string[]> {
  const { kysely } = platform.database.read;
  const found: string[] = [];
  for (const { name } of await kysely.introspection.getTables()) {
    const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(name)}`.execute(
      kysely,
    );
    const values = rows.flatMap((row) => Object.values(row));
    const isIn = (value: unknown) =>
      (value instanceof Uint8Array
        ? Buffer.from(value).toString('latin1')
        : String(value)
      ).includes(text);
    if (values.some(isIn)) found.push(name);
  }
  return found;
}

/** A run for the user takes an event about it. */
async function takeEvent(tenant: Tenant) {
  const acts = [{ wait: { event: 'said', key: 'of marker7' } }];
  const id = await tenant.start('staged/v1.0/listener', { acts }, alice);
  await tenant.jobIn(id, 'waiting');
  const event = { event: 'said', key: 'of marker7', data: { text: 'marker7 said it' } };
  const sent = await tenant.post('/api/events', event, { 'idempotency-key': 'event of marker7' });
  expect(sent.status).toBe(202);
  await tenant.jobIn(id, 'completed');
}

/** A run for the user asks a person about it. */
async function decideApproval(tenant: Tenant) {
  const asks = { title: 'Ship to marker7?', details: { to: 'marker7' }, timeout: '1h' };
  const id = await tenant.start('staged/v1.0/asks-person', { asks }, alice);
  await tenant.jobIn(id, 'waiting');
  const { body } = await tenant.get(`/api/approvals?job_id=${id}`);
  const one = `/api/approvals/${body.data[0].id}/approve`;
  expect((await tenant.post(one, { reason: 'marker7 paid' })).status).toBe(200);
  await tenant.jobIn(id, 'completed');
}

/** A batch for the user, of which one job fails and one item is refused; its id. */
async function runBatch(tenant: Tenant): Promise<string> {
  const user = { user_id: 'alice marker7' };
  const items = [
    { skill: 'util/v1.0/echo', input: { text: 'marker7 in a batch' }, ...user },
    { skill: play, input: acting({ fail: { message: 'marker7', retryable: false } }), ...user },
    { skill: 'util/v1.0/echo', input: { marker7: 1 }, ...user },
  ];
  const { body } = await tenant.post('/api/batches', { items });
  for (const one of body.items.slice(0, 2)) await tenant.jobIn(one.job_id, 'completed', 'failed');
  return body.id;
}

/** Everything that a user can leave behind. */
async function withTraces(on = platform) {
  const tenant = await newTenant(on);
  const webhook = await tenant.post('/api/agent-webhooks', {
    agent_id: 'default',
    url: 'https://example.com/hook',
    events: ['skill.completed', 'skill.failed', 'conversation.created'],
  });
  expect(webhook.status).toBe(201);
  const remembered = await act(
    tenant,
    [
      { remember: { content: 'marker7 likes tea' } },
      { remember: { content: 'marker7 told all', whose: 'agent' } },
      { remember: { content: 'marker7 brief' } },
    ],
    alice,
  );
  await act(tenant, [{ forget: remembered.body.output[2].id }], alice);
  await tenant.post(memories, { content: 'marker7 by a client', user_id: 'alice marker7' });
  await tenant.post(memories, { content: 'kept', user_id: 'bob' });
  const profile = '/api/agents/default/profiles/alice%20marker7';
  expect((await tenant.put(profile, { content: 'marker7 likes tea' })).status).toBe(200);
  const failing = await tenant.run(
    memory,
    { attempts: [[{ remember: { content: 'marker7 lost' } }, { fail: 'marker7 failed' }]] },
    alice,
  );
  await tenant.jobIn(failing.body.job_id, 'failed');
  const said = acting({ log: 'marker7 logged' }, { message: ['assistant', 'marker7 said'] });
  await tenant.run(play, said, { ...alice, 'idempotency-key': 'a key of marker7' });
  await takeEvent(tenant);
  await decideApproval(tenant);
  const ofBob = await act(tenant, [{ recall: { whose: 'user' } }], { 'x-user-id': 'bob' });
  return { tenant, remembered: remembered.body, failed: failing.body, ofBob: ofBob.body };
}

test('the data of a user are erased from every table, and the rows of its jobs stay', async () => {
  const { tenant, remembered, failed, ofBob } = await withTraces();
  const batch = await runBatch(tenant);
  const before = await tablesWith('marker7');
  expect(before).toEqual(expect.arrayContaining(['conversations', 'jobs', 'memories', 'messages']));
  const exported = await tenant.get(path);
  const jobsBefore = (await tenant.get('/api/jobs')).body.total;

  const { status, body } = await tenant.delete(path);

  expect({ status, body }).toEqual({
    status: 200,
    body: {
      ...{ done: true, waits_for: null, waits_for_log: false, open_jobs: 0 },
      // With the profile.
      ...{ memories: 4, files: 0, conversations: 8, jobs: 8 },
    },
  });
  expect(await tablesWith('marker7')).toEqual([]);
  expect((await tenant.get('/api/jobs')).body.total).toBe(jobsBefore);
  expect((await tenant.get(`/api/jobs/${remembered.job_id}`)).body).toMatchObject({
    status: 'completed',
    input: null,
    output: null,
    user_id: 'erased',
    erased_at: expect.any(String),
  });
  expectRefusal(await tenant.post(`/api/jobs/${failed.job_id}/retry`), 422, 'job_not_retryable');
  expect((await tenant.get(`/api/batches/${batch}`)).body).toMatchObject({
    counts: { completed: 1, failed: 1 },
    progress: 1,
  });
  const retried = await tenant.post(`/api/batches/${batch}/retry`);
  expect(retried.body).toMatchObject({ retried: 0, done: true });
  expectRefusal(
    await tenant.get(`/api/conversations/${remembered.conversation_id}`),
    404,
    'not_found',
  );
  expect((await tenant.get(`/api/jobs/${ofBob.job_id}`)).body).toMatchObject({ user_id: 'bob' });
  expect((await tenant.get(memories)).body).toMatchObject({
    data: [{ content: 'kept' }],
    total: 1,
  });
  const kinds = exported.text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(kinds.find(({ type }) => type === 'profile')).toMatchObject({
    agent_id: 'default',
    content: 'marker7 likes tea',
  });
  expect(kinds.at(-1)).toEqual({
    type: 'end',
    user_id: 'alice marker7',
    ...{
      memories: 2,
      profiles: 1,
      files: 0,
      conversations: 8,
      messages: expect.any(Number),
      jobs: 8,
    },
  });
  const again = await tenant.delete(path);
  expect(again.body).toEqual({
    done: true,
    waits_for: null,
    waits_for_log: false,
    open_jobs: 0,
    memories: 0,
    files: 0,
    conversations: 0,
    jobs: 0,
  });
});

/** What an erasure works with, on the platform's database; its clock jumps 20 s when it has been read so often. */
function erasureLateAfter(reads: number, { organization }: Tenant) {
  const { database } = platform;
  const { memories } = composeAgents(contextOf({ database, clock: systemClock }));
  let left = Infinity;
  const clock = {
    ...systemClock,
    monotonic: (): number => {
      left -= 1;
      return left < 0 ? 20_000 : 0;
    },
  };
  const cancel = () => Promise.reject(new Error('No job is to be cancelled.'));
  const jobs = { cancel } as Partial<Jobs> as Jobs;
  const files = new Files(contextOf({ database, clock }), null);
  const deps = {
    database,
    clock,
    memories,
    files,
    jobs,
    writer: 'test',
    log: createLogger('silent'),
  };
  const user = { organizationId: organization, userId: 'alice marker7' };
  return {
    ...deps,
    erase: (changed: Partial<typeof deps> = {}) => {
      left = reads;
      const used = { ...deps, ...changed };
      return new UserData(contextOf(used), used).erase(user);
    },
  };
}

test('an erasure that is late each time ends after some repetitions', async () => {
  const { tenant } = await withTraces();
  const { erase } = erasureLateAfter(12, tenant);
  const answers: Erased[] = [];

  for (let isDone = false; !isDone && answers.length < 50; isDone = answers.at(-1)?.done === true) {
    answers.push(await erase());
  }

  expect(answers.length).toBeGreaterThan(2);
  expect(answers.at(-1)).toMatchObject({ done: true });
  const sum = (name: 'memories' | 'conversations' | 'jobs') =>
    answers.reduce((all, one) => all + one[name], 0);
  expect([sum('memories'), sum('conversations'), sum('jobs')]).toEqual([4, 6, 6]);
  expect(await tablesWith('marker7')).toEqual([]);
});

test('an erasure waits for a log that another transaction holds, instead of asking for a repetition', async () => {
  const { tenant } = await withTraces();
  const { database, erase } = erasureLateAfter(Infinity, tenant);
  let tries = 0;
  const emptyLog = async () => {
    tries += 1;
    return tries > 2 && database.emptyLog();
  };

  expect(await erase({ database: { ...database, emptyLog } })).toMatchObject({ done: true });
  expect(tries).toBe(3);
});

test('an erasure whose time ends while another transaction holds the log says so', async () => {
  const { tenant } = await withTraces();
  const { database, clock, erase } = erasureLateAfter(Infinity, tenant);
  let now = 0;
  const emptyLog = () => {
    now += 60_000;
    return Promise.resolve(false);
  };

  const answer = await erase({
    database: { ...database, emptyLog },
    clock: { ...clock, monotonic: () => now },
  });

  expect(answer).toMatchObject({ done: false, waits_for: null, waits_for_log: true, jobs: 6 });
  expect(await erase()).toMatchObject({ done: true, waits_for_log: false });
});

test('what the jobs of others in a conversation of the user have started is erased, too', async () => {
  const tenant = await newTenant(platform);
  const family = 'staged/v1.0/family';
  const subscribed = await tenant.post('/api/agent-webhooks', {
    agent_id: 'default',
    url: 'https://example.com/hook',
    events: ['skill.completed'],
  });
  expect(subscribed.status).toBe(201);
  const { body: first } = await act(tenant, [{ remember: { content: 'marker8 told' } }], alice);
  const said = { ...acting({ log: 'marker8' }, { message: ['assistant', 'marker8'] }) };
  const below = { skill: play, input: { ...said, output: 'marker8' } };
  const bob = { 'x-user-id': 'bob' };
  const { body: ofBob } = await tenant.run(
    family,
    { jobs: [{ skill: family, input: { jobs: [below] } }, below] },
    bob,
  );
  expect(ofBob).toMatchObject({ output: [['marker8'], 'marker8'] });
  const { kysely } = platform.database.read;
  const children = await kysely
    .selectFrom('jobs')
    .select(['id', 'conversation_id'])
    .where('parent_job_id', '=', ofBob.job_id)
    .execute();
  // Only agents continue conversations. These two are as if they had: that of the user, and that of a child.
  const { body: later } = await tenant.run(play, { ...said, output: null }, bob);
  const continues = async (job: typeof later, conversation_id: string) => {
    for (const [table, key] of [
      ['jobs', 'id'],
      ['messages', 'job_id'],
    ] as const) {
      await platform.database.write(async (tx) => {
        await sql`update ${sql.table(table)} set conversation_id = ${conversation_id}
          where ${sql.ref(key)} = ${job.job_id}`.execute(tx.kysely);
      });
    }
  };
  await continues(ofBob, first.conversation_id);
  await continues(later, children[0]?.conversation_id ?? '');
  const { body: other } = await act(tenant, [{ recall: {} }], bob);
  expect(await tablesWith('marker8')).toEqual(expect.arrayContaining(['jobs', 'messages']));

  const { body } = await tenant.delete(path);

  expect(body).toEqual({
    done: true,
    open_jobs: 0,
    waits_for: null,
    waits_for_log: false,
    memories: 1,
    files: 0,
    conversations: 4,
    jobs: 6,
  });
  expect(await tablesWith('marker8')).toEqual([]);
  expect((await tenant.get(`/api/jobs/${children[0]?.id}`)).body).toMatchObject({
    status: 'completed',
    user_id: 'erased',
  });
  expect((await tenant.get(`/api/jobs/${other.job_id}`)).body).toMatchObject({ user_id: 'bob' });
});

test('what runs for the user remembered for the agent is erased when their jobs are gone, too', async () => {
  const tenant = await newTenant(platform);
  const content = 'marker9 is on leave';
  const { body } = await act(tenant, [{ remember: { content, whose: 'agent' } }], alice);
  await platform.database.write(async (tx) => {
    await tx.kysely.deleteFrom('messages').where('job_id', '=', body.job_id).execute();
    await tx.kysely.deleteFrom('conversations').where('id', '=', body.conversation_id).execute();
    await tx.kysely.deleteFrom('jobs').where('id', '=', body.job_id).execute();
  });
  expect((await tenant.get(memories)).body).toMatchObject({ data: [{ content }] });

  expect((await tenant.delete(path)).body).toMatchObject({ done: true, memories: 1, jobs: 0 });
  expect((await tenant.get(memories)).body.total).toBe(0);
});

test('an export has memories, conversations with messages, and jobs with input and output', async () => {
  const tenant = await newTenant(platform);
  const { body: job } = await act(tenant, [{ remember: { content: 'likes tea' } }], alice);
  await act(tenant, [{ remember: { content: 'of bob' } }], { 'x-user-id': 'bob' });

  const { status, headers, text } = await tenant.get(path);

  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8');
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { type: 'memory', content: 'likes tea', source: { job_id: job.job_id } },
    { type: 'conversation', id: job.conversation_id, user_id: 'alice marker7' },
    { type: 'job', job_id: job.job_id, input: { attempts: [[{}]] }, output: [{}] },
    { type: 'message', role: 'user', job_id: job.job_id },
    { type: 'message', role: 'assistant' },
    { type: 'end', memories: 1, conversations: 1, messages: 2, jobs: 1 },
  ]);
  expect(text).not.toContain('bob');
});

test('the data of a user are not erased while one of its jobs runs', async () => {
  const tenant = await newTenant(platform);
  const held = gate();
  await tenant.post(memories, { content: 'kept', user_id: 'alice marker7' });
  const id = await tenant.start(memory, { attempts: [[{ until: held.path }]] }, alice);

  const refused = await tenant.delete(path);

  expectRefusal(refused, 409, 'conflict');
  expect(refused.body.message ?? refused.text).toContain(id);
  expect((await tenant.get(memories)).body.total).toBe(1);
  held.open();
  await tenant.jobIn(id, 'completed');
  expect((await tenant.delete(path)).body).toMatchObject({ done: true, memories: 1, jobs: 1 });
});

test('open jobs are counted and linked in the refusal, and cancelled on request', async () => {
  const tenant = await newTenant(platform);
  const held = gate();
  const ids: string[] = [];
  for (let i = 0; i < 7; i++) {
    ids.push(await tenant.start(play, acting({ until: held.path }), alice));
  }
  const listener = { acts: [{ wait: { event: 'never' } }] };
  const waiting = await tenant.start('staged/v1.0/listener', listener, alice);
  await tenant.jobIn(waiting, 'waiting');
  await tenant.start(play, acting({ until: held.path }), { 'x-user-id': 'bob' });
  const mine = await tenant.get('/api/jobs?user_id=alice%20marker7&limit=200');

  const refused = await tenant.delete(path);
  const { status, body } = await tenant.delete(`${path}?cancel_jobs=true`);

  expectRefusal(refused, 409, 'conflict');
  expect(refused.text).toContain('not ended: 8 (');
  expect(refused.text).toContain(`/api/jobs/${ids[0]}`);
  expect(refused.text).toContain('/api/jobs?user_id=alice%20marker7');
  expect(refused.text).toContain('cancel_jobs=true');
  expect({ status, body }).toMatchObject({
    status: 200,
    body: { done: true, waits_for: null, open_jobs: 0, jobs: 8 },
  });
  expect(mine.body.total).toBe(8);
  expect((await tenant.get('/api/jobs?user_id=alice%20marker7')).body.total).toBe(0);
  for (const id of [...ids, waiting]) {
    expect((await tenant.get(`/api/jobs/${id}`)).body).toMatchObject({
      ...{ status: 'cancelled', user_id: 'erased', input: null },
    });
  }
  expect((await tenant.get('/api/jobs?user_id=bob')).body.data).toMatchObject([
    { status: 'active' },
  ]);
});

test('a value of cancel_jobs other than true and false is 400 validation_error', async () => {
  const tenant = await newTenant(platform);

  expectInvalid(await tenant.delete(`${path}?cancel_jobs=yes`), 'cancel_jobs');
});

embeddedTest(
  'no byte of a user is left in the files of the database after an erasure',
  async () => {
    const own = await startStaged({ stores: 'embedded' });
    onTestFinished(() => own.stop());
    const { tenant } = await withTraces(own);
    const bytes = () =>
      ['skillwright.db', 'skillwright.db-wal']
        .map((name) => join(own.dataDir, name))
        .filter((file) => existsSync(file))
        .map((file) => readFileSync(file, 'latin1').split('marker7').length - 1);
    expect(Math.max(...bytes())).toBeGreaterThan(0);

    expect((await tenant.delete(path)).body).toMatchObject({ done: true });

    expect(bytes().filter((found) => found > 0)).toEqual([]);
  },
);

test('a repetition looks through the events from where the one before stopped', async () => {
  const tenant = await newTenant(platform);
  const { erase, database } = erasureLateAfter(6, tenant);
  const event = (i: number) => ({
    ...{ id: newId(), organization_id: tenant.organization, agent_id: 'default' },
    ...{ type: 'conversation.created', created_at: 0 },
    data: JSON.stringify({ user_id: i % 1_000 === 999 ? 'alice marker7' : 'bob', i }),
  });
  await database.write((tx) =>
    tx.insert(
      'events',
      Array.from({ length: 3_000 }, (_, i) => event(i)),
    ),
  );
  const { kysely } = database.read;
  const progress = () =>
    kysely
      .selectFrom('user_erasures')
      .select('user_id')
      .where('organization_id', '=', tenant.organization)
      .execute();

  expect(await erase()).toMatchObject({ done: false });
  expect(await progress()).toEqual([{ user_id: 'alice marker7' }]);
  const first = kysely
    .selectFrom('events')
    .select('seq')
    .where('organization_id', '=', tenant.organization)
    .orderBy('seq')
    .limit(1);
  const data = JSON.stringify({ user_id: 'alice marker7', first: true });
  await database.write((tx) =>
    tx.kysely.updateTable('events').set({ data }).where('seq', '=', first).execute(),
  );
  let answer = await erase();
  for (let i = 0; i < 20 && !answer.done; i++) answer = await erase();

  expect(answer).toMatchObject({ done: true });
  expect(await progress()).toEqual([]);
  const told = kysely.selectFrom('events').select('data').where('data', 'like', '%alice marker7%');
  expect(await told.execute()).toEqual([{ data }]);
  await tenant.delete(path);
  expect(await told.execute()).toEqual([]);
});

test('a job that is accepted during an erasure is left, and named', async () => {
  const tenant = await newTenant(platform);
  const held = gate();
  const steps = [{ remember: { content: 'likes tea' } }];
  const before = await act(tenant, steps, alice);
  const { memories, erase } = erasureLateAfter(Infinity, tenant);
  let started = '';
  const eraseMemories: typeof memories.eraseUser = async (...asked) => {
    const erased = await memories.eraseUser(...asked);
    started ||= await tenant.start(memory, { attempts: [[{ until: held.path }]] }, alice);
    return erased;
  };

  const answer = await erase({
    memories: Object.create(memories, { eraseUser: { value: eraseMemories } }),
  });

  expect(answer).toMatchObject({ done: false, waits_for: started, memories: 1, jobs: 1 });
  expect((await tenant.get(`/api/jobs/${before.body.job_id}`)).body.user_id).toBe('erased');
  expectRefusal(await tenant.delete(path), 409, 'conflict');
  held.open();
  await tenant.jobIn(started, 'completed');
  expect((await tenant.delete(path)).body).toMatchObject({ done: true, waits_for: null, jobs: 1 });
});

test('other organizations and keys without the scope reach no data of a user', async () => {
  const tenant = await newTenant(platform);
  await tenant.post(memories, { content: 'kept', user_id: 'alice marker7' });
  const stranger = await newTenant(platform);
  const { organization: organization_id } = tenant;
  const narrow = await newTenant(platform, { organization_id, scopes: ['staged'] });
  const clerk = await newTenant(platform, { organization_id, scopes: ['user-data'] });

  for (const method of ['GET', 'DELETE']) {
    expectRefusal(await narrow.send(method, path), 403, 'insufficient_scope');
  }
  expect((await stranger.delete(path)).body).toMatchObject({ memories: 0 });
  expect((await clerk.get(path)).text).toContain('kept');
  expect((await clerk.delete(path)).body).toMatchObject({ done: true, memories: 1 });
});

/** The bytes of the files in an export, by the name of the file. */
function filesIn(exported: string): Record<string, string> {
  const lines = exported
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const parts = Map.groupBy(lines, ({ file_id }) => file_id);
  const files = lines.filter(({ type }) => type === 'file');
  return Object.fromEntries(
    files.map(({ id, name }) => [
      name,
      (parts.get(id) ?? []).map(({ base64 }) => Buffer.from(base64, 'base64').toString()).join(''),
    ]),
  );
}

embeddedTest('files of the user are taken out with their bytes, and erased', async () => {
  const tenant = await newTenant(platform);
  const keep = (name: string, body: string, headers = {}) =>
    tenant.send('POST', `/api/files?name=${name}`, { body, headers });
  const long = 'marker7 '.repeat(50_000);
  await keep('long', long, alice);
  await keep('short', 'also of marker7', alice);
  const other = await keep('other', long, { 'x-user-id': 'bob' });

  const exported = await tenant.get(path);
  const erased = await tenant.delete(path);

  expect(filesIn(exported.text)).toEqual({ long, short: 'also of marker7' });
  expect(JSON.parse(exported.text.trim().split('\n').at(-1) ?? '')).toMatchObject({ files: 2 });
  expect(erased.body).toMatchObject({ done: true, files: 2 });
  const left = await tenant.get('/api/files');
  expect(left.body.data).toEqual([other.body]);
  // Bob's file has the same bytes as one of those.
  const { text } = await tenant.get(`/api/files/${other.body.id}/content`);
  expect(text).toBe(long);
  expect(readdirSync(join(platform.dataDir, 'files', tenant.organization))).toHaveLength(1);
});

embeddedTest('an export has the row of a file whose bytes the storage has lost', async () => {
  const tenant = await newTenant(platform);
  const kept = await tenant.send('POST', '/api/files', { body: 'of marker7', headers: alice });
  rmSync(join(platform.dataDir, 'files', tenant.organization), { recursive: true });

  const { text } = await tenant.get(path);

  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines[0]).toEqual({ type: 'file', ...kept.body });
  expect(lines[1]).toEqual({ type: 'file-lost', file_id: kept.body.id });
  expect(lines.at(-1)).toMatchObject({ type: 'end', files: 1 });
});

embeddedTest('an export says of which files the storage has other bytes', async () => {
  const tenant = await newTenant(platform);
  const keep = (body: string) => tenant.send('POST', '/api/files', { body, headers: alice });
  const { body: first } = await keep('marker7 '.repeat(50_000));
  const folder = join(platform.dataDir, 'files', tenant.organization);
  writeFileSync(join(folder, readdirSync(folder)[0] ?? ''), 'others! '.repeat(50_000));
  const { body: second } = await keep('of marker7');

  const { text } = await tenant.get(path);

  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const lost = lines.findIndex(({ type }) => type === 'file-lost');
  expect(lines[lost]).toEqual({ type: 'file-lost', file_id: first.id });
  expect(lines.slice(lost + 1)).toMatchObject([
    { type: 'file', id: second.id },
    { type: 'file-part', file_id: second.id },
    { type: 'end', files: 2 },
  ]);
});

embeddedTest('an erasure is not done before the bytes of files are gone', async () => {
  const tenant = await newTenant(platform);
  await tenant.send('POST', '/api/files', { body: 'of marker7', headers: alice });
  const folder = join(platform.dataDir, 'files', tenant.organization);
  const stored = join(folder, readdirSync(folder)[0] ?? '');
  // What cannot be removed as a file.
  rmSync(stored);
  mkdirSync(stored);

  const statuses = [(await tenant.delete(path)).status, (await tenant.delete(path)).status];
  rmSync(stored, { recursive: true });

  expect(statuses).toEqual([500, 500]);
  expect((await tenant.delete(path)).body).toMatchObject({ done: true });
});
