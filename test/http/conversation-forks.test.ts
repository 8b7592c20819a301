/** `POST /api/conversations/:id/fork` (docs/agents.md). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forksMax } from '../../src/core/jobs/in-conversation/forks.ts';
import { newId } from '../../src/kernel/ids.ts';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { answering, callingTools } from '../support/scripted-provider.ts';
import { newTenant } from '../support/tenant.ts';
import {
  newThinker,
  startThinkers,
  type Thinker,
  type Thinkers,
  toolNamed,
} from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const fork = (thinker: Thinker, id: string, body: object, headers = {}) =>
  thinker.post(`/api/conversations/${id}/fork`, body, headers);

/** Who says what to the model in its last request, without the system prompt. */
function lastDialogue(): string[] {
  const messages = world.provider.requests.at(-1)?.messages ?? [];
  return messages
    .filter(({ role }) => role !== 'system' && role !== 'developer')
    .map(({ role, content }) => `${role}: ${content}`);
}

/** A conversation of two tasks; its id and its messages. */
async function ofTwo(thinker: Thinker, headers: Record<string, string> = {}) {
  world.provider.script(({ index }) => ({ text: `Answer ${index}.` }));
  const { conversation_id: id } = await thinker.task('One', {}, headers);
  await thinker.task('Two', {}, { ...headers, 'x-conversation-id': id });
  return { id, messages: await thinker.messages(id) };
}

test('a message is written anew, and what was said stays as it was', async () => {
  const thinker = await newThinker(world.platform);
  const { id, messages } = await ofTwo(thinker);
  world.provider.script(answering('Three!'));

  const forked = await fork(thinker, id, { before: messages[2].id });

  expect(forked).toMatchObject({
    status: 201,
    body: { agent_id: 'thinker', status: 'completed', forked_from: id, messages: 2, is_cut: false },
  });
  expect(forked.headers.get('location')).toBe(`/api/conversations/${forked.body.id}`);
  const copied = messages.slice(0, 2).map((one) => ({ ...one, conversation_id: forked.body.id }));
  expect(await thinker.messages(forked.body.id)).toEqual(copied);
  const job = await thinker.task('Three', {}, { 'x-conversation-id': forked.body.id });
  expect(job).toMatchObject({ status: 'completed', conversation_id: forked.body.id });
  expect(lastDialogue()).toEqual(['user: One', `assistant: ${messages[1].content}`, 'user: Three']);
  expect(await thinker.messages(id)).toEqual(messages);
  // What was copied has cost nothing a second time.
  const spent = await thinker.get(`/api/conversations/${forked.body.id}`);
  expect(spent.body.token_stats).toEqual(job.token_stats);
});

test('without before it has all messages, also calls of tools with their results', async () => {
  const thinker = await newThinker(world.platform, { skills: ['text/*'] });
  const calls = [{ name: toolNamed('text/v1.0/word-count'), input: { text: 'one two' } }];
  world.provider.script(callingTools(calls, 'Two words.'));
  const { conversation_id: id } = await thinker.task('Count');
  world.provider.script(answering('Again.'));

  const { body } = await fork(thinker, id, {});
  const again = await fork(thinker, body.id, {});
  await thinker.task('And?', {}, { 'x-conversation-id': again.body.id });

  expect(again.body).toMatchObject({ forked_from: id, messages: 4 });
  expect(
    world.provider.requests
      .at(-1)
      ?.messages.map(({ role }) => role)
      .slice(-5),
  ).toEqual([...['user', 'assistant', 'tool', 'assistant', 'user']]);
});

test('of a conversation that works it has what is recorded, and is free', async () => {
  const thinker = await newThinker(world.platform);
  const { id, messages } = await ofTwo(thinker);
  const held = Promise.withResolvers<void>();
  const before = world.provider.requests.length;
  world.provider.script(() => ({ text: 'Late.', until: held.promise }));
  const working = await thinker.begin('Wait', { 'x-conversation-id': id });
  await world.provider.received(before + 1);
  world.provider.script(answering('Free.'));

  const { body } = await fork(thinker, id, {});
  const job = await thinker.task('Go on', {}, { 'x-conversation-id': body.id });

  expect(body.messages).toBe(messages.length + 1);
  expect(job).toMatchObject({ status: 'completed', output: { answer: 'Free.' } });
  held.resolve();
  await thinker.jobIn(working, 'completed');
});

describe('the fork of a user', () => {
  test('is that of the same user, and of no other one', async () => {
    const thinker = await newThinker(world.platform);
    const { id } = await ofTwo(thinker, { 'x-user-id': 'ada' });

    const refused = await fork(thinker, id, {}, { 'x-user-id': 'bob' });
    const { body } = await fork(thinker, id, {});
    const asBob = await thinker.post(
      '/api/agent/v1.0/run-task',
      { task: 'What did she say?' },
      { ...thinker.named, 'x-conversation-id': body.id, 'x-user-id': 'bob' },
    );
    const unnamed = await thinker.task('More', {}, { 'x-conversation-id': body.id });

    expectRefusal(refused, 409, 'conflict');
    expect(body.user_id).toBe('ada');
    expectRefusal(asBob, 409, 'conflict');
    expect(unnamed).toMatchObject({ status: 'completed', user_id: 'ada' });
  });

  test('is erased with the user, also where another one continued the conversation', async () => {
    const thinker = await newThinker(world.platform);
    world.provider.script(answering('Yes.'));
    const { conversation_id: id } = await thinker.task('For no user');
    await thinker.task('Secret of ada', {}, { 'x-conversation-id': id, 'x-user-id': 'ada' });
    const { body } = await fork(thinker, id, {});

    const erased = await thinker.delete('/api/users/ada/data');

    expect(erased.body).toMatchObject({ done: true });
    expect((await thinker.get(`/api/conversations/${body.id}`)).status).toBe(404);
  });
});

test('is refused for the first message, an unknown one, and more than there may be', async () => {
  const thinker = await newThinker(world.platform);
  const { id, messages } = await ofTwo(thinker);

  const first = await fork(thinker, id, { before: messages[0].id });
  const unknown = await fork(thinker, id, { before: newId() });
  const wrong = await fork(thinker, id, { before: 'x', at: 1 });
  let last = await fork(thinker, id, {});
  for (let n = 1; n < forksMax; n += 1) last = await fork(thinker, last.body.id, {});
  const tooMany = await fork(thinker, last.body.id, {});

  expectInvalid(first, 'before');
  expectRefusal(unknown, 404, 'not_found');
  expect(wrong.status).toBe(400);
  expect(last.status).toBe(201);
  expectRefusal(tooMany, 409, 'conflict');
});

test('of another organization, or of a deleted agent, is 404', async () => {
  const thinker = await newThinker(world.platform);
  const { id } = await ofTwo(thinker);
  const stranger = await newTenant(world.platform);

  expectRefusal(await stranger.post(`/api/conversations/${id}/fork`, {}), 404, 'not_found');
  await thinker.delete('/api/agents/thinker');
  await thinker.post('/api/agents', { id: 'thinker' });
  expectRefusal(await fork(thinker, id, {}), 404, 'not_found');
});
