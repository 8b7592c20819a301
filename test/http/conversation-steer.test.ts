/** `x-conversation-mode: steer`: messages for a run that works (docs/decisions/conversations.md). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectRefusal } from '../support/expectations.ts';
import { inTurn, type Reply } from '../support/scripted-provider.ts';
import { acting, gate, play } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import {
  newThinker,
  runTask,
  startWatchedThinkers,
  type Thinker,
  toolNamed,
  type WatchedThinkers,
} from '../support/thinkers.ts';

let world: WatchedThinkers;
beforeAll(async () => {
  world = await startWatchedThinkers();
});
afterAll(() => world.stop());

const soFar = () => world.provider.requests.length;

/** What the dialogue says after a model's first answer, in each protocol. */
const saidIn = (n: number) => JSON.stringify(world.provider.requests[n]?.messages);

/** A job whose tool is under way until it is let go on; `replies` follow the call of the tool. */
async function working(
  thinker: Thinker,
  { replies, ...headers }: { replies: readonly Reply[] } & Record<string, unknown>,
) {
  const tool = gate();
  const before = soFar();
  const input = { ...acting({ until: tool.path }), output: 'played' };
  world.provider.script(inTurn({ toolCalls: [{ name: toolNamed(play), input }] }, ...replies));
  const jobId = await thinker.begin('Work', headers as Record<string, string>);
  const follower = await thinker.follow(jobId);
  await follower.event(({ event }) => event === 'tool_call', 'the tool is called');
  const { body } = await thinker.get(`/api/jobs/${jobId}`);
  const conversationId = body.conversation_id as string;
  const send = (task: string, more: Record<string, string> = {}, input: object = {}) =>
    thinker.post(
      `/api/${runTask}`,
      { task, ...input },
      {
        ...thinker.named,
        'x-conversation-id': conversationId,
        'x-conversation-mode': 'steer',
        ...more,
      },
    );
  return { jobId, conversationId, before, follower, letGo: () => tool.open(), send };
}

const staged = { skills: ['staged/*'] };

describe.each(['openai/test', 'anthropic/test'])('a message for a run of %s', (model) => {
  test('reaches it after the tools that are under way, and ends with its answer', async () => {
    const thinker = await newThinker(world.platform, { ...staged, model });
    const { jobId, conversationId, before, follower, letGo, send } = await working(thinker, {
      replies: [{ text: 'For two.' }],
    });

    const first = await send('It is for two.');
    const second = await send('And on Monday.');
    expect(first).toMatchObject({ status: 202, body: { status: 'queued' } });
    const held = await thinker.get(`/api/jobs/${first.body.job_id}`);
    expect(held.body).toMatchObject({
      waiting_for: 'the job before it in its conversation, which it steers',
      delivered_to: null,
    });
    const followed = await thinker.follow(first.body.job_id);
    letGo();

    const job = await thinker.jobIn(jobId, 'completed');
    const ended = await thinker.jobIn(first.body.job_id, 'completed');
    expect(job.body.output).toEqual({ answer: 'For two.' });
    expect(ended.body).toMatchObject({
      output: { answer: 'For two.' },
      delivered_to: jobId,
      waiting_for: null,
      attempt: 1,
      token_stats: { total_tokens: 0 },
    });
    // Two requests, and both messages are in the second one, after the tool's result.
    expect(soFar() - before).toBe(2);
    expect(saidIn(before + 1)).toMatch(/played.*It is for two\..*And on Monday\./);
    const said = await thinker.messages(conversationId);
    expect(said.map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'tool', 'user', 'user', 'assistant'],
    ]);
    const told = (await follower.ended).filter(
      ({ event, data }) => event === 'message' && data.role === 'user',
    );
    expect(told.map(({ data }) => data.content)).toEqual(['It is for two.', 'And on Monday.']);
    expect((await followed.ended).map(({ data }) => data)).toMatchObject([
      { status: 'queued' },
      { status: 'waiting', delivered_to: jobId },
      { status: 'completed' },
    ]);
    const again = await thinker.follow(first.body.job_id);
    expect(await again.ended).toEqual(await followed.ended);
    const listed = await thinker.get(`/api/jobs?conversation_id=${conversationId}`);
    expect(listed.body.total).toBe(3);
    expect(second.body.job_id).not.toBe(first.body.job_id);
  });

  test('is part of the conversation that a later run continues', async () => {
    const thinker = await newThinker(world.platform, { ...staged, model });
    const { jobId, conversationId, letGo, send } = await working(thinker, {
      replies: [{ text: 'For two.' }, { text: 'Yes.' }],
    });
    await send('It is for two.');
    letGo();
    await thinker.jobIn(jobId, 'completed');
    const next = soFar();

    await thinker.task('Sure?', {}, { 'x-conversation-id': conversationId });

    expect(saidIn(next)).toMatch(/Work.*played.*It is for two\..*For two\..*Sure\?/);
    expect(saidIn(next)).not.toContain('generation');
  });
});

test('a message that comes after the last tools is the next task', async () => {
  const thinker = await newThinker(world.platform);
  const held = Promise.withResolvers<void>();
  const before = soFar();
  world.provider.script(inTurn({ text: 'Late.', until: held.promise }, { text: 'Next.' }));
  const jobId = await thinker.begin('Wait');
  await world.provider.received(before + 1);
  const { body } = await thinker.get(`/api/jobs/${jobId}`);
  const mode = { 'x-conversation-id': body.conversation_id, 'x-conversation-mode': 'steer' };

  const steering = await thinker.post(
    `/api/${runTask}`,
    { task: 'More' },
    { ...thinker.named, ...mode },
  );
  held.resolve();

  const ended = await thinker.jobIn(steering.body.job_id, 'completed');
  expect(ended.body).toMatchObject({ output: { answer: 'Next.' }, delivered_to: null });
  expect((await thinker.jobIn(jobId, 'completed')).body.output).toEqual({ answer: 'Late.' });
});

describe('a message that the run may not take waits as with queue', () => {
  test.each([
    ['of another key', {}, {}, true],
    ['with other settings', {}, { schema: { type: 'object' } }, false],
    ['that is longer than 64 KiB', {}, { task: 'ä'.repeat(32_769) }, false],
  ])('one %s', async (_, headers, input, isOtherKey) => {
    const thinker = await newThinker(world.platform, staged);
    const { jobId, before, letGo, send, conversationId } = await working(thinker, {
      replies: [{ text: 'Done.' }, { text: '{}' }],
    });
    const sent = isOtherKey
      ? await (await otherKeyOf(thinker)).post(
          `/api/${runTask}`,
          { task: 'Also' },
          {
            ...thinker.named,
            'x-conversation-id': conversationId,
            'x-conversation-mode': 'steer',
          },
        )
      : await send('Also', headers, input);
    letGo();

    await thinker.jobIn(jobId, 'completed');
    const ended = await thinker.jobIn(sent.body.job_id, 'completed');
    expect(ended.body.delivered_to).toBeNull();
    expect(soFar() - before).toBe(3);
  });
});

test('a message for another user is refused', async () => {
  const thinker = await newThinker(world.platform, staged);
  const { jobId, letGo, send } = await working(thinker, {
    replies: [{ text: 'Done.' }],
    'x-user-id': 'ada',
  });

  const refused = await send('Give it to me', { 'x-user-id': 'bob' });
  const unnamed = await send('It is for two.');
  letGo();

  expectRefusal(refused, 409, 'conflict');
  await thinker.jobIn(jobId, 'completed');
  const ended = await thinker.jobIn(unnamed.body.job_id, 'completed');
  expect(ended.body).toMatchObject({ user_id: 'ada', delivered_to: jobId });
});

test('the message of a job that is cancelled before is not said', async () => {
  const thinker = await newThinker(world.platform, staged);
  const { jobId, before, letGo, send } = await working(thinker, { replies: [{ text: 'Done.' }] });
  const [kept, cancelled] = [await send('Kept'), await send('Cancelled')];

  await thinker.post(`/api/jobs/${cancelled.body.job_id}/cancel`);
  letGo();

  await thinker.jobIn(jobId, 'completed');
  await thinker.jobIn(kept.body.job_id, 'completed');
  expect(saidIn(before + 1)).toContain('Kept');
  expect(saidIn(before + 1)).not.toContain('Cancelled');
});

test.each([
  ['cancelled', (thinker: Thinker, id: string) => thinker.post(`/api/jobs/${id}/cancel`)],
  ['failed', async () => {}],
])('a job whose message was taken ends as the run does: %s', async (status, end) => {
  const thinker = await newThinker(world.platform, staged);
  const held = Promise.withResolvers<void>();
  const replies: Reply[] =
    status === 'failed' ? [{ fault: { status: 400 } }] : [{ text: 'Late.', until: held.promise }];
  const { jobId, before, letGo, send } = await working(thinker, { replies });
  const steering = await send('More');
  letGo();
  await world.provider.received(before + 2);

  await end(thinker, jobId);

  const job = await thinker.jobIn(jobId, status);
  const ended = await thinker.jobIn(steering.body.job_id, status);
  held.resolve();
  expect(ended.body).toMatchObject({ delivered_to: jobId, error: job.body.error });
});

async function otherKeyOf(thinker: Thinker) {
  return newTenant(world.platform, { organization_id: thinker.organization });
}
