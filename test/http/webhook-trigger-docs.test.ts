/** The page on triggers is correct: its commands and mappings are executed as written. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Expressions } from '../../src/adapters/sandbox/expressions.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/triggers.md'), 'utf8');

let platform: Platform;
let tenant: Tenant;
let mappings: Expressions;
beforeAll(async () => {
  platform = await startPlatform();
  tenant = await newTenant(platform);
  mappings = new Expressions();
});
afterAll(async () => {
  await mappings.stop();
  await platform.stop();
});

const section = (title: string) =>
  page.split(/^## /m).find((text) => text.startsWith(`${title}\n`));

/** Runs the commands of a section; the jobs that its calls became. */
async function jobsOf(title: string) {
  const code = /^```sh\n(.*?)^```/ms.exec(section(title) ?? '')?.[1] ?? '';
  expect(code).toContain('http://127.0.0.1:3000');
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-euo', 'pipefail', '-c', code.replaceAll('http://127.0.0.1:3000', platform.url)],
    { env: { PATH: process.env['PATH'], KEY: tenant.key } },
  );
  const ids = [...stdout.matchAll(/"job_id":"([^"]+)"/g)].map(([, id]) => id as string);
  expect(stdout.match(/HTTP\/1\.1 202 Accepted/g)).toHaveLength(ids.length);
  return Promise.all(ids.map(async (id) => (await tenant.jobIn(id, 'completed', 'failed')).body));
}

describe('the commands', () => {
  test('of a call with curl start two runs', async () => {
    const jobs = await jobsOf('Quickstart');

    expect(jobs).toMatchObject([
      { status: 'completed', trigger_type: 'webhook', output: { words: 2 } },
      { status: 'completed', user_id: 'Notes of the night shift', output: { words: 3 } },
    ]);
  });

  test('of a push on GitHub start a run of its messages', async () => {
    const jobs = await jobsOf('Example: GitHub');

    expect(jobs).toMatchObject([
      { status: 'completed', input: { text: 'Say hello\nSay goodbye' }, output: { words: 4 } },
    ]);
  });
});

describe('the mappings', () => {
  const code = (cell: string) => cell.trim().replace(/^`|`$/g, '');
  const rows = (section('Input and mapping') ?? '')
    .split('\n')
    .map((line) => line.split('|').slice(1, -1).map(code))
    .filter(([, sent, gives]) => sent !== undefined && gives !== undefined)
    .slice(2) as [string, string, string][];

  test('are all of the table', () => {
    expect(rows).toHaveLength(5);
  });

  test.each(rows)('%s of %s gives %s', async (mapping, sent, gives) => {
    const value = await mappings.evaluate('docs', mapping, {
      body: JSON.parse(sent),
      headers: { 'x-github-event': 'push' },
      query: {},
    });

    expect(value).toEqual(JSON.parse(gives));
  });
});
