/** The command line: all commands as one program, and the exit code of a call. */
import { Command, CommanderError } from 'commander';
import { operatorMessage } from '../config/operator-message.ts';
import { addDataCommands } from './commands/data.ts';
import { addRunCommands } from './commands/run.ts';
import { addStartCommands } from './commands/start.ts';
import { CliError, exitCodes } from './exit-codes.ts';
import type { Io } from './io.ts';

export interface CliDeps {
  readonly io: Io;
  readonly version: string;
  /** Runs the platform in this process until it is stopped. */
  startPlatform(): Promise<void>;
}

/** Runs the command of these arguments, `start` when there are none; its exit code. */
export async function runCli(deps: CliDeps, args: readonly string[]): Promise<number> {
  const { io } = deps;
  try {
    await program(deps).parseAsync(args.length === 0 ? ['start'] : [...args], { from: 'user' });
    return exitCodes.done;
  } catch (error) {
    // Commander has printed its own errors, help and version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
    io.stderr.write(`${operatorMessage(error)}\n`);
    return error instanceof CliError ? error.exitCode : exitCodes.failed;
  }
}

function program(deps: CliDeps): Command {
  const { io, version } = deps;
  const root = new Command('skillwright')
    .description('Runs skills for agents: the platform, and a command line for its API.')
    .version(version)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      getOutHasColors: () => io.stdout.hasColors,
      getErrHasColors: () => io.stderr.hasColors,
    });
  addStartCommands(root, deps);
  addRunCommands(root, io);
  addDataCommands(root, io);
  return root;
}
