/** `skillwright schedules`: cron expressions that start runs. */
import { randomUUID } from 'node:crypto';
import type { ApiRequest } from '@skillwright/client';
import type { Command } from 'commander';
import { type ApiOptions, deleteOne, type Schema, showList, showOne } from '../api-answers.ts';
import { path } from '../connection.ts';
import { defineApiCommand, defineCommand, defineList } from '../define-command.ts';
import type { Io } from '../io.ts';
import { readSkillInput, skillFields } from '../skill-input.ts';

interface CreateOptions extends ApiOptions {
  readonly agent: string;
  readonly timezone?: string;
  readonly priority?: string;
}

const times = ['last_run_at', 'next_run_at', 'created_at', 'updated_at'];
const anId = '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11';

export function addScheduleCommands(program: Command, io: Io): void {
  const schedules = defineCommand(program, 'schedules', {
    about: 'list, show, create, run and switch schedules',
    examples: ['schedules', `schedules create '0 6 * * *' text/v1.0/word-count text=Hello`],
  });
  defineList(schedules, {
    about: 'list schedules, newest first',
    examples: ['schedules list --json'],
  }).action((options: ApiOptions) => listSchedules(io, options));
  defineApiCommand(schedules, 'show <schedule>', {
    about: 'show a schedule with its input',
    examples: [`schedules show ${anId}`],
  }).action((id: string, options: ApiOptions) =>
    answer(io, options, { method: 'GET', path: path`/api/scheduled-jobs/${id}` }),
  );
  defineApiCommand(schedules, 'create <cron> <skill> [input...]', {
    about: 'create a schedule: five fields of cron; the input as that of run',
    examples: [
      `schedules create '0 6 * * 1-5' text/v1.0/word-count text=Hello`,
      `schedules create '0 6 * * 1-5' text/v1.0/word-count text=Hello --timezone Europe/Berlin`,
    ],
  })
    .option('--agent <id>', 'the agent that runs it', 'default')
    .option('--timezone <name>', 'the IANA time zone of the fields; UTC if omitted')
    .option('--priority <priority>', "of its jobs: high, normal or low; the agent's if omitted")
    .action((cron: string, skill: string, words: string[], options: CreateOptions) =>
      createSchedule(io, { cron, skill, words, options }),
    );
  defineApiCommand(schedules, 'timezone <schedule> <name>', {
    about: 'change the time zone of a schedule; UTC clears it',
    examples: [`schedules timezone ${anId} Europe/Berlin`],
  }).action((id: string, timezone: string, options: ApiOptions) => {
    const operation = path`/api/scheduled-jobs/${id}`;
    return answer(io, options, { method: 'PUT', path: operation, body: { timezone } });
  });
  defineApiCommand(schedules, 'run <schedule>', {
    about: 'start one run of a schedule now',
    examples: [`schedules run ${anId}`],
  }).action((id: string, options: ApiOptions) =>
    answer(io, options, {
      method: 'POST',
      path: path`/api/scheduled-jobs/${id}/run`,
      headers: { 'idempotency-key': randomUUID() },
    }),
  );
  for (const [verb, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const) {
    defineApiCommand(schedules, `${verb} <schedule>`, {
      about: `${verb} a schedule`,
      examples: [`schedules ${verb} ${anId}`],
    }).action((id: string, options: ApiOptions) => {
      const operation = path`/api/scheduled-jobs/${id}`;
      return answer(io, options, { method: 'PUT', path: operation, body: { enabled } });
    });
  }
  defineApiCommand(schedules, 'delete <schedule>', {
    about: 'delete a schedule; runs that it started go on',
    examples: [`schedules delete ${anId}`],
  }).action((id: string, options: ApiOptions) =>
    deleteOne(io, options, { id, path: path`/api/scheduled-jobs/${id}` }),
  );
}

function answer(io: Io, options: ApiOptions, request: ApiRequest): Promise<void> {
  return showOne(io, options, { ...request, times });
}

function listSchedules(io: Io, options: ApiOptions): Promise<void> {
  return showList<Schema<'ListedScheduledJob'>>(io, options, {
    path: '/api/scheduled-jobs',
    columns: [
      { title: 'SCHEDULE', of: (one) => one.id },
      { title: 'CRON', of: (one) => one.cron_expression },
      { title: 'ZONE', of: (one) => one.timezone ?? 'UTC' },
      {
        title: 'SKILL',
        of: (one) => `${one.skill_category}/${one.skill_version}/${one.skill_name}`,
      },
      { title: 'AGENT', of: (one) => one.agent_id },
      { title: 'NEXT', of: (one) => (one.enabled ? one.next_run_at : 'disabled'), as: 'time' },
      { title: 'LAST', of: (one) => one.last_run_status, as: 'state' },
    ],
  });
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
  const body = {
    agent_id: options.agent,
    ...skillFields(skill),
    cron_expression: cron,
    ...(options.timezone === undefined ? {} : { timezone: options.timezone }),
    ...(options.priority === undefined ? {} : { priority: options.priority }),
    input: await readSkillInput(io, words),
  };
  await answer(io, options, { method: 'POST', path: '/api/scheduled-jobs', body });
}
