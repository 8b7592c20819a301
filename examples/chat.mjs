/**
 * A chat in your product, complete: a server between the browser and the platform, and its page. It needs the package
 * @skillwright/client, which sends again what a restart of the platform has interrupted.
 *
 *   SKILLWRIGHT_API_KEY=… AGENT=reader PORT=8090 node chat.mjs        # then open http://127.0.0.1:8090
 *
 * The API key stays here. Each visitor is a user of the platform, and reaches the conversations of this user alone.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createClient, isFinal, SkillwrightError } from '@skillwright/client';

const platform = createClient({
  url: process.env.SKILLWRIGHT_URL ?? 'http://127.0.0.1:3000',
  apiKey: process.env.SKILLWRIGHT_API_KEY,
});
const agentId = process.env.AGENT ?? 'default';
const bodyBytesMax = 100_000;
/** Messages that a page shows. */
const messagesMax = 500;
const page = readFileSync(new URL('chat.html', import.meta.url));

const refusal = (status, code) => new SkillwrightError(code, { status, code });
const get = (path, query) => platform.request({ method: 'GET', path, query });
const post = (path, body, user) =>
  platform.request({ method: 'POST', path, body, headers: user ? { 'x-user-id': user } : {} });

/**
 * Refuses a conversation, a job or an approval of another user as one that is unknown. The platform knows organizations,
 * your product knows its users. Ids come from browsers, so they are checked before they are part of a path.
 */
async function requireOwn(user, kind, id) {
  const found = /^[0-9a-f-]{36}$/.test(id) ? await get(`/api/${kind}/${id}`) : undefined;
  if (found?.user_id !== user) throw refusal(404, 'not_found');
  return found;
}

/**
 * Whether this user decides about a call that the agent would make for them. Here each does about those of their own jobs, so
 * an approval only asks whether the agent has understood them. Where it protects your product, such as from a refund, return
 * false for the person who writes the messages, and ask your staff, of whom you know who may.
 */
const mayDecide = (user, approval) => approval.user_id === user;

const routes = {
  /** Says a text in a conversation, or in a new one; `mode` is queue, steer or interrupt. */
  async 'POST /say'({ user, body: { conversation, text, mode = 'queue', key } }) {
    if (conversation) await requireOwn(user, 'conversations', conversation);
    const job = await platform.start(
      'agent/v1.0/run-task',
      { task: text },
      {
        agentId,
        userId: user,
        conversationId: conversation ?? undefined,
        conversationMode: mode,
        idempotencyKey: `${user} ${key}`,
        deadlineMs: 30_000,
      },
    );
    return job.accepted;
  },

  /** The newest messages of a conversation, the oldest of them first. */
  async 'GET /messages'({ user, query: { conversation } }) {
    await requireOwn(user, 'conversations', conversation);
    const { total } = await platform.conversations.listMessages(conversation, { limit: 1 });
    const newest = { limit: messagesMax, offset: Math.max(0, total - messagesMax) };
    const messages = [];
    for await (const one of platform.conversations.listMessages(conversation, newest))
      messages.push(one);
    return messages;
  },

  /** The jobs of a conversation that have not ended, the oldest first. */
  async 'GET /jobs'({ user, query: { conversation } }) {
    await requireOwn(user, 'conversations', conversation);
    const { data } = await get('/api/jobs', { conversation_id: conversation, limit: 50 });
    return data.filter(({ status }) => !isFinal(status)).reverse();
  },

  /** Begins a conversation with what was said before a message; its id is null where that is nothing. */
  async 'POST /fork'({ user, body: { conversation, before } }) {
    await requireOwn(user, 'conversations', conversation);
    const [first] = await get(`/api/conversations/${conversation}/messages`, { limit: 1 });
    if (first?.id === before) return { id: null };
    return post(`/api/conversations/${conversation}/fork`, { before }, user);
  },

  async 'POST /stop'({ user, body: { job } }) {
    await requireOwn(user, 'jobs', job);
    return post(`/api/jobs/${job}/cancel`);
  },

  /** What a job, and the jobs of agents below it, ask the person. */
  async 'GET /approvals'({ user, query: { job } }) {
    await requireOwn(user, 'jobs', job);
    const { data } = await get('/api/approvals', { job_id: job, status: 'pending' });
    return data.filter((approval) => mayDecide(user, approval));
  },

  async 'POST /decide'({ user, body: { approval, allow } }) {
    const found = await requireOwn(user, 'approvals', approval);
    if (!mayDecide(user, found)) throw refusal(404, 'not_found');
    return post(`/api/approvals/${approval}/${allow ? 'approve' : 'reject'}`);
  },
};

/** The events of a job, as they happen, over as many connections to the platform as it takes. */
async function sendEvents(user, { job }, request, response) {
  await requireOwn(user, 'jobs', job);
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.flushHeaders();
  const options = { after: request.headers['last-event-id'], signal: gone.signal };
  async function* lines() {
    for await (const { id, type, data } of platform.job(job).events(options))
      yield `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
  }
  await pipeline(Readable.from(lines()), response);
}

async function answer(request, response) {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://chat');
  const query = Object.fromEntries(searchParams);
  // In your product: the user who is signed in.
  const [, known] = /(?:^|; )user=([0-9a-f-]{36})(?:;|$)/.exec(request.headers.cookie ?? '') ?? [];
  const user = known ?? randomUUID();
  if (request.method === 'GET' && pathname === '/') {
    const cookie = `user=${user}; HttpOnly; SameSite=Strict; Path=/`;
    return response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': cookie }).end(page);
  }
  if (known === undefined) throw refusal(404, 'not_found');
  if (request.method === 'GET' && pathname === '/events')
    return sendEvents(user, query, request, response);
  const route = routes[`${request.method} ${pathname}`];
  if (route === undefined) throw refusal(404, 'not_found');
  const body = request.method === 'POST' ? await readBody(request) : undefined;
  const found = JSON.stringify(await route({ user, query, body }));
  response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(found);
}

async function readBody(request) {
  let text = '';
  for await (const bytes of request) {
    text += bytes;
    if (text.length > bodyBytesMax) throw refusal(413, 'payload_too_large');
  }
  return JSON.parse(text);
}

http
  .createServer((request, response) => {
    answer(request, response).catch((error) => {
      const { status, code = 'failed', message } = error;
      // What the platform refuses is for the person. Of other faults a message may name addresses: it is for the log alone.
      const isRefused = status >= 400 && status < 500;
      const shown = isRefused ? message : 'The chat cannot be reached at the moment';
      // The browser has gone, or the stream breaks off: the browser asks again.
      if (response.headersSent) return response.destroy();
      console.error(`${request.method} ${request.url}: ${message}`);
      response.writeHead(status || 502, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: code, message: shown }));
    });
  })
  .listen(Number(process.env.PORT ?? 8090), '127.0.0.1', function () {
    console.log(`The chat is at http://127.0.0.1:${this.address().port}`);
  });
