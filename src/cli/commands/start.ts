/** `skillwright start`: the platform itself. */
import type { Command } from 'commander';
import { defineCommand } from '../define-command.ts';
import type { CliDeps } from '../program.ts';

export function addStartCommands(
  program: Command,
  { startPlatform }: Pick<CliDeps, 'startPlatform'>,
): void {
  defineCommand(program, 'start', {
    about: 'start the platform; its settings are environment variables (the default command)',
    examples: ['start'],
  }).action(() => startPlatform());
}
