/** The chat of docs/chat.md, executed as written: a message, its answer as it is written, and the conversations of others. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { answering, callingTools } from '../support/scripted-provider.ts';
import { linesFile } from '../support/staged.ts';
import { newThinker, startThinkers, type Thinkers, toolNamed } from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

const file = join(import.meta.dirname, '../../examples/chat.mjs');

const effect = 'staged/v1.0/effect';

let world: Thinkers;
let key = '';
const children: ChildProcess[] = [];
let url = '';
beforeAll(async () => {
  world = await startThinkers();
  ({ key } = await newThinker(world.platform, { skills: ['staged/*'], approvals: [effect] }));
  url = await startChat(world.platform.url);
});
afterAll(async () => {
  for (const child of children) child.kill();
  await world.stop();
});

/** The example, with a platform at this address; its own address. */
async function startChat(platform: string): Promise<string> {
  const child = spawn(process.execPath, [file], {
    env: { SKILLWRIGHT_URL: platform, SKILLWRIGHT_API_KEY: key, AGENT: 'thinker', PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  return await waitFor(() => /http:\/\/\S+/.exec(text)?.[0], {
    describe: () => `the chat listens; it said: ${text}`,
  });
}

/** A visitor of the chat at this address, by the cookie that the page gives. */
async function visitor(at = url) {
  const page = await fetch(at);
  expect(await page.text()).toContain('<title>Chat</title>');
  const cookie = (page.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const get = (path: string) => fetch(`${at}${path}`, { headers: { cookie } });
  const post = async (path: string, body: object) => {
    const init = { method: 'POST', headers: { cookie }, body: JSON.stringify(body) };
    const answer = await fetch(`${at}${path}`, init);
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };
  return { get, post };
}

test('a visitor writes, follows the answer, and writes a message anew', async () => {
  const { get, post } = await visitor();
  world.provider.script(answering('At nine.'));

  const first = await post('/say', { text: 'When is it open?', key: 'a' });
  const repeated = await post('/say', { text: 'When is it open?', key: 'a' });
  expect(first.status).toBe(200);
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
  expect(fork.status).toBe(200);
  const atBeginning = await post('/fork', { conversation, before: messages[0]?.id });
  expect(atBeginning.body.id).toBeNull();
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

test('what a run asks is decided by its user alone, who finds the job after the page was loaded anew', async () => {
  const ada = await visitor();
  const bob = await visitor();
  const call = { name: toolNamed(effect), input: { log: linesFile() } };
  world.provider.script(callingTools([call], 'It is done.'));
  const { body } = await ada.post('/say', { text: 'Have an effect', key: 'a' });
  const approvals = `/approvals?job=${body.job_id}`;
  const [approval] = await waitFor(
    async () => {
      const found = (await (await ada.get(approvals)).json()) as { approval_id: string }[];
      return found.length > 0 ? found : null;
    },
    { describe: () => 'the approval of the call' },
  );

  const jobs = await (await ada.get(`/jobs?conversation=${body.conversation_id}`)).json();
  expect(jobs).toMatchObject([{ job_id: body.job_id }]);
  const decision = { approval: approval?.approval_id, allow: true };
  expect((await bob.get(approvals)).status).toBe(404);
  expect((await bob.get(`/jobs?conversation=${body.conversation_id}`)).status).toBe(404);
  expect((await bob.post('/decide', decision)).status).toBe(404);
  expect((await ada.post('/decide', decision)).body).toMatchObject({ status: 'approved' });

  const events = await (await ada.get(`/events?job=${body.job_id}`)).text();
  expect(events).toContain('It is done.');
  expect(await (await ada.get(`/jobs?conversation=${body.conversation_id}`)).json()).toEqual([]);
});

/** The address of a server that listens for the time of a test. */
async function listening(server: http.Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a stream goes on where the connection to the platform has broken off', async () => {
  const broken = { streams: 0 };
  const proxy = http.createServer((request, response) => {
    const { method, headers, url: path = '/' } = request;
    const onAnswer = (found: http.IncomingMessage) => {
      response.writeHead(found.statusCode ?? 502, found.headers);
      if (path.endsWith('/events') && broken.streams === 0) {
        broken.streams += 1;
        found.once('data', (bytes) => response.write(bytes, () => response.destroy()));
      } else found.pipe(response);
    };
    request.pipe(http.request(`${world.platform.url}${path}`, { method, headers }, onAnswer));
  });
  const ada = await visitor(await startChat(await listening(proxy)));
  world.provider.script(answering('Still here.'));
  const { body } = await ada.post('/say', { text: 'Are you there?', key: 'a' });

  const events = await (await ada.get(`/events?job=${body.job_id}`)).text();

  expect(broken.streams).toBe(1);
  const ids = [...events.matchAll(/^id: (.*)$/gm)].map(([, id]) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(events).toMatch(/"status":"queued".*"content":"Still here\.".*"status":"completed"/s);
});

test('a platform that is away is no unknown conversation', async () => {
  const away = http.createServer((_request, response) => response.writeHead(503).end('{}'));
  const ada = await visitor(await startChat(await listening(away)));

  const answer = await ada.get(`/messages?conversation=${randomUUID()}`);

  expect(answer.status).toBe(503);
});

test('an answer does not tell a browser where the platform is', async () => {
  const gone = http.createServer((request) => request.socket.destroy());
  const address = await listening(gone);
  const ada = await visitor(await startChat(address));

  const answer = await ada.get(`/messages?conversation=${randomUUID()}`);

  expect(answer.status).toBe(502);
  expect(await answer.text()).not.toContain(new URL(address).host);
});
