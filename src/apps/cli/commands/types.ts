/** `skillwright types`: the types of a platform's skills, for `@skillwright/client`. */
import type { Command } from 'commander';
import type { ApiOptions } from '../api-answers.ts';
import { connect } from '../connection.ts';
import { defineApiCommand } from '../define-command.ts';
import { type Io, writeJson } from '../io.ts';

export function addTypesCommand(program: Command, io: Io): void {
  defineApiCommand(program, 'types', {
    about: 'write the types of the skills that a key may run, for @skillwright/client',
    examples: ['types > skills.d.ts', 'types --url https://skills.example.com > skills.d.ts'],
  }).action((options: ApiOptions) => printTypes(io, options));
}

async function printTypes(io: Io, options: ApiOptions): Promise<void> {
  // The compiler of schemas is large.
  const { readSkills, typesOfSkills } = await import('../skill-types.ts');
  const skills = await readSkills(connect(io, options));
  const file = await typesOfSkills(skills);
  if (options.json === true) writeJson(io, { skills: skills.map(({ id }) => id), file });
  else io.stdout.write(file);
}
