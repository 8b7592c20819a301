/**
 * A receiver of webhooks, complete and without dependencies:
 *
 *   WEBHOOK_SECRET=… PORT=8080 node webhook-receiver.mjs                 # behind `webhooks listen`, or a proxy with TLS
 *   WEBHOOK_SECRET=… TLS_CERT=cert.pem TLS_KEY=key.pem PORT=8443 node webhook-receiver.mjs
 *
 * It refuses unsigned requests, handles each delivery once, and answers before the sender's timeout.
 * Put your code into `handle`.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';

const secret = process.env.WEBHOOK_SECRET ?? '';
const bodyBytesMax = 1024 * 1024;
const clockToleranceSeconds = 300;
const rememberedMax = 100_000;

/** Your code. If it throws, the platform retries the delivery later. Do slow work after the answer. */
async function handle(event) {
  console.log(`${event.event} of agent ${event.agent_id}: ${JSON.stringify(event.data)}`);
}

/**
 * By id of a delivery: a promise of whether it was handled. Keep this in a database if handling a
 * delivery twice would do harm.
 */
const handled = new Map();

const { TLS_CERT: cert, TLS_KEY: key } = process.env;
const server =
  cert && key
    ? https.createServer({ cert: readFileSync(cert), key: readFileSync(key) }, answer)
    : http.createServer(answer);

async function answer(request, response) {
  const status = await receive(request).catch(() => 500);
  // Close after an incomplete read: the rest of the body must not be parsed as the next request.
  response.writeHead(status, request.complete ? {} : { connection: 'close' }).end();
}

/** The status to answer: anything but 2xx and 410 makes the sender try again. */
async function receive(request) {
  if (request.method !== 'POST') return 405;
  // The raw bytes: parsing and serializing them again would change the signature.
  const body = await bytesOf(request);
  if (body === null) return 413;
  if (!isGenuine(request.headers, body)) return 401;

  const delivery = request.headers['x-service-delivery'];
  // A concurrent repeat awaits the same promise, because a 204 says that the delivery was handled.
  if (!handled.has(delivery)) remember(delivery, isHandled(body));
  if (await handled.get(delivery)) return 204;
  handled.delete(delivery);
  return 500;
}

async function isHandled(body) {
  try {
    await handle(JSON.parse(body.toString('utf8')));
    return true;
  } catch (error) {
    console.error(error);
    return false;
  }
}

function isGenuine(headers, body) {
  const hex = createHmac('sha256', secret).update(body).digest('hex');
  if (!isSame(headers['x-service-signature'], hex)) return false;

  // That signature stays valid for ever. This one (Standard Webhooks) also covers the timestamp.
  const id = headers['webhook-id'];
  const timestamp = headers['webhook-timestamp'];
  const age = Math.abs(Date.now() / 1000 - Number(timestamp));
  if (!(age <= clockToleranceSeconds)) return false;
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : secret;
  const base64 = createHmac('sha256', key)
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest('base64');
  const given = headers['webhook-signature'] ?? '';
  return id === headers['x-service-delivery'] && isSame(given, `v1,${base64}`);
}

/** Compares in constant time, so that the answer's delay tells nothing about the right signature. */
function isSame(given = '', expected) {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function remember(delivery, outcome) {
  handled.set(delivery, outcome);
  if (handled.size > rememberedMax) handled.delete(handled.keys().next().value);
}

/** The whole body, or null when it is too long. */
async function bytesOf(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    length += chunk.length;
    if (length > bodyBytesMax) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

if (secret.length < 16) throw new Error('WEBHOOK_SECRET is not set');
server.listen(Number(process.env.PORT ?? 8443), process.env.HOST ?? '127.0.0.1', () => {
  console.log(`listening on port ${server.address().port}`);
});
