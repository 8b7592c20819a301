/** `skillwright start`: the platform itself. */
import type { Command } from 'commander';
import { defineCommand } from '../define-command.ts';
import { readNamedEnvFile } from '../env-file.ts';
import type { Io } from '../io.ts';
import type { StartPlatform } from '../program.ts';

interface StartOptions {
  readonly envFile?: string;
  readonly replace?: boolean;
  readonly json?: boolean;
}

export function addStartCommands(program: Command, io: Io, startPlatform: StartPlatform): void {
  defineCommand(program, 'start', {
    about: 'start the platform; its settings are environment variables (the default command)',
    examples: ['start', 'start --env-file .env', 'start --replace'],
  })
    .option('--env-file <file>', 'take what the environment does not set from this file')
    .option('--replace', 'in place of the platform that runs with this DATA_DIR and PORT')
    .option('--json', 'with --replace: print one JSON value')
    .action(async ({ envFile, replace, json }: StartOptions) => {
      const given = readNamedEnvFile(io, envFile);
      if (!replace) return startPlatform(given);
      const { replacePlatform } = await import('../replace-platform.ts');
      const { cwd, stdout } = io;
      const env = { ...given, ...io.env };
      await replacePlatform({ cwd, stdout, env }, { ...(json && { json }) });
    });
}
