/** The chat of docs/chat.md, executed as written: a message, its answer as it is written, and the conversations of others. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answering } from '../support/scripted-provider.ts';
import { newThinker, startThinkers, type Thinkers } from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

const file = join(import.meta.dirname, '../../examples/chat.mjs');

let world: Thinkers;
let child: ChildProcess;
let url = '';
beforeAll(async () => {
  world = await startThinkers();
  const { key } = await newThinker(world.platform);
  child = spawn(process.execPath, [file], {
    env: {
      SKILLWRIGHT_URL: world.platform.url,
      SKILLWRIGHT_API_KEY: key,
      AGENT: 'thinker',
      PORT: '0',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  url = await waitFor(() => /http:\/\/\S+/.exec(text)?.[0], {
    describe: () => `the chat listens; it said: ${text}`,
  });
});
afterAll(async () => {
  child.kill();
  await world.stop();
});

/** A visitor, by the cookie that the page gives. */
async function visitor() {
  const page = await fetch(url);
  expect(await page.text()).toContain('<title>Chat</title>');
  const cookie = (page.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const get = (path: string) => fetch(`${url}${path}`, { headers: { cookie } });
  const post = async (path: string, body: object) => {
    const init = { method: 'POST', headers: { cookie }, body: JSON.stringify(body) };
    const answer = await fetch(`${url}${path}`, init);
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };
  return { get, post };
}

test('a visitor writes, follows the answer, and writes a message anew', async () => {
  const { get, post } = await visitor();
  world.provider.script(answering('At nine.'));

  const first = await post('/say', { text: 'When is it open?', key: 'a' });
  const repeated = await post('/say', { text: 'When is it open?', key: 'a' });
  expect(first.status).toBe(202);
  expect(repeated.body.job_id).toBe(first.body.job_id);
  const events = await (await get(`/events?job=${first.body.job_id}`)).text();
  expect(events).toContain('event: token');
  expect(events).toMatch(/"status":"completed"/);
  const conversation = first.body.conversation_id;
  const next = await post('/say', { conversation, text: 'On Mondays?', mode: 'steer', key: 'b' });
  await (await get(`/events?job=${next.body.job_id}`)).text();
  const path = `/messages?conversation=${conversation}`;
  const messages = (await (await get(path)).json()) as { id: string; role: string }[];
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);

  const fork = await post('/fork', { conversation, before: messages[2]?.id });
  expect(fork.status).toBe(201);
  const anew = await post('/say', { conversation: fork.body.id, text: 'On Sundays?', key: 'c' });
  expect(anew.body.conversation_id).toBe(fork.body.id);
});

test('another visitor reads, continues, forks and stops nothing of it', async () => {
  const ada = await visitor();
  const bob = await visitor();
  world.provider.script(answering('Secret.'));
  const { body } = await ada.post('/say', { text: 'Mine', key: 'a' });
  const conversation = body.conversation_id;

  const refused = [
    await bob.post('/say', { conversation, text: 'Mine too', key: 'b' }),
    await bob.post('/fork', { conversation }),
    await bob.post('/stop', { job: body.job_id }),
    await bob.get(`/messages?conversation=${conversation}`),
    await bob.get(`/events?job=${body.job_id}`),
    await bob.get('/messages?conversation=../jobs'),
  ];

  expect(refused.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404, 404]);
});
