/** The commands for authors of skills: `init` makes a project, `test` runs the examples of its skills. */
import type { Command } from 'commander';
import { defineCommand } from '../define-command.ts';
import type { Io } from '../io.ts';

export function addProjectCommands(program: Command, io: Io): void {
  defineCommand(program, 'init', {
    about: 'make a project with two skills and their tests',
    examples: ['init my-skills'],
  })
    .argument('<name>', 'the folder to make, which is also the name of the project')
    .option('--json', 'print the folder and its files as JSON')
    .action(async (name: string, options: { json?: boolean }) => {
      const { initProject } = await import('../init-project.ts');
      initProject(io, { name, isJson: options.json === true });
    });
  defineCommand(program, 'test', {
    about: 'run the examples of all skills of a folder',
    examples: ['test skills'],
  })
    .argument('[folder]', 'the folder of the skills (SKILLS_DIR, else skills)')
    .option('--timeout <ms>', 'the most milliseconds of one example', '10000')
    .option('--json', 'print the results as JSON')
    .action(async (folder: string | undefined, options: { timeout: string; json?: boolean }) => {
      const { testExamples } = await import('../test-examples.ts');
      const { timeout, json: isJson = false } = options;
      await testExamples(io, { folder, timeout, isJson });
    });
}
