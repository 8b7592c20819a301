/** `skillwright run`: runs a skill of a platform and prints its output. */
import { randomUUID } from 'node:crypto';
import { basename, resolve } from 'node:path';
import type { Client } from '@skillwright/client';
import type { Command } from 'commander';
import { isObject } from '../../../kernel/json.ts';
import {
  type AcceptedJob,
  type AwaitOptions,
  awaitJob,
  longestWait,
  waitsQuietly,
} from '../await-job.ts';
import { connect } from '../connection.ts';
import { defineApiCommand } from '../define-command.ts';
import { CliError, exitCodes } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import type { TargetOptions } from '../profile.ts';
import { readBytes, readSkillInput } from '../skill-input.ts';

interface RunOptions extends TargetOptions, AwaitOptions {
  readonly agent?: string;
  readonly user?: string;
  readonly conversation?: string;
  readonly conversationMode?: string;
  readonly idempotencyKey?: string;
  readonly at?: string;
  readonly delay?: string;
  readonly expiresIn?: string;
  readonly priority?: string;
  readonly jobKey?: string;
  readonly jobKeyMode?: string;
  readonly debounce?: string;
  readonly debounceMax?: string;
  readonly file?: readonly string[];
}

const skillPattern = /^[^/\s]+\/v\d+\.\d+\/[^/\s]+$/;

export function addRunCommands(program: Command, io: Io): void {
  const command = defineApiCommand(program, 'run', {
    about: 'run a skill and print its output as JSON',
    examples: [
      `run text/v1.0/word-count text='Hello, world'`,
      `run text/v1.0/word-count '{"text":"Hello, world"}'`,
      'run text/v1.0/summarize @letter.json --follow',
      'run data/v1.0/parse-csv - < input.json',
      `run text/v1.0/word-count text=later --delay 3600 --no-wait`,
      `run agent/v1.0/run-task task='What is in the picture?' --file harbour.png`,
    ],
  });
  withAwaiting(command)
    .argument('<skill>', 'category/version/name')
    .argument('[input...]', 'its input: JSON, @file, - for stdin, or key=value pairs')
    .option(
      '--file <path>',
      'a file to upload, which the input names in files; several with --file each',
      (path: string, before: readonly string[] = []) => [...before, path],
    )
    .option('--agent <id>', 'the agent that runs it')
    .option('--user <name>', 'the user on whose behalf it runs')
    .option('--conversation <id>', 'a conversation to continue')
    .option(
      '--conversation-mode <mode>',
      'while another job of it has not ended: queue, steer, interrupt, or reject (default)',
    )
    .option('--at <timestamp>', 'it does not begin before that: ISO 8601 with a time zone')
    .option('--delay <seconds>', 'it does not begin before so many seconds have passed')
    .option('--expires-in <seconds>', 'it is cancelled if it has not begun by then')
    .option('--priority <priority>', 'high, normal or low')
    .option('--job-key <key>', 'one of a kind: what it does to an earlier job, --job-key-mode says')
    .option('--job-key-mode <mode>', 'replace (the default), skip or debounce')
    .option('--debounce <seconds>', 'it begins once no other of its key has come for so long')
    .option('--debounce-max <seconds>', 'and at most so long after the first of them')
    .option('--idempotency-key <key>', 'a repeat with the same key runs nothing again')
    .action((skill: string, words: string[], options: RunOptions) =>
      runSkill(io, { skill, words, options }),
    );
}

/** Options of a command that starts a job. */
export function withAwaiting(command: Command): Command {
  return command
    .option('--wait', 'wait for its end (the default)')
    .option('--no-wait', 'print the job and do not wait')
    .option('--follow', 'print what the run says and does, on stderr, until its end');
}

async function runSkill(
  io: Io,
  { skill, words, options }: { skill: string; words: readonly string[]; options: RunOptions },
): Promise<void> {
  if (!skillPattern.test(skill)) {
    const message = `A skill is named category/version/name, not ${JSON.stringify(skill)}: skillwright skills lists them`;
    throw new CliError(message, exitCodes.usage);
  }
  const client = connect(io, options);
  const { agent, user, conversation, idempotencyKey, at, delay, expiresIn } = options;
  const headers = {
    ...(waitsQuietly(io, options) ? longestWait : {}),
    ...given('x-agent-id', agent),
    ...given('x-user-id', user),
    ...given('x-conversation-id', conversation),
    ...given('x-conversation-mode', options.conversationMode),
    ...given('x-run-at', at),
    ...given('x-delay-seconds', delay),
    ...given('x-expires-in', expiresIn),
    ...given('x-priority', options.priority),
    ...given('x-job-key', options.jobKey),
    ...given('x-job-key-mode', options.jobKeyMode),
    ...given('x-debounce-seconds', options.debounce),
    ...given('x-debounce-max-seconds', options.debounceMax),
    // So that a repeat after a connection that broke runs nothing twice.
    'idempotency-key': idempotencyKey ?? randomUUID(),
  };
  const input = await readSkillInput(io, words);
  const body = await withFiles(io, client, input, options);
  const request = { method: 'POST' as const, path: `/api/${skill}`, body, headers };
  await awaitJob(io, client, await client.request<AcceptedJob>(request), options);
}

/** The input with the files that the options name, which are uploaded for the user of the run. */
async function withFiles(
  io: Io,
  client: Client,
  input: unknown,
  { file: paths = [], user: userId }: RunOptions,
): Promise<unknown> {
  if (paths.length === 0) return input;
  if (!isObject(input)) {
    throw new CliError('--file is for an input that is an object', exitCodes.usage);
  }
  const { files: before = [] } = input;
  const whose = userId === undefined ? {} : { userId };
  const files: unknown[] = Array.isArray(before) ? [...before] : [before];
  for (const path of paths) {
    const bytes = await readBytes(resolve(io.cwd, path), path);
    const { id } = await client.files.upload(bytes, { name: basename(path), ...whose });
    files.push(id);
  }
  return { ...input, files };
}

function given(name: string, value: string | undefined): Record<string, string> {
  return value === undefined ? {} : { [name]: value };
}
