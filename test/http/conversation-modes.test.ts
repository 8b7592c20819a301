/** `x-conversation-mode`: requests for a conversation that works (docs/decisions/conversations.md). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { answering } from '../support/scripted-provider.ts';
import {
  newThinker,
  runTask,
  startThinkers,
  type Thinker,
  type Thinkers,
} from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const soFar = () => world.provider.requests.length;

/** A job that waits for its model until it is let go on. */
async function waiting(thinker: Thinker, headers: Record<string, string> = {}) {
  const held = Promise.withResolvers<void>();
  const before = soFar();
  world.provider.script(() => ({ text: 'Late.', until: held.promise }));
  const jobId = await thinker.begin('Wait', headers);
  await world.provider.received(before + 1);
  const { body } = await thinker.get(`/api/jobs/${jobId}`);
  const conversationId = body.conversation_id as string;
  const send = (task: string, mode: string, more: Record<string, string> = {}) =>
    thinker.post(
      `/api/${runTask}`,
      { task },
      {
        ...thinker.named,
        'x-conversation-id': conversationId,
        'x-conversation-mode': mode,
        ...more,
      },
    );
  return { jobId, conversationId, letGo: () => held.resolve(), send };
}

/** Who says what to the model, without the system prompt. */
function dialogueOf(n: number): string[] {
  const { messages } = world.provider.requests[n] as unknown as {
    messages: { role: string; content: unknown }[];
  };
  return messages
    .filter(({ role }) => role !== 'system' && role !== 'developer')
    .map(
      ({ role, content }) =>
        `${role}: ${typeof content === 'string' ? content : JSON.stringify(content)}`,
    );
}

describe('queue', () => {
  test('accepts a message while a job works, and begins with it when that has ended', async () => {
    const thinker = await newThinker(world.platform);
    const { jobId, conversationId, letGo, send } = await waiting(thinker);
    const before = soFar();

    const second = await send('And then?', 'queue');
    const third = await send('And at last?', 'queue', { 'idempotency-key': 'k' });

    expect(second).toMatchObject({
      status: 202,
      body: { status: 'queued', conversation_id: conversationId },
    });
    const shown = await thinker.get(`/api/jobs/${second.body.job_id}`);
    expect(shown.body.waiting_for).toBe('the job before it in its conversation');
    const listed = await thinker.get(`/api/jobs?conversation_id=${conversationId}`);
    expect(listed.body.total).toBe(3);
    const repeated = await send('And at last?', 'queue', { 'idempotency-key': 'k' });
    expect(repeated.headers.get('idempotent-replayed')).toBe('true');
    expect(repeated.body.job_id).toBe(third.body.job_id);
    expect(await thinker.messages(conversationId)).toHaveLength(1);
    world.provider.script(answering('Next.'));
    letGo();
    await thinker.jobIn(jobId, 'completed');
    await thinker.jobIn(second.body.job_id, 'completed');
    await thinker.jobIn(third.body.job_id, 'completed');

    expect(dialogueOf(before)).toEqual(['user: Wait', 'assistant: Late.', 'user: And then?']);
    expect(dialogueOf(before + 1).slice(3)).toEqual(['assistant: Next.', 'user: And at last?']);
    const { body } = await thinker.get(`/api/conversations/${conversationId}`);
    expect(body.status).toBe('completed');
  });

  test('begins at once where nothing works, also in a new conversation', async () => {
    const thinker = await newThinker(world.platform);
    world.provider.script(answering('Yes.'));
    const queued = { 'x-conversation-mode': 'queue' };

    const first = await thinker.task('First', {}, queued);
    const next = await thinker.task(
      'Next',
      {},
      { ...queued, 'x-conversation-id': first.conversation_id },
    );

    expect(next).toMatchObject({ status: 'completed', waiting_for: null });
  });

  test('is not for a user whose conversation it is not', async () => {
    const thinker = await newThinker(world.platform);
    const { jobId, letGo, send } = await waiting(thinker, { 'x-user-id': 'ada' });

    const refused = await send('Me too', 'queue', { 'x-user-id': 'bob' });
    letGo();
    await thinker.jobIn(jobId, 'completed');

    expectRefusal(refused, 409, 'conflict');
  });

  test('beyond 20 waiting jobs is 409 conflict', async () => {
    const thinker = await newThinker(world.platform);
    const { jobId, letGo, send } = await waiting(thinker);
    const accepted: string[] = [];
    for (let n = 0; n < 20; n += 1) accepted.push((await send(`${n}`, 'queue')).body.job_id);

    const refused = await send('One more', 'queue');

    expectRefusal(refused, 409, 'conflict');
    expect(refused.text).toContain('As many messages wait');
    for (const id of accepted) await thinker.post(`/api/jobs/${id}/cancel`);
    letGo();
    await thinker.jobIn(jobId, 'completed');
  });
});

describe('interrupt', () => {
  test('stops the job that works, keeps what is recorded, and begins with the message', async () => {
    const thinker = await newThinker(world.platform);
    const { jobId, conversationId, letGo, send } = await waiting(thinker);
    const before = soFar();
    world.provider.script(answering('Anew.'));

    const next = await send('Something else', 'interrupt');

    expect(next.status).toBe(202);
    await thinker.jobIn(jobId, 'cancelled');
    const { body } = await thinker.jobIn(next.body.job_id, 'completed');
    letGo();
    expect(body).toMatchObject({ output: { answer: 'Anew.' }, conversation_id: conversationId });
    expect(dialogueOf(before)).toEqual(['user: Wait', 'user: Something else']);
    // With what the first job had said of its answer.
    expect(await thinker.messages(conversationId)).toHaveLength(4);
  });

  test('is not for a user whose conversation it is not', async () => {
    const thinker = await newThinker(world.platform);
    const { jobId, letGo, send } = await waiting(thinker, { 'x-user-id': 'ada' });

    const refused = await send('Stop', 'interrupt', { 'x-user-id': 'bob' });
    letGo();
    await thinker.jobIn(jobId, 'completed');

    expectRefusal(refused, 409, 'conflict');
  });
});

test('reject is 409 conflict, and an unknown mode 400', async () => {
  const thinker = await newThinker(world.platform);
  const { jobId, letGo, send } = await waiting(thinker);

  const rejected = await send('Me too', 'reject');
  const unknown = await send('Me too', 'push');
  letGo();
  await thinker.jobIn(jobId, 'completed');

  expectRefusal(rejected, 409, 'conflict');
  expectInvalid(unknown, 'x-conversation-mode');
});
