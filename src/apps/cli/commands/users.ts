/** `skillwright users`: erases the data of a user. */
import { type ErasedUserData, eraseAll } from '@skillwright/client';
import type { Command } from 'commander';
import type { ApiOptions } from '../api-answers.ts';
import { connect, path } from '../connection.ts';
import { defineApiCommand, defineCommand } from '../define-command.ts';
import { type Io, writeJson } from '../io.ts';

interface EraseOptions extends ApiOptions {
  readonly cancelJobs?: boolean;
}

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

async function eraseUser(io: Io, user: string, options: EraseOptions): Promise<void> {
  const client = connect(io, options);
  const query = { cancel_jobs: String(options.cancelJobs === true) };
  const request = { method: 'DELETE' as const, path: path`/api/users/${user}/data`, query };
  const erased = await eraseAll(() => client.request<ErasedUserData>(request), {
    signal: io.interrupted,
    onRepeat: () => io.stderr.write(repeatedNotice),
  });
  if (options.json) return writeJson(io, erased);
  io.stdout.write(
    `erased: ${counts.map((name) => `${erased[name]} ${name}`).join(', ')}\n${restOf(erased)}`,
  );
}

const repeatedNotice =
  'More is left, or a backup holds the log of the database: the request is repeated until all is erased. ' +
  'Ctrl-C ends the command.\n';

function restOf({ open_jobs, waits_for }: ErasedUserData): string {
  if (waits_for === null) return '';
  return `the rest waits for ${open_jobs} jobs that have not ended, such as ${waits_for}: erase again after their ends\n`;
}
