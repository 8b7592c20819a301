/** `skillwright start`: the platform itself. */
import type { Command } from 'commander';
import { defineCommand } from '../define-command.ts';
import type { CliDeps } from '../program.ts';

export function addStartCommands(
  program: Command,
  { io, startPlatform }: Pick<CliDeps, 'io' | 'startPlatform'>,
): void {
  defineCommand(program, 'start', {
    about: 'start the platform; its settings are environment variables (the default command)',
    examples: ['start', 'start --replace'],
  })
    .option('--replace', 'in place of the platform that runs with this DATA_DIR and PORT')
    .option('--json', 'with --replace: print one JSON value')
    .action(async ({ replace, json }: { replace?: boolean; json?: boolean }) => {
      if (!replace) return startPlatform();
      const { replacePlatform } = await import('../replace-platform.ts');
      await replacePlatform(io, { ...(json && { json }) });
    });
}
