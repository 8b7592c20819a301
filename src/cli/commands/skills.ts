/** `skillwright skills`: what a platform can run. */
import type { Command } from 'commander';
import { type ApiOptions, type Schema, showList } from '../api-answers.ts';
import { connect, path } from '../connection.ts';
import { defineApiCommand, defineCommand, defineList } from '../define-command.ts';
import { CliError, exitCodes } from '../exit-codes.ts';
import { type Io, writeJson } from '../io.ts';
import { printFields, styled } from '../print.ts';

export function addSkillCommands(program: Command, io: Io): void {
  const skills = defineCommand(program, 'skills', {
    about: 'list the skills of a platform, show one',
    examples: ['skills', 'skills show text/v1.0/word-count'],
  });
  defineList(skills, { about: 'list active skills', examples: ['skills --category text'] })
    .option('--category <category>', 'skills of this category')
    .action((options: ApiOptions & { category?: string }) => listSkills(io, options));
  defineApiCommand(skills, 'show <skill>', {
    about: 'show a skill with the schemas of its input and output',
    examples: ['skills show text/v1.0/word-count'],
  }).action((skill: string, options: ApiOptions) => showSkill(io, skill, options));
}

function listSkills(io: Io, options: ApiOptions & { category?: string }): Promise<void> {
  return showList<Schema<'ListedSkill'>>(io, options, {
    path: '/api/skills',
    query: { category: options.category },
    columns: [
      { title: 'SKILL', of: nameOf },
      { title: 'WHAT IT DOES', of: ({ description }) => firstSentence(description) },
    ],
  });
}

function nameOf({ category, version, skill_name }: Schema<'ListedSkill'>): string {
  return `${category}/${version}/${skill_name}`;
}

function firstSentence(text: string): string {
  const [first = text] = text.split(/(?<=\.)\s/, 1);
  return first.length > 100 ? `${first.slice(0, 99)}…` : first;
}

async function showSkill(io: Io, name: string, options: ApiOptions): Promise<void> {
  const [category, version, skill, ...more] = name.split('/');
  if (!category || !version || !skill || more.length > 0) {
    const message = `A skill is named category/version/name, not ${JSON.stringify(name)}: skillwright skills lists them`;
    throw new CliError(message, exitCodes.usage);
  }
  const found = await connect(io, options).request<Schema<'Skill'>>({
    method: 'GET',
    path: path`/api/skills/${category}/${version}/${skill}`,
    query: { include: 'examples' },
  });
  if (options.json) return writeJson(io, found);
  const { display_name, description, required_scopes } = found;
  printFields(io, { skill: nameOf(found), display_name, description, required_scopes });
  printSchema(io, 'input', found.parameters_schema);
  printSchema(io, 'output', found.output_schema);
  for (const { input } of found.examples ?? []) {
    const words = `skillwright run ${nameOf(found)} '${JSON.stringify(input).replaceAll("'", "'\\''")}'`;
    if (io.stdout.isTTY) io.stdout.write(`\n${styled(io.stdout, 'dim', 'example')}\n${words}\n`);
    else io.stdout.write(`example\t${words}\n`);
  }
}

function printSchema({ stdout }: Io, title: string, schema: object): void {
  const text = stdout.isTTY
    ? `\n${styled(stdout, 'dim', title)}\n${JSON.stringify(schema, null, 2)}`
    : `${title}\t${JSON.stringify(schema)}`;
  stdout.write(`${text}\n`);
}
