/**
 * Writes console/src/api/schema.ts: the types of the console's client, from the `/openapi.json` of a
 * platform that it starts for that, and the labels of webhook events, from their table. With `--check` it writes nothing, and fails where they differ.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { events } from '../src/events/events.ts';

const root = join(import.meta.dirname, '..');
const target = join(root, 'console/src/api/schema.ts');
const program = join(root, 'console/node_modules/openapi-typescript/bin/cli.js');
const startTimeoutMs = 60_000;

const directory = mkdtempSync(join(tmpdir(), 'skillwright-types-'));
const platform = start();
try {
  const document = await fetch(`${await addressOf(platform)}/openapi.json`);
  const file = join(directory, 'openapi.json');
  writeFileSync(file, await document.text());
  // In the console's directory: it would take the settings of another tool for its own here.
  const { stdout: types } = await promisify(execFile)(process.execPath, [program, file], {
    cwd: join(root, 'console'),
    maxBuffer: 16 * 1024 * 1024,
  });
  const written = `${types}${eventLabels()}`;
  if (!process.argv.includes('--check')) writeFileSync(target, written);
  else if (readFileSync(target, 'utf8') !== written) {
    console.error('The types of the console are not those of the API: npm run console:types');
    process.exitCode = 1;
  }
} finally {
  platform.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
}

/** What each event reports, as a constant of the console. */
function eventLabels(): string {
  const labels = Object.entries(events).map(([type, { when }]) => [
    type,
    `${when.charAt(0).toUpperCase()}${when.slice(1)}`,
  ]);
  const entries = JSON.stringify(Object.fromEntries(labels), null, 4);
  return `/** The webhook events, each with what it reports. */\nexport const eventLabels = ${entries} as const;\n`;
}

function start(): ChildProcess {
  return spawn(process.execPath, [join(root, 'src/start.js')], {
    env: { ...process.env, DATA_DIR: join(directory, 'data'), PORT: '0', EXECUTORS: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** Where it listens, from the line that says so. */
async function addressOf({ stdout }: ChildProcess): Promise<string> {
  const timer = setTimeout(() => stdout?.destroy(), startTimeoutMs);
  try {
    if (stdout !== null) {
      for await (const line of createInterface(stdout)) {
        const { address } = JSON.parse(line) as { address?: string };
        if (address !== undefined) return address;
      }
    }
  } finally {
    clearTimeout(timer);
  }
  throw new Error('The platform did not start');
}
