/**
 * Writes what is generated from the `/openapi.json` of a platform that it starts for that: the types of the
 * console's client, console/src/api/schema.ts, with the labels of webhook events from their table, and the
 * operations of `@skillwright/client`, packages/client/src/generated. With `--check` it writes nothing, and
 * fails where they differ.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { events } from '../src/core/events/events.ts';
import { type OpenApi, operationsModule, withoutAnswersOfErrors } from './client-types.ts';

const root = join(import.meta.dirname, '..');
const client = join(root, 'packages/client/src/generated');
const program = join(root, 'console/node_modules/openapi-typescript/bin/cli.js');
/** Fields with a default may be left out of a request. */
const clientOptions = ['--default-non-nullable=false'];
const startTimeoutMs = 60_000;

const directory = mkdtempSync(join(tmpdir(), 'skillwright-types-'));
const platform = start();
try {
  const answer = await fetch(`${await addressOf(platform)}/openapi.json`);
  const document = (await answer.json()) as OpenApi;
  const [ofConsole, ofClient] = await Promise.all([
    typesOf('console.json', document),
    typesOf('client.json', withoutAnswersOfErrors(document), ...clientOptions),
  ]);
  writeOrCheck(join(root, 'console/src/api/schema.ts'), `${ofConsole}${eventLabels()}`);
  writeOrCheck(join(client, 'schema.ts'), ofClient);
  writeOrCheck(join(client, 'operations.ts'), await formatted(operationsModule(document)));
} finally {
  platform.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
}

/** The module that openapi-typescript makes of a document. */
async function typesOf(name: string, document: object, ...options: string[]): Promise<string> {
  const file = join(directory, name);
  writeFileSync(file, JSON.stringify(document));
  // In the console's directory: it would take the settings of another tool for its own here.
  const { stdout } = await promisify(execFile)(process.execPath, [program, file, ...options], {
    cwd: join(root, 'console'),
    maxBuffer: 16 * 1024 * 1024,
  });
  return stdout;
}

async function formatted(code: string): Promise<string> {
  const file = join(directory, 'operations.ts');
  writeFileSync(file, code);
  const biome = join(root, 'node_modules/.bin/biome');
  // Its settings are those of this repository, and the file lies elsewhere.
  const options = ['format', '--write', '--config-path', join(root, 'biome.json'), file];
  await promisify(execFile)(biome, [...options, '--vcs-enabled=false'], { cwd: directory });
  return readFileSync(file, 'utf8');
}

function writeOrCheck(file: string, text: string): void {
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    const name = relative(root, file);
    console.error(`${name} does not fit /openapi.json: npm run console:types`);
    process.exitCode = 1;
  }
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
