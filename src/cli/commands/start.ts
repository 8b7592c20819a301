/** `skillwright start`: the platform itself. */
import type { Command } from 'commander';
import type { CliDeps } from '../program.ts';

export function addStartCommands(
  program: Command,
  { startPlatform }: Pick<CliDeps, 'startPlatform'>,
): void {
  program
    .command('start')
    .description('start the platform; its settings are environment variables (the default command)')
    .action(startPlatform);
}
