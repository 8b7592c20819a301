/** `skillwright users`: erases the data of a user. */
import { setTimeout as elapsed } from 'node:timers/promises';
import type { Command } from 'commander';
import type { ApiOptions, Schema } from '../api-answers.ts';
import { connect, path } from '../connection.ts';
import { defineApiCommand, defineCommand } from '../define-command.ts';
import { CliError, exitCodes } from '../exit-codes.ts';
import { type Io, writeJson } from '../io.ts';

type Erased = Schema<'ErasedUserData'>;

interface EraseOptions extends ApiOptions {
  readonly cancelJobs?: boolean;
}

/** The pause before a repetition, in which the platform serves others. */
const pauseMs = 1_000;
/** After so long in which only the log was left, the command ends. */
const patienceMs = 5 * 60_000;

const counts = ['memories', 'conversations', 'jobs'] as const;

export function addUserCommands(program: Command, io: Io): void {
  const users = defineCommand(program, 'users', {
    about: 'erase the data of a user',
    examples: ['users erase alice --cancel-jobs'],
  });
  defineApiCommand(users, 'erase <user>', {
    about: 'erase memories, conversations and the text of jobs of a user',
    examples: ['users erase alice', 'users erase alice --cancel-jobs'],
  })
    .option('--cancel-jobs', 'cancel the jobs of the user that have not ended')
    .action((user: string, options: EraseOptions) => eraseUser(io, user, options));
}

/** Repeats the request until nothing is left, or the rest waits for the end of a job; not for ever. */
async function eraseUser(io: Io, user: string, options: EraseOptions): Promise<void> {
  const client = connect(io, options);
  const query = { cancel_jobs: String(options.cancelJobs === true) };
  const request = { method: 'DELETE' as const, path: path`/api/users/${user}/data`, query };
  const sum = { memories: 0, conversations: 0, jobs: 0 };
  let erased = await client.request<Erased>(request);
  for (const name of counts) sum[name] += erased[name];
  const isRepeated = () => !erased.done && erased.waits_for === null;
  if (isRepeated()) io.stderr.write(repeatedNotice);
  for (let since = io.now(); isRepeated(); ) {
    if (io.now() - since >= patienceMs) throw new CliError(heldMessage, exitCodes.failed);
    await elapsed(pauseMs, undefined, { signal: io.interrupted });
    erased = await client.request<Erased>(request);
    for (const name of counts) sum[name] += erased[name];
    if (!erased.waits_for_log) since = io.now();
  }
  const all = { ...erased, ...sum };
  if (options.json) return writeJson(io, all);
  io.stdout.write(
    `erased: ${counts.map((name) => `${all[name]} ${name}`).join(', ')}\n${restOf(all)}`,
  );
}

const repeatedNotice =
  'More is left, or a backup holds the log of the database: the request is repeated until all is erased. ' +
  'Ctrl-C ends the command.\n';
const heldMessage =
  'All is erased but in the log of the database, which a backup or another transaction has held for 5 minutes: ' +
  'repeat it later.';

function restOf({ open_jobs, waits_for }: Erased): string {
  if (waits_for === null) return '';
  return `the rest waits for ${open_jobs} jobs that have not ended, such as ${waits_for}: erase again after their ends\n`;
}
