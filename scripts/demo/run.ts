/**
 * `npm run demo`: starts a throw-away platform, makes a key, runs skills on real input; lets a
 * schedule fire, a skill remember, a push start a run and signed webhooks arrive; shows what came of
 * it, and stops. Ends with 1 when anything was not as it should be.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { automate } from './automation.ts';
import { createClient } from './client.ts';
import { say } from './paper.ts';
import { startReceiver } from './receiver.ts';

const root = join(import.meta.dirname, '../..');
const adminSecret = 'the-secret-of-the-demo';
const startDeadlineMs = 20_000;

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

const dataDir = mkdtempSync(join(tmpdir(), 'skillwright-demo-'));
const page = createServer((_request, response) => {
  response.setHeader('content-type', 'text/html; charset=utf-8').end(webPage);
});
await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve));
const pageUrl = `http://127.0.0.1:${(page.address() as AddressInfo).port}/tea`;

const receiver = await startReceiver();

const platform = spawn(process.execPath, [join(root, 'src/start.js')], {
  env: {
    PATH: process.env['PATH'],
    PORT: '0',
    DATA_DIR: dataDir,
    ADMIN_SECRET: adminSecret,
    // The demo's web page is on this machine, which skills may not reach unless it is allowed.
    SKILLS_ALLOW_CIDRS: '127.0.0.0/8',
    // So is its receiver of webhooks, whose certificate only an authority of its own has signed.
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    NODE_EXTRA_CA_CERTS: receiver.authorityFile,
    SKILLS_DIR: join(root, 'examples/skills'),
  },
  stdio: ['ignore', 'pipe', 'inherit'],
});
const ended = new Promise((resolve) => platform.once('close', resolve));

try {
  const url = await addressOf();
  say(`A platform of its own, with its data in ${dataDir}: ${url}`);
  const client = await createClient(url, adminSecret);
  say('A key for everything: sk_…');
  const automation = await automate(client, receiver);
  await client.show('Text of a PDF', 'documents/v1.0/extract-text', {
    base64: readFileSync(join(root, 'test/fixtures/documents/report.pdf')).toString('base64'),
  });
  await client.show('A web page as Markdown', 'web/v1.0/fetch-page', { url: pageUrl });
  await client.show('A CSV file as rows', 'data/v1.0/parse-csv', { text: salesCsv });
  await client.show('A question to JSON', 'data/v1.0/query-json', {
    expression: '$sum(orders.price)',
    data: orders,
  });
  await client.show('Words counted', 'text/v1.0/word-count', {
    text: 'Hello, agents of the world',
  });
  await automation.show();
  say('\nEverything worked. `npm start` starts a platform that stays.');
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`${(error as Error).message}\n`);
} finally {
  platform.kill('SIGTERM');
  await ended;
  page.close();
  receiver.close();
  rmSync(dataDir, { recursive: true, force: true });
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
