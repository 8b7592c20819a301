/** `skillwright schedules`: cron expressions that start runs. */
import type { Command } from 'commander';
import { connect, listOf, path } from '../connection.ts';
import { defineApiCommand, defineCommand } from '../define-command.ts';
import { type Io, writeJson } from '../io.ts';
import { printFields, printTable } from '../print.ts';
import type { TargetOptions } from '../profile.ts';
import { readSkillInput } from '../skill-input.ts';

interface Options extends TargetOptions {
  readonly json?: boolean;
}

interface CreateOptions extends Options {
  readonly agent: string;
}

interface Schedule {
  readonly id: string;
  readonly agent_id: string;
  readonly skill_category: string;
  readonly skill_name: string;
  readonly skill_version: string;
  readonly cron_expression: string;
  readonly enabled: boolean;
  readonly last_run_at: string | null;
  readonly last_run_status: string | null;
  readonly next_run_at: string | null;
}

const root = '/api/scheduled-jobs';
const times = { times: ['last_run_at', 'next_run_at', 'created_at', 'updated_at'] };
const anId = '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11';

export function addScheduleCommands(program: Command, io: Io): void {
  const schedules = defineCommand(program, 'schedules', {
    about: 'list, show, create, run and switch schedules',
    examples: ['schedules', `schedules create '0 6 * * *' text/v1.0/word-count text=Hello`],
  });
  defineApiCommand(
    schedules,
    'list',
    {
      about: 'list schedules, newest first (the default of schedules)',
      examples: ['schedules list --json'],
    },
    { isDefault: true },
  ).action((options: Options) => listSchedules(io, options));
  defineApiCommand(schedules, 'show <schedule>', {
    about: 'show a schedule with its input',
    examples: [`schedules show ${anId}`],
  }).action((id: string, options: Options) =>
    answer(io, options, { method: 'GET', path: path`/api/scheduled-jobs/${id}` }),
  );
  defineApiCommand(schedules, 'create <cron> <skill> [input...]', {
    about: 'create a schedule: five fields of cron, in UTC; the input as that of run',
    examples: [`schedules create '0 6 * * 1-5' text/v1.0/word-count text=Hello`],
  })
    .option('--agent <id>', 'the agent that runs it', 'default')
    .action((cron: string, skill: string, words: string[], options: CreateOptions) =>
      createSchedule(io, { cron, skill, words, options }),
    );
  defineApiCommand(schedules, 'run <schedule>', {
    about: 'start one run of a schedule now',
    examples: [`schedules run ${anId}`],
  }).action((id: string, options: Options) =>
    answer(io, options, { method: 'POST', path: path`/api/scheduled-jobs/${id}/run` }),
  );
  for (const [verb, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const) {
    defineApiCommand(schedules, `${verb} <schedule>`, {
      about: `${verb} a schedule`,
      examples: [`schedules ${verb} ${anId}`],
    }).action((id: string, options: Options) => {
      const operation = path`/api/scheduled-jobs/${id}`;
      return answer(io, options, { method: 'PUT', path: operation, body: { enabled } });
    });
  }
  defineApiCommand(schedules, 'delete <schedule>', {
    about: 'delete a schedule; runs that it started go on',
    examples: [`schedules delete ${anId}`],
  }).action(async (id: string, options: Options) => {
    const request = { method: 'DELETE' as const, path: path`/api/scheduled-jobs/${id}` };
    await connect(io, options).request(request);
    if (options.json) return writeJson(io, { id, deleted: true });
    io.stdout.write(`${id} is deleted\n`);
  });
}

type Request = Parameters<ReturnType<typeof connect>['request']>[0];

async function answer(io: Io, options: Options, request: Request): Promise<void> {
  const found = await connect(io, options).request<Record<string, unknown>>(request);
  if (options.json) return writeJson(io, found);
  printFields(io, found, times);
}

async function listSchedules(io: Io, options: Options): Promise<void> {
  const page = await listOf<Schedule>(connect(io, options), { path: root });
  if (options.json) return writeJson(io, page);
  printTable(io, page.data, [
    { title: 'SCHEDULE', of: (one) => one.id },
    { title: 'CRON', of: (one) => one.cron_expression },
    {
      title: 'SKILL',
      of: (one) => `${one.skill_category}/${one.skill_version}/${one.skill_name}`,
    },
    { title: 'AGENT', of: (one) => one.agent_id },
    { title: 'NEXT', of: (one) => (one.enabled ? one.next_run_at : 'disabled'), as: 'time' },
    { title: 'LAST', of: (one) => one.last_run_status, as: 'state' },
  ]);
}

async function createSchedule(
  io: Io,
  {
    cron,
    skill,
    words,
    options,
  }: { cron: string; skill: string; words: readonly string[]; options: CreateOptions },
): Promise<void> {
  const [category, version, name] = skill.split('/');
  const body = {
    agent_id: options.agent,
    skill_category: category,
    skill_version: version,
    skill_name: name,
    cron_expression: cron,
    input: await readSkillInput(io, words),
  };
  await answer(io, options, { method: 'POST', path: root, body });
}
