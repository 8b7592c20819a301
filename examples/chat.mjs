/**
 * A chat in your product, complete and without dependencies: a server between the browser and the platform, and its page.
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

const platform = process.env.SKILLWRIGHT_URL ?? 'http://127.0.0.1:3000';
const apiKey = process.env.SKILLWRIGHT_API_KEY ?? '';
const agent = process.env.AGENT ?? 'default';
const bodyBytesMax = 100_000;
const page = readFileSync(new URL('chat.html', import.meta.url));

/** A request to the platform on behalf of a user. A start is repeated with its key, which makes no second job. */
function ask(
  method,
  path,
  { user, body, headers = {}, signal = AbortSignal.timeout(30_000) } = {},
) {
  return fetch(`${platform}${path}`, {
    method,
    signal,
    headers: {
      'x-api-key': apiKey,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(user === undefined ? {} : { 'x-user-id': user }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
}

const idPattern = /^[0-9a-f-]{36}$/;

/** Whether a conversation or a job is the user's. The platform knows organizations, your product knows its users. */
async function isOf(user, kind, id) {
  if (!idPattern.test(id)) return false;
  const found = await ask('GET', `/api/${kind}/${id}`);
  return found.ok && (await found.json()).user_id === user;
}

const routes = {
  /** Says a text in a conversation, or in a new one; `mode` is queue, steer or interrupt. */
  async 'POST /say'({ user, body: { conversation, text, mode = 'queue', key } }) {
    if (conversation && !(await isOf(user, 'conversations', conversation))) return notFound;
    return ask('POST', '/api/agent/v1.0/run-task', {
      user,
      body: { task: text },
      headers: {
        'x-agent-id': agent,
        'x-conversation-mode': mode,
        'idempotency-key': `${user} ${key}`,
        ...(conversation ? { 'x-conversation-id': conversation } : {}),
      },
    });
  },

  async 'GET /messages'({ user, query }) {
    const id = query.get('conversation') ?? '';
    if (!(await isOf(user, 'conversations', id))) return notFound;
    return ask('GET', `/api/conversations/${id}/messages?limit=500`);
  },

  /** Begins a conversation with what was said before a message. */
  async 'POST /fork'({ user, body: { conversation, before } }) {
    if (!(await isOf(user, 'conversations', conversation))) return notFound;
    return ask('POST', `/api/conversations/${conversation}/fork`, { user, body: { before } });
  },

  async 'POST /stop'({ user, body: { job } }) {
    return (await isOf(user, 'jobs', job)) ? ask('POST', `/api/jobs/${job}/cancel`) : notFound;
  },

  /** The events of a job, as they happen. The browser reconnects with the id of the last one by itself. */
  async 'GET /events'({ user, query, last, signal }) {
    const id = query.get('job') ?? '';
    if (!(await isOf(user, 'jobs', id))) return notFound;
    const headers = last === undefined ? {} : { 'last-event-id': last };
    return ask('GET', `/api/jobs/${id}/events`, { headers, signal });
  },
};

const notFound = Response.json({ error: 'not_found' }, { status: 404 });

async function answer(request, response) {
  const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://chat');
  // In your product: the user who is signed in.
  const [, known] = /(?:^|; )user=([0-9a-f-]{36})(?:;|$)/.exec(request.headers.cookie ?? '') ?? [];
  const user = known ?? randomUUID();
  if (request.method === 'GET' && pathname === '/') {
    const cookie = `user=${user}; HttpOnly; SameSite=Strict; Path=/`;
    return response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': cookie }).end(page);
  }
  const route = routes[`${request.method} ${pathname}`];
  if (known === undefined || route === undefined) return response.writeHead(404).end();
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const body = request.method === 'POST' ? await readBody(request) : undefined;
  const last = request.headers['last-event-id'];
  const found = await route({ user, query, body, last, signal: gone.signal });
  response.writeHead(found.status, {
    'content-type': found.headers.get('content-type') ?? 'application/json',
    'cache-control': 'no-store',
  });
  const bytes = found === notFound ? Readable.from(['{"error":"not_found"}']) : found.body;
  await pipeline(bytes, response);
}

async function readBody(request) {
  let text = '';
  for await (const bytes of request) {
    text += bytes;
    if (text.length > bodyBytesMax) throw new Error('The body is too long');
  }
  return JSON.parse(text);
}

http
  .createServer((request, response) => {
    answer(request, response).catch((error) => {
      if (error.name !== 'AbortError')
        console.error(`${request.method} ${request.url}: ${error.message}`);
      if (!response.headersSent) response.writeHead(502);
      response.end();
    });
  })
  .listen(Number(process.env.PORT ?? 8090), '127.0.0.1', function () {
    console.log(`The chat is at http://127.0.0.1:${this.address().port}`);
  });
