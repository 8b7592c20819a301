/** The receiver of docs/webhooks.md, executed as written, against a platform and against forged requests. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type PlatformProcess, startProcess } from '../support/process.ts';
import { newTenant } from '../support/tenant.ts';
import { receiverAuthority, receiverAuthorityFile } from '../support/tls-receiver.ts';
import { waitFor } from '../support/wait-for.ts';
import { deliveryIn, deliveryOnce, newWebhook } from '../support/webhooks.ts';

const root = join(import.meta.dirname, '../..');
const file = join(root, 'examples/webhook-receiver.mjs');
const certificates = join(root, 'test/fixtures/receiver');
const secret = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';

interface ReceiverProcess {
  readonly child: ChildProcess;
  readonly port: number;
  /** What it has printed so far. */
  output(): string;
}

async function startReceiver(script = file): Promise<ReceiverProcess> {
  const child = spawn(process.execPath, [script], {
    env: {
      WEBHOOK_SECRET: secret,
      TLS_CERT: join(certificates, 'receiver.pem'),
      TLS_KEY: join(certificates, 'receiver.key.pem'),
      PORT: '0',
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  const port = await waitFor(() => /listening on port (\d+)/.exec(text)?.[1], {
    describe: () => `the receiver listens; it said: ${text}`,
  });
  return { child, port: Number(port), output: () => text };
}

/** Sends a request to the receiver; the status of its answer. */
function send(
  port: number,
  body: string,
  headers: Record<string, string>,
  method = 'POST',
): Promise<number> {
  return new Promise((resolve, reject) => {
    request(
      { port, host: '127.0.0.1', method, headers, ca: receiverAuthority, agent: false },
      (response) => {
        response.resume().once('close', () => resolve(response.statusCode ?? 0));
      },
    )
      .on('error', reject)
      .end(body);
  });
}

/** The headers of a genuine delivery, of now unless told otherwise. */
function signed(body: string, id: string, at = new Date()): Record<string, string> {
  return {
    'content-type': 'application/json',
    'x-service-signature': createHmac('sha256', secret).update(body).digest('hex'),
    'x-service-event': 'skill.completed',
    'x-service-delivery': id,
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, at, body),
  };
}

const eventOf = (what: string) =>
  JSON.stringify({ id: 'e', event: 'skill.completed', agent_id: 'default', data: { what } });

let directory: string;
let receiver: ReceiverProcess;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'skillwright-receiver-'));
  receiver = await startReceiver();
});
afterAll(() => {
  receiver.child.kill();
  rmSync(directory, { recursive: true, force: true });
});

test('the receiver in the documentation is the one in examples', () => {
  const page = readFileSync(join(root, 'docs/webhooks.md'), 'utf8');

  expect(page).toContain(`\`\`\`js\n${readFileSync(file, 'utf8')}\`\`\``);
});

describe('the receiver', () => {
  let platform: PlatformProcess;
  beforeAll(async () => {
    platform = await startProcess(join(directory, 'data'), {
      EXECUTORS: '1',
      LOG_LEVEL: 'trace',
      WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32',
      NODE_EXTRA_CA_CERTS: receiverAuthorityFile,
    });
  });
  afterAll(() => platform.stop());

  test('gets the deliveries of a platform, whose log does not have the secret', async () => {
    const tenant = await newTenant(platform);
    const events = ['skill.completed'];
    const url = `https://127.0.0.1:${receiver.port}/hooks`;
    const webhook = await newWebhook(tenant, url, { events, secret });

    await tenant.run('util/v1.0/echo', { text: 'grüße 🏔️' });
    const delivery = await deliveryIn(tenant, webhook, 'delivered');

    expect(delivery.attempts).toMatchObject([{ status: 204 }]);
    expect(receiver.output()).toMatch(/skill\.completed of agent default: .*grüße 🏔️/);
    for (const text of [secret, secret.slice('whsec_'.length)]) {
      expect(platform.output()).not.toContain(text);
    }
  });

  test('refuses deliveries that are signed with another secret', async () => {
    const tenant = await newTenant(platform);
    const url = `https://127.0.0.1:${receiver.port}/hooks`;
    const webhook = await newWebhook(tenant, url, { secret: 'quite another secret' });

    await tenant.post(`/api/agent-webhooks/${webhook.id}/test`);
    const { attempts } = await deliveryOnce(tenant, webhook, (one) => one.attempts.length === 1);

    expect(attempts).toMatchObject([{ status: 401 }]);
  });
});

describe('to other senders, the receiver', () => {
  test('acts once on a repeated delivery', async () => {
    const body = eventOf('once');
    const headers = signed(body, 'delivery-once');

    const statuses = [
      await send(receiver.port, body, headers),
      await send(receiver.port, body, headers),
      await send(receiver.port, body, signed(body, 'delivery-once')),
    ];

    expect(statuses).toEqual([204, 204, 204]);
    expect(receiver.output().split('"once"')).toHaveLength(2);
  });

  test('answers 500 to an event that it cannot handle, and acts on the retry', async () => {
    const body = '{"no": "JSON"';

    expect(await send(receiver.port, body, signed(body, 'again'))).toBe(500);
    expect(await send(receiver.port, eventOf('again'), signed(eventOf('again'), 'again'))).toBe(
      204,
    );
  });

  test('does not answer 204 to a repeated delivery while the first is still handled', async () => {
    const failing = `
      console.log('at work');
      await new Promise((resolve) => process.stdin.once('data', resolve));
      throw new Error('it went wrong');`;
    const script = join(directory, 'failing.mjs');
    writeFileSync(
      script,
      readFileSync(file, 'utf8').replace(
        /(async function handle\(event\) \{)[\s\S]*?\n\}/,
        `$1${failing}\n}`,
      ),
    );
    const { child, port, output } = await startReceiver(script);
    const body = eventOf('twice');
    const headers = signed(body, 'twice');

    const first = send(port, body, headers);
    await waitFor(() => output().includes('at work'), { describe: 'the first is being handled' });
    const second = send(port, body, headers);
    // A whole request behind it, so that the second has come in.
    expect(await send(port, '', {}, 'GET')).toBe(405);
    child.stdin?.write('go on');

    expect(await Promise.all([first, second])).toEqual([500, 500]);
    child.kill();
  });

  const body = eventOf('forged');
  const right = signed(body, 'forged');
  const minutesAgo = (n: number) => new Date(Date.now() - n * 60_000);
  test.each([
    ['nothing', {}],
    ['no signature', { ...right, 'x-service-signature': '' }],
    ['a signature of something else', signed(`${body} `, 'forged')],
    ['a signature of its own alone', { 'x-service-signature': right['x-service-signature'] ?? '' }],
    ['another id of the delivery', { ...right, 'x-service-delivery': 'other' }],
    ['another time', { ...right, 'webhook-timestamp': '1' }],
    ['no time', { ...right, 'webhook-timestamp': 'now' }],
    ['a time long ago', signed(body, 'forged', minutesAgo(6))],
    ['a time to come', signed(body, 'forged', minutesAgo(-6))],
  ] satisfies [string, Record<string, string>][])('answers 401 to %s', async (_what, headers) => {
    expect(await send(receiver.port, body, headers)).toBe(401);
    expect(receiver.output()).not.toContain('forged');
  });

  test('answers 405 to another method, and 413 to a body without end', async () => {
    expect(await send(receiver.port, '', {}, 'GET')).toBe(405);
    expect(await send(receiver.port, 'x'.repeat(3_000_000), {})).toBe(413);
  });
});
