/** `skillwright skills`: what a platform can run. */
import type { Command } from 'commander';
import { type ApiOptions, type Schema, showList } from '../api-answers.ts';
import { connect, path } from '../connection.ts';
import { defineApiCommand, defineCommand, defineList } from '../define-command.ts';
import { type Io, writeJson } from '../io.ts';
import { printFields, printTable, styled } from '../print.ts';
import { readSettingValues, skillFields } from '../skill-input.ts';

export function addSkillCommands(program: Command, io: Io): void {
  const skills = defineCommand(program, 'skills', {
    about: 'list the skills of a platform, show one, set its settings',
    examples: ['skills', 'skills show text/v1.0/word-count'],
  });
  defineList(skills, { about: 'list active skills', examples: ['skills --category text'] })
    .option('--category <category>', 'skills of this category')
    .action((options: ApiOptions & { category?: string }) => listSkills(io, options));
  defineApiCommand(skills, 'show <skill>', {
    about: 'show a skill with the schemas of its input and output',
    examples: ['skills show text/v1.0/word-count'],
  }).action((skill: string, options: ApiOptions) => showSkill(io, skill, options));
  defineApiCommand(skills, 'config <skill> [values...]', {
    about:
      "show the settings of a skill, or set values of the key's organization; null deletes one",
    examples: [
      'skills config shop/v1.0/order',
      'skills config shop/v1.0/order SHOP_TOKEN=abc REGION=null',
    ],
  }).action((skill: string, words: string[], options: ApiOptions) =>
    configureSkill(io, { skill, words, options }),
  );
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

function skillPath(name: string): string {
  const { skill_category, skill_version, skill_name } = skillFields(name);
  return path`/api/skills/${skill_category}/${skill_version}/${skill_name}`;
}

/** Shows the settings of a skill, after it has set those that are given; `null` deletes a value. */
async function configureSkill(
  io: Io,
  { skill, words, options }: { skill: string; words: readonly string[]; options: ApiOptions },
): Promise<void> {
  const client = connect(io, options);
  const { id } = await client.request<Schema<'Skill'>>({ method: 'GET', path: skillPath(skill) });
  const operation = path`/api/skills/${id}/config`;
  const found = await client.request<Schema<'SkillConfiguration'>>(
    words.length === 0
      ? { method: 'GET', path: operation }
      : { method: 'PUT', path: operation, body: await readSettingValues(io, words) },
  );
  if (options.json) return writeJson(io, found);
  printTable(io, found.settings, [
    { title: 'SETTING', of: (one) => one.name },
    { title: 'FROM', of: (one) => one.source },
    { title: 'FAULT', of: (one) => one.fault },
  ]);
}

async function showSkill(io: Io, name: string, options: ApiOptions): Promise<void> {
  const found = await connect(io, options).request<Schema<'Skill'>>({
    method: 'GET',
    path: skillPath(name),
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
