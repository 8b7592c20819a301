/** The command line: all commands as one program, and the exit code of a call. */
import { Command, CommanderError } from 'commander';
import { operatorMessage } from '../../core/config/operator-message.ts';
import { addAgentCommands } from './commands/agents.ts';
import { addApprovalCommands } from './commands/approvals.ts';
import { addCompletionCommands } from './commands/completion.ts';
import { addDataCommands } from './commands/data.ts';
import { addDevCommands } from './commands/dev.ts';
import { addJobCommands } from './commands/jobs.ts';
import { addKeyCommands } from './commands/keys.ts';
import { addMaintenanceCommands } from './commands/maintenance.ts';
import { addBatchCommand } from './commands/many-jobs.ts';
import { addProfileCommands } from './commands/profiles.ts';
import { addProjectCommands } from './commands/project.ts';
import { addQueueCommand } from './commands/queue.ts';
import { addRunCommands } from './commands/run.ts';
import { addScheduleCommands } from './commands/schedules.ts';
import { addSkillCommands } from './commands/skills.ts';
import { addStartCommands } from './commands/start.ts';
import { addTriggerCommands } from './commands/triggers.ts';
import { addTypesCommand } from './commands/types.ts';
import { addUserCommands } from './commands/users.ts';
import { addWebhookCommands } from './commands/webhooks.ts';
import { asCliError } from './errors.ts';
import { CliError, exitCodes } from './exit-codes.ts';
import type { Io } from './io.ts';

/** Runs the platform in this process until it is stopped; `settings` go over the environment. */
export type StartPlatform = (settings?: Readonly<Record<string, string>>) => Promise<void>;

interface Cli {
  readonly io: Io;
  readonly version: string;
  readonly startPlatform: StartPlatform;
}

/** Runs the command of these arguments, `start` when there are none; its exit code. */
export async function runCli(cli: Cli, args: readonly string[]): Promise<number> {
  const { io } = cli;
  try {
    await program(cli).parseAsync(args.length === 0 ? ['start'] : [...args], { from: 'user' });
    return exitCodes.done;
  } catch (error) {
    // Commander has printed its own errors, help and version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
    if (isInterrupted(io, error)) return exitCodes.interrupted;
    const reported = asCliError(error);
    io.stderr.write(`${operatorMessage(reported)}\n`);
    return reported instanceof CliError ? reported.exitCode : exitCodes.failed;
  }
}

/** Ctrl-C ends the requests of a command, and that is no failure of theirs. */
function isInterrupted({ interrupted }: Io, error: unknown): boolean {
  return interrupted.aborted && !(error instanceof CliError);
}

function program({ io, version, startPlatform }: Cli): Command {
  const root = new Command('skillwright')
    .description('Runs skills for agents: the platform, and a command line for its API.')
    .version(version)
    .exitOverride()
    .showHelpAfterError('Its arguments, options and examples: add --help')
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      getOutHasColors: () => io.stdout.hasColors,
      getErrHasColors: () => io.stderr.hasColors,
    });
  root.commandsGroup('Platform:');
  addStartCommands(root, io, startPlatform);
  addDevCommands(root, io, startPlatform);
  root.commandsGroup('Projects:');
  addProjectCommands(root, io);
  root.commandsGroup('Runs:');
  addRunCommands(root, io);
  addJobCommands(root, io);
  addBatchCommand(root, io);
  addQueueCommand(root, io);
  addApprovalCommands(root, io);
  root.commandsGroup('What there is:');
  addSkillCommands(root, io);
  addTypesCommand(root, io);
  addAgentCommands(root, io);
  addScheduleCommands(root, io);
  addUserCommands(root, io);
  addTriggerCommands(root, io);
  addWebhookCommands(root, io);
  root.commandsGroup('Access:');
  addKeyCommands(root, io);
  addProfileCommands(root, io);
  root.commandsGroup('Installation:');
  addMaintenanceCommands(root, io, version);
  addDataCommands(root, io);
  addCompletionCommands(root, io);
  return root;
}
