import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deleteExpired } from '../../src/core/jobs/retention.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { removeApprovals } from '../../src/platform/approvals/approvals.ts';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { recordEvents } from '../support/outbox.ts';
import { sendRaw } from '../support/raw-http.ts';
import { answering, inTurn } from '../support/scripted-provider.ts';
import { newTenant } from '../support/tenant.ts';
import {
  newThinker as newUnrecorded,
  runTask,
  startThinkers,
  type Thinker,
  type Thinkers,
} from '../support/thinkers.ts';

/** A thinker whose events are recorded. */
const newThinker: typeof newUnrecorded = async (...given) => {
  const thinker = await newUnrecorded(...given);
  await recordEvents(world.platform.database, thinker.organization);
  return thinker;
};

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const since = (before: number) => world.provider.requests.slice(before);
const soFar = () => world.provider.requests.length;
const goingOn = (id: string) => ({ 'x-conversation-id': id });
const unknownId = '0198c0de-0000-7000-8000-000000000000';

/** Who says what to the model, without the system prompt. */
const dialogueOf = (request: { messages: readonly { role: string; content: unknown }[] }) =>
  request.messages.filter(({ role }) => role !== 'system' && role !== 'developer');

/** A job that waits for its model until it is let go on. */
async function waiting(thinker: Thinker, headers: Record<string, string> = {}) {
  const held = Promise.withResolvers<void>();
  const before = soFar();
  world.provider.script(() => ({ text: 'Late.', until: held.promise }));
  const jobId = await thinker.begin('Wait', headers);
  await world.provider.received(before + 1);
  const { body } = await thinker.get(`/api/jobs/${jobId}`);
  return { jobId, conversationId: body.conversation_id as string, letGo: () => held.resolve() };
}

describe('x-conversation-id', () => {
  test('is refused with 409 conflict while another run of the conversation is active', async () => {
    const thinker = await newThinker(world.platform);
    const { conversationId, jobId, letGo } = await waiting(thinker);
    const refused = await thinker.post(
      `/api/${runTask}`,
      { task: 'Me too' },
      { ...thinker.named, ...goingOn(conversationId) },
    );
    letGo();
    await thinker.jobIn(jobId, 'completed');

    expectRefusal(refused, 409, 'conflict');
    world.provider.script(answering('Now.'));
    const job = await thinker.task('Me too', {}, goingOn(conversationId));
    expect(job.status).toBe('completed');
    const said = await thinker.messages(conversationId);
    expect(said).toHaveLength(4);
  });

  test('given by many at once lets exactly one go on', async () => {
    const thinker = await newThinker(world.platform);
    world.provider.script(answering('Yes.'));
    const first = await thinker.task('First');
    const held = Promise.withResolvers<void>();
    world.provider.script(() => ({ text: 'Late.', until: held.promise }));

    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        thinker.post(
          `/api/${runTask}`,
          { task: `Number ${n}` },
          { ...thinker.named, ...goingOn(first.conversation_id) },
        ),
      ),
    );
    held.resolve();

    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([202, 409, 409, 409, 409, 409, 409, 409]);
    const accepted = answers.find(({ status }) => status === 202);
    await thinker.jobIn(accepted?.body.job_id, 'completed');
    expect(await thinker.messages(first.conversation_id)).toHaveLength(4);
  });

  test('of another agent, of another organization or unknown is 404 not_found', async () => {
    const thinker = await newThinker(world.platform);
    const stranger = await newThinker(world.platform);
    world.provider.script(answering('Yes.'));
    const { conversation_id: id } = await thinker.task('First');
    const ask = (who: Thinker, conversation: string, named = who.named) =>
      who.post(`/api/${runTask}`, { task: 'x' }, { ...named, ...goingOn(conversation) });

    expectRefusal(await ask(thinker, id, {}), 404, 'not_found');
    expectRefusal(await ask(stranger, id), 404, 'not_found');
    expectRefusal(await ask(thinker, unknownId), 404, 'not_found');
    expectRefusal(await ask(thinker, 'no-id'), 404, 'not_found');
    expectRefusal(await ask(thinker, ''), 404, 'not_found');
    expect(await thinker.messages(id)).toHaveLength(2);
  });

  test('is refused with 400 by a skill that begins its own, and when it is given twice', async () => {
    const thinker = await newThinker(world.platform);
    world.provider.script(answering('Yes.'));
    const { conversation_id: id } = await thinker.task('First');

    const headers = { ...thinker.named, ...goingOn(id) };
    expectInvalid(
      await thinker.post('/api/text/v1.0/word-count', { text: 'x' }, headers),
      'x-conversation-id',
    );
    const body = '{"task":"x"}';
    const twice = await sendRaw(
      world.platform.url,
      [
        `POST /api/${runTask} HTTP/1.1`,
        'host: localhost',
        `x-api-key: ${thinker.key}`,
        'x-agent-id: thinker',
        `x-conversation-id: ${id}`,
        `x-conversation-id: ${id}`,
        'content-type: application/json',
        `content-length: ${body.length}`,
        '',
        body,
      ].join('\r\n'),
    );
    expectRefusal(twice, 400, 'validation_error');
    expect(await thinker.messages(id)).toHaveLength(2);
  });

  test('is refused when it is given twice with an unknown agent, and the platform keeps running', async () => {
    const { key } = await newThinker(world.platform);
    const headers = ['x-agent-id: no-agent', 'x-conversation-id: a', 'x-conversation-id: b'];
    const request = [`POST /api/${runTask} HTTP/1.1`, 'host: localhost', `x-api-key: ${key}`];
    const body = 'content-type: application/json\r\ncontent-length: 2\r\n\r\n{}';

    const answer = await sendRaw(world.platform.url, [...request, ...headers, body].join('\r\n'));

    expectRefusal(answer, 400, 'validation_error');
    expect((await world.platform.request('GET', '/health')).status).toBe(200);
  });

  test('with an Idempotency-Key answers a repeat with the first job, active or ended', async () => {
    const thinker = await newThinker(world.platform);
    world.provider.script(answering('Yes.'));
    const first = await thinker.task('First');
    const headers = { ...goingOn(first.conversation_id), 'idempotency-key': 'one' };
    const { jobId, letGo } = await waiting(thinker, headers);
    const ask = (task: string) =>
      thinker.post(`/api/${runTask}`, { task }, { ...thinker.named, ...headers });

    const whileActive = await ask('Wait');
    const another = await ask('Something else');
    const elsewhere = await thinker.post(
      `/api/${runTask}`,
      { task: 'Wait' },
      { ...thinker.named, 'idempotency-key': 'one' },
    );
    letGo();
    await thinker.jobIn(jobId, 'completed');
    const afterwards = await ask('Wait');

    expect(whileActive).toMatchObject({ status: 202, body: { job_id: jobId } });
    expect(whileActive.headers.get('idempotent-replayed')).toBe('true');
    expect(afterwards).toMatchObject({ status: 202, body: { job_id: jobId } });
    expectRefusal(another, 422, 'idempotency_key_reused');
    expectRefusal(elsewhere, 422, 'idempotency_key_reused');
    expect(await thinker.messages(first.conversation_id)).toHaveLength(4);
  });

  test('that was refused takes no Idempotency-Key', async () => {
    const thinker = await newThinker(world.platform);
    const { conversationId, jobId, letGo } = await waiting(thinker);
    const headers = { ...goingOn(conversationId), 'idempotency-key': 'two' };
    const ask = () =>
      thinker.post(`/api/${runTask}`, { task: 'Next' }, { ...thinker.named, ...headers });

    expectRefusal(await ask(), 409, 'conflict');
    letGo();
    await thinker.jobIn(jobId, 'completed');

    const accepted = await ask();
    expect(accepted).toMatchObject({ status: 202 });
    expect(accepted.headers.get('idempotent-replayed')).toBeNull();
    await thinker.jobIn(accepted.body.job_id, 'completed');
  });

  test('of a paused agent is 422 agent_paused', async () => {
    const thinker = await newThinker(world.platform);
    world.provider.script(answering('Yes.'));
    const { conversation_id: id } = await thinker.task('First');
    await thinker.put('/api/agents/thinker', { status: 'paused' });

    const answer = await thinker.post(
      `/api/${runTask}`,
      { task: 'x' },
      { ...thinker.named, ...goingOn(id) },
    );

    expectRefusal(answer, 422, 'agent_paused');
  });
});

describe('a job that went on with a conversation', () => {
  test('is continued by a retry, but not while another run is active', async () => {
    const thinker = await newThinker(world.platform);
    const { task, post, jobIn } = thinker;
    world.provider.script(answering('My name is Ada.'));
    const first = await task('Who are you?');
    world.provider.script(() => ({ fault: { status: 400 } }));
    const failed = await task('Say it again', {}, goingOn(first.conversation_id));
    const { jobId, letGo } = await waiting(thinker, goingOn(first.conversation_id));

    const refused = await post(`/api/jobs/${failed.job_id}/retry`);
    letGo();
    await jobIn(jobId, 'completed');
    const before = soFar();
    world.provider.script(answering('Ada.'));
    const { body: retried } = await post(`/api/jobs/${failed.job_id}/retry`);
    const { body: job } = await jobIn(retried.job_id, 'completed', 'failed');

    expectRefusal(refused, 409, 'conflict');
    expect(job).toMatchObject({
      status: 'completed',
      conversation_id: first.conversation_id,
      retry_of: failed.job_id,
    });
    const said = dialogueOf(since(before)[0] as never);
    expect(JSON.stringify(said)).toContain('My name is Ada.');
    expect(JSON.stringify(said.at(-1))).toContain('Say it again');
  });

  test('has its own tokens, input and output', async () => {
    const { task, get } = await newThinker(world.platform);
    world.provider.script(answering('One.', { usage: { prompt: 5, completion: 1 } }));
    const first = await task('First');
    world.provider.script(answering('Two.', { usage: { prompt: 7, completion: 2 } }));
    const second = await task('Second', {}, goingOn(first.conversation_id));

    const { body } = await get(`/api/jobs/${first.job_id}`);
    expect(body).toMatchObject({ output: { answer: 'One.' }, token_stats: { total_tokens: 6 } });
    expect(second).toMatchObject({ output: { answer: 'Two.' }, token_stats: { total_tokens: 9 } });
  });
});

describe('a continued conversation', () => {
  test('is one in lists and counts, of the kind that it began as, and began once', async () => {
    const thinker = await newThinker(world.platform);
    const { get, post, jobIn, task, organization } = thinker;
    world.provider.script(answering('Yes.'));
    const trigger = await post('/api/agent-triggers', {
      ...{ agent_id: 'thinker', name: 'Calls', skill_category: 'agent', skill_name: 'run-task' },
    });
    const called = await world.platform.request('POST', new URL(trigger.body.url).pathname, {
      body: { task: 'Called' },
    });
    const begun = (await jobIn(called.body.job_id, 'completed')).body;
    const own = await task('Asked');
    for (const id of [begun.conversation_id, own.conversation_id, begun.conversation_id]) {
      expect(await task('More', {}, goingOn(id))).toMatchObject({ trigger_type: 'api' });
    }
    world.provider.script(() => ({ fault: { status: 400 } }));
    await task('And fail', {}, goingOn(own.conversation_id));

    const counted = async (filter: string) => {
      const { body, headers } = await get(`/api/conversations?${filter}`);
      expect(body).toHaveLength(Number(headers.get('x-total-count')));
      return body.length;
    };
    expect(await counted('')).toBe(2);
    expect(await counted('status=active')).toBe(0);
    expect(await counted('status=completed')).toBe(1);
    expect(await counted('status=failed')).toBe(1);
    expect(await counted(`trigger_type=${begun.trigger_type}`)).toBe(1);
    expect(await counted(`trigger_type=${begun.trigger_type}&status=completed`)).toBe(1);
    expect(await counted('trigger_type=api&status=failed')).toBe(1);
    const shown = await get(`/api/conversations/${begun.conversation_id}`);
    expect(shown.body).toMatchObject({ trigger_type: begun.trigger_type, status: 'completed' });
    expect(shown.body.updated_at > shown.body.created_at).toBe(true);
    const events = await world.platform.database.read.kysely
      .selectFrom('events')
      .select('data')
      .where('type', '=', 'conversation.created')
      .where('organization_id', '=', organization)
      .execute();
    expect(events).toHaveLength(2);
  });

  test('is active while a job continues it', async () => {
    const thinker = await newThinker(world.platform);
    world.provider.script(answering('Yes.'));
    const { conversation_id: id } = await thinker.task('First');
    const { jobId, letGo } = await waiting(thinker, goingOn(id));

    const during = await thinker.get(`/api/conversations/${id}`);
    const active = await thinker.get('/api/conversations?status=active');
    letGo();
    await thinker.jobIn(jobId, 'completed');
    const after = await thinker.get(`/api/conversations/${id}`);

    expect(during.body.status).toBe('active');
    expect(active.headers.get('x-total-count')).toBe('1');
    expect(after.body.status).toBe('completed');
  });

  test('keeps the messages of jobs within the retention', async () => {
    const { task, get, messages, tokens } = await newThinker(world.platform);
    const usage = { prompt: 5, completion: 1 };
    world.provider.script(inTurn({ text: 'One.', usage }, { text: 'Two.', usage }));
    const first = await task('First');
    await expect.poll(() => Date.now()).toBeGreaterThan(Date.parse(first.finished_at) + 1);
    await task('Second', {}, goingOn(first.conversation_id));
    const { database } = world.platform;
    const days = 30;
    // Between the two jobs: the id of the second may be a millisecond older than its creation time.
    const now = Date.parse(first.finished_at) + 1 + days * 86_400_000;
    const clock = { ...systemClock, now: () => now };

    const parts = {
      database,
      clock,
      writer: 'embedded',
      readTo: null,
      removeOfJobs: removeApprovals,
    };
    await deleteExpired(parts, days);

    expect((await get(`/api/jobs/${first.job_id}`)).status).toBe(404);
    expect((await get(`/api/jobs/${first.job_id}/steps`)).status).toBe(404);
    const said = await messages(first.conversation_id);
    expect(said.map(({ content }: { content: string }) => content)).toEqual([
      ...['{"task":"Second"}', 'Two.'],
    ]);
    expect(await tokens(first.conversation_id)).toMatchObject({ total_tokens: 6 });
    const before = soFar();
    const third = await task('Third', {}, goingOn(first.conversation_id));
    expect(third.status).toBe('completed');
    expect(dialogueOf(since(before)[0] as never)).toHaveLength(3);
    const list = await get('/api/conversations');
    expect(list.headers.get('x-total-count')).toBe('1');
  });
});

test('a stranger of the same organization without the scope may not go on with a conversation', async () => {
  const thinker = await newThinker(world.platform);
  world.provider.script(answering('Yes.'));
  const { conversation_id: id } = await thinker.task('First');
  const other = await newTenant(world.platform, {
    organization_id: thinker.organization,
    scopes: ['text'],
  });

  const answer = await other.post(
    `/api/${runTask}`,
    { task: 'x' },
    { ...thinker.named, ...goingOn(id) },
  );

  expectRefusal(answer, 403, 'insufficient_scope');
});

test('an agent cannot continue a conversation of a deleted agent with its id', async () => {
  const thinker = await newThinker(world.platform);
  world.provider.script(answering('A secret.'));
  const first = await thinker.task('Tell me a secret');
  const path = `/api/agents/${thinker.agentId}`;
  const { body: agent } = await thinker.get(path);
  expect((await thinker.delete(path)).status).toBe(204);
  expect((await thinker.post('/api/agents', { id: agent.id, model: agent.model })).status).toBe(
    201,
  );

  const answer = await thinker.post(
    `/api/${runTask}`,
    { task: 'What was the secret?' },
    { ...thinker.named, ...goingOn(first.conversation_id) },
  );

  expectRefusal(answer, 404, 'not_found');
});
