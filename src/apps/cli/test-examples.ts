/**
 * `skillwright test`: runs the examples of the skills of a folder in a thread of their own, which is ended if an
 * example does not end.
 */
import { statSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { CliError, exitCodes } from './exit-codes.ts';
import { type Io, writeJson } from './io.ts';
import type { ExampleResult } from './run-examples.ts';

/** Time to load all skills, and for an example to end after its own limit. */
const loadMs = 60_000;
const graceMs = 5_000;
const timeoutMaxMs = 3_600_000;

/** What the thread is given. Settings of skills come from the environment. */
export interface ThreadData {
  readonly folder: string;
  readonly timeoutMs: number;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export async function testExamples(
  io: Io,
  given: { folder: string | undefined; timeout: string; isJson: boolean },
): Promise<void> {
  const folder = resolve(io.cwd, given.folder ?? io.env['SKILLS_DIR'] ?? 'skills');
  const timeoutMs = Number(given.timeout);
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > timeoutMaxMs) {
    const message = `--timeout must be milliseconds from 1 to ${timeoutMaxMs}.`;
    throw new CliError(message, exitCodes.usage);
  }
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
    const message = `${folder} is no folder. Name the folder of your skills: skillwright test FOLDER`;
    throw new CliError(message, exitCodes.usage);
  }
  const results: ExampleResult[] = [];
  await runInThread({ folder, timeoutMs, environment: { ...io.env } }, (result) => {
    results.push(result);
    if (!given.isJson) io.stdout.write(lineOf(result));
  });
  const count = (status: ExampleResult['status']) =>
    results.filter((one) => one.status === status).length;
  const counts = { passed: count('passed'), failed: count('failed'), skipped: count('skipped') };
  if (given.isJson) writeJson(io, { ...counts, examples: results });
  else {
    const { passed, failed, skipped } = counts;
    io.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  }
  if (counts.failed > 0) {
    throw new CliError(`${counts.failed} of ${results.length} examples failed.`, exitCodes.failed);
  }
}

function lineOf({ skill, example, status, reason, difference }: ExampleResult): string {
  const line = `${status.padEnd(7)} ${skill} example ${example}`;
  if (reason === null) return `${line}\n`;
  if (difference === undefined) return `${line}: ${reason}\n`;
  const shown = difference.split('\n').map((one) => `        ${one}\n`);
  return `${line}: ${reason} (+ of the run, - of the example)\n${shown.join('')}`;
}

/** Rejects if the skills cannot be loaded, or an example does not end. */
async function runInThread(
  data: ThreadData,
  onResult: (result: ExampleResult) => void,
): Promise<void> {
  const { timeoutMs } = data;
  const url = new URL(`./run-examples${extname(import.meta.url)}`, import.meta.url);
  const worker = new Worker(url, { workerData: data });
  const ended = Promise.withResolvers<void>();
  const fail = (message: string) => ended.reject(new CliError(message, exitCodes.failed));
  let isDone = false;
  let place = 'The skills did not load';
  let timer = setTimeout(() => fail(`${place} within ${loadMs} ms.`), loadMs);
  worker.on('message', (message: ExampleMessage) => {
    clearTimeout(timer);
    if ('fault' in message) return fail(message.fault);
    if ('result' in message) onResult(message.result);
    isDone = 'done' in message;
    if ('begun' in message) place = `${message.begun} did not end`;
    const ms = timeoutMs + graceMs;
    if (!isDone) timer = setTimeout(() => fail(`${place} within ${timeoutMs} ms.`), ms);
    if (isDone) ended.resolve();
  });
  worker.on('error', (error) => fail(`${place}: ${String(error)}`));
  worker.on('exit', () => {
    if (!isDone) fail(`${place}: its code ended the process.`);
  });
  try {
    await ended.promise;
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}

/** What the thread says. */
export type ExampleMessage =
  | { readonly begun: string }
  | { readonly result: ExampleResult }
  | { readonly fault: string }
  | { readonly done: true };
