import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const demos = () => readdirSync(tmpdir()).filter((name) => name.startsWith('skillwright-demo-'));

test('npm run demo starts a throw-away instance, runs skills, lets a schedule fire, and ends with 0', async () => {
  const before = demos();

  // Rejects for any other exit code.
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [join(root, 'scripts/demo/run.ts')],
    { cwd: root },
  );

  expect(stderr).toBe('');
  // At least four skills, each with its job, its conversation and its output.
  const runs = stdout.split('\n── ').slice(1);
  expect(runs.length).toBeGreaterThanOrEqual(4);
  for (const run of runs) {
    expect(run).toMatch(/[a-z]+\/v1\.0\/[a-z-]+/);
    expect(run).toMatch(/job [0-9a-f-]{36} completed in \d+ ms/);
    expect(run).toMatch(/conversation [0-9a-f-]{36}/);
    expect(run).toMatch(/user: .+\n\s+assistant: .+/);
  }
  // A real PDF, a web page as Markdown, a CSV, JSON.
  expect(stdout).toContain('documents/v1.0/extract-text');
  expect(stdout).toContain('**boiling water**');
  expect(stdout).toMatch(/"city": "Lisbon"/);
  expect(stdout).toContain('10.5');
  // A push through a trigger, a schedule whose run remembers, signed webhooks.
  expect(stdout).toContain('A signed push');
  expect(stdout).toMatch(/GET \/api\/agents\/default\/memories.*\n.*\n.*"id"/);
  expect(stdout).toMatch(/Webhooks: \d+ deliveries arrived, every signature verified/);
  expect(stdout).toMatch(/"scheduled_for": "[^"]+:00\.000Z"/);
  expect(stdout).not.toMatch(/sk_[A-Za-z0-9_-]{43}/);
  expect(demos().filter((name) => !before.includes(name))).toEqual([]);
});
