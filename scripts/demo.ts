/**
 * `npm run demo`: starts a throw-away platform, makes a key, runs skills on real input, shows what
 * came of it, and stops. Ends with 1 when anything was not as it should be.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const root = join(import.meta.dirname, '..');
const adminSecret = 'the-secret-of-the-demo';
const startDeadlineMs = 20_000;
const shownCharacters = 500;

const webPage = `<!doctype html><html><head><title>Tea</title></head><body>
<nav><a href="/">Home</a></nav>
<article><h1>How to make tea</h1>
<p>Tea is made by pouring <strong>boiling water</strong> over leaves. Three minutes are enough for
most black teas; green tea wants cooler water and less time, or it turns bitter.</p>
<p>Read on about <a href="/kettles">kettles</a>, which matter more than people think.</p></article>
</body></html>`;

const salesCsv = 'city,product,amount\nLisbon,tea,12\nOslo,coffee,30\nLisbon,coffee,7\n';
const orders = {
  orders: [
    { item: 'tea', price: 4 },
    { item: 'cake', price: 6.5 },
  ],
};

interface Job {
  readonly job_id: string;
  readonly status: string;
  readonly conversation_id: string;
  readonly output: unknown;
  readonly error: { code: string; message: string } | null;
  readonly duration_ms: number;
}

const dataDir = mkdtempSync(join(tmpdir(), 'skillwright-demo-'));
const page = createServer((_request, response) => {
  response.setHeader('content-type', 'text/html; charset=utf-8').end(webPage);
});
await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve));
const pageUrl = `http://127.0.0.1:${(page.address() as AddressInfo).port}/tea`;

const platform = spawn(process.execPath, [join(root, 'src/main.ts')], {
  env: {
    PATH: process.env['PATH'],
    PORT: '0',
    DATA_DIR: dataDir,
    ADMIN_SECRET: adminSecret,
    // The demo's web page is on this machine, which skills may not reach unless it is allowed.
    SKILLS_ALLOW_CIDRS: '127.0.0.0/8',
  },
  stdio: ['ignore', 'pipe', 'inherit'],
});
const ended = new Promise((resolve) => platform.once('close', resolve));

try {
  const url = await addressOf();
  say(`A platform of its own, with its data in ${dataDir}: ${url}`);
  const key = await makeKey(url);
  say('A key for everything: sk_…');
  await show(url, key, 'Text of a PDF', 'documents/v1.0/extract-text', {
    base64: readFileSync(join(root, 'test/fixtures/documents/report.pdf')).toString('base64'),
  });
  await show(url, key, 'A web page as Markdown', 'web/v1.0/fetch-page', { url: pageUrl });
  await show(url, key, 'A CSV file as rows', 'data/v1.0/parse-csv', { text: salesCsv });
  await show(url, key, 'A question to JSON', 'data/v1.0/query-json', {
    expression: '$sum(orders.price)',
    data: orders,
  });
  await show(url, key, 'Words counted', 'text/v1.0/word-count', {
    text: 'Hello, agents of the world',
  });
  say('\nEverything worked. `npm start` starts a platform that stays.');
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`${(error as Error).message}\n`);
} finally {
  platform.kill('SIGTERM');
  await ended;
  page.close();
  rmSync(dataDir, { recursive: true, force: true });
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Where the platform listens, once it says so. */
function addressOf(): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error('The platform did not start in time')),
      startDeadlineMs,
    );
    platform.once('exit', () => reject(new Error('The platform ended before it was ready')));
    createInterface({ input: platform.stdout }).on('line', (line) => {
      const { address } = JSON.parse(line) as { address?: string };
      if (address === undefined) return;
      clearTimeout(timer);
      resolve(address);
    });
  });
}

async function call<T>(url: string, init: RequestInit = {}): Promise<T> {
  const response = await fetch(url, init);
  const body = (await response.json()) as T;
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${JSON.stringify(body)}`);
  return body;
}

async function makeKey(url: string): Promise<string> {
  const { plaintext_key } = await call<{ plaintext_key: string }>(`${url}/admin/api-keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminSecret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'demo', scopes: ['*'] }),
  });
  return plaintext_key;
}

/** Runs a skill and shows the job, its conversation and its output. */
async function show(
  url: string,
  key: string,
  title: string,
  skill: string,
  input: unknown,
): Promise<void> {
  const headers = { 'x-api-key': key, 'content-type': 'application/json', prefer: 'wait=30' };
  const job = await call<Job>(`${url}/api/${skill}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(input),
  });
  if (job.status !== 'completed') {
    throw new Error(`${skill} ${job.status}: ${job.error?.code} ${job.error?.message}`);
  }
  const messages = await call<{ role: string; content: string }[]>(
    `${url}/api/conversations/${job.conversation_id}/messages`,
    { headers: { 'x-api-key': key } },
  );
  say(`\n── ${title}\n   POST /api/${skill}`);
  say(`   job ${job.job_id} completed in ${job.duration_ms} ms`);
  say(`   conversation ${job.conversation_id}`);
  for (const { role, content } of messages) say(`     ${role}: ${shortened(content, 100)}`);
  say(indented(shortened(JSON.stringify(job.output, null, 2), shownCharacters)));
}

function shortened(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max)}… (${text.length} characters)` : text;
}

function indented(text: string): string {
  return text
    .split('\n')
    .map((line) => `   ${line}`)
    .join('\n');
}
