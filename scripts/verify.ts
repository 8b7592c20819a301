/**
 * `npm run verify`: everything that can be checked without a service, in under half a minute.
 * `npm run ci`: the same checks, then every test that this machine can run.
 *
 * Prints one line a step, with its time, and the whole output of a step only where it fails. Steps
 * run side by side, as many as there are cores, the longest first.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, join } from 'node:path';
import { hasTools, installTools, type ToolFolder } from './tools.ts';

interface Step {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** The folder of the tools without which it cannot run: `verify` then leaves it out, and `ci` installs them. */
  readonly tools?: ToolFolder;
}

const cores = availableParallelism();
const root = join(import.meta.dirname, '..');
const sourceFolders = [
  ...['src', 'test', 'bench', 'scripts', 'deploy', 'examples', 'console', 'packages'],
].filter((folder) => existsSync(join(root, folder)));

const checks: readonly Step[] = [
  // Four checkers, as many as there are without this, take a third more of the processor.
  { name: 'Types', command: ['tsc', '--checkers', '2'] },
  { name: 'Types of the console', command: ['tsc', '-p', 'console'] },
  { name: 'Types of the client', command: ['tsc', '-p', 'packages/client'] },
  {
    name: 'Types of the guides',
    command: ['tsc', '-p', 'docs/.vitepress'],
    tools: 'docs/.vitepress',
  },
  { name: 'Types of the bench', command: ['tsc', '-p', 'bench/tools'], tools: 'bench/tools' },
  { name: 'Format and lint', command: ['biome', 'check', '--error-on-warnings'] },
  { name: 'Import rules', command: ['depcruise', ...sourceFolders] },
  { name: 'Dead code', command: ['knip', '--no-progress'] },
  {
    name: 'Code only for tests',
    command: ['knip', '--production', '--config', 'knip.production.ts', '--no-progress'],
  },
  { name: 'Console', command: ['node', 'scripts/console-build.ts'] },
  { name: 'Paths in documents', command: ['node', 'scripts/check-doc-paths.ts'] },
  { name: 'Words', command: ['node', 'scripts/check-words.ts'] },
];
/** On half of the cores: each worker loads the program anew. */
const unitTests: Step = {
  name: 'Unit tests',
  command: ['vitest', 'run', '--project', 'unit', `--maxWorkers=${Math.ceil(cores / 2)}`],
};

/** Starts the platform, and takes longer than `verify` may. */
const measures: Step = { name: 'Measures', command: ['node', 'scripts/measures.ts'] };
const lockFiles: Step = { name: 'Lock files', command: ['node', 'scripts/check-lock.ts'] };
/** What the tests start: they would make it themselves, one after the other, before the first of them begins. */
const bundle: Step = { name: 'Bundle', command: ['node', 'scripts/bundle.ts'] };
/** Its links, too. */
const guides: Step = { name: 'Guides', command: ['node', 'scripts/docs-build.ts'] };

const everything = process.argv.includes('--ci');
const start = performance.now();
const failed = await runAll(
  everything ? [guides, measures, ...checks, bundle, lockFiles] : [unitTests, ...checks],
);
console.log(
  failed.length === 0
    ? `\nAll good in ${seconds(start)}.`
    : `\n${failed.join(', ')}: failed, after ${seconds(start)}.`,
);

const testsExitCode = everything ? await runHere(['npm', 'test']) : 0;
process.exitCode = failed.length > 0 ? 1 : testsExitCode;

/** Runs the steps side by side; names of the failed. */
async function runAll(steps: readonly Step[]): Promise<string[]> {
  const failures: string[] = [];
  const waiting = [...steps];
  const worker = async () => {
    for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) {
      if (!(await canRun(step))) continue;
      if (!(await run(step))) failures.push(step.name);
    }
  };
  await Promise.all(Array.from({ length: cores }, worker));
  return failures;
}

/** Whether the tools of the step are here. In `ci` its own command fails where they cannot be installed. */
async function canRun({ name, tools }: Step): Promise<boolean> {
  if (tools === undefined || hasTools(tools)) return true;
  if (!everything) {
    console.log(
      `- ${name.padEnd(20)} left out: node scripts/tools.ts ${tools} installs what it needs`,
    );
    return false;
  }
  await installTools(tools).catch((error: Error) => console.error(error.message));
  return true;
}

function run(step: Step): Promise<boolean> {
  const begun = performance.now();
  const [program, ...args] = step.command;
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: root, env: environment(), stdio: 'pipe' });
    const output: Buffer[] = [];
    child.stdin.end();
    child.stdout.on('data', (bytes: Buffer) => output.push(bytes));
    child.stderr.on('data', (bytes: Buffer) => output.push(bytes));
    child.on('error', (error) => output.push(Buffer.from(`${error.message}\n`)));
    child.on('close', (code) => {
      const good = code === 0;
      console.log(`${good ? '✔' : '✘'} ${step.name.padEnd(20)} ${seconds(begun).padStart(7)}`);
      if (!good) {
        console.log(`\n$ ${step.command.join(' ')}\n${Buffer.concat(output).toString().trim()}\n`);
      }
      resolve(good);
    });
  });
}

/** Runs a command whose output is the reader's own business; its exit code. */
function runHere([program, ...args]: [string, ...string[]]): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: root, env: environment(), stdio: 'inherit' });
    child.on('error', () => resolve(1));
    child.on('close', (code) => resolve(code ?? 1));
  });
}

/** Finds the tools of this project, also when it is not npm that runs the script. */
function environment(): NodeJS.ProcessEnv {
  const tools = join(root, 'node_modules', '.bin');
  return { ...process.env, PATH: `${tools}${delimiter}${process.env['PATH'] ?? ''}` };
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
