/** Jobs: `jobs`, `logs`, `events`, `cancel`, `retry`. */

import { randomUUID } from 'node:crypto';
import type { Job, JobEvent, ListedJob } from '@skillwright/client';
import type { Command } from 'commander';
import { type ApiOptions, type ListOptions, type Schema, showList } from '../api-answers.ts';
import { type AwaitOptions, awaitJob } from '../await-job.ts';
import { connect, path } from '../connection.ts';
import { defineApiCommand, defineCommand, defineList, withPage } from '../define-command.ts';
import { type Io, writeJson } from '../io.ts';
import { eventLine, writeEvent } from '../job-events.ts';
import { clean, printFields, printValue } from '../print.ts';
import { readSkillInput } from '../skill-input.ts';
import { addManyCommands } from './many-jobs.ts';
import { withAwaiting } from './run.ts';

interface JobListOptions extends ListOptions {
  readonly status?: string;
  readonly agent?: string;
  readonly skill?: string;
  readonly conversation?: string;
  readonly user?: string;
}

interface RetryOptions extends ApiOptions, AwaitOptions {
  readonly anew?: boolean;
}

export function addJobCommands(program: Command, io: Io): void {
  const jobs = defineCommand(program, 'jobs', {
    about: 'list jobs, show one, cancel or repeat many',
    examples: ['jobs', 'jobs show 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11'],
  });
  addList(jobs, io);
  defineApiCommand(jobs, 'show <job>', {
    about: 'show a job with its input, output and error',
    examples: ['jobs show 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11'],
  }).action((id: string, options: ApiOptions) => showJob(io, id, options));
  defineApiCommand(jobs, 'prompt <job> <step>', {
    about: 'print what a call of a model was sent, where it is kept',
    examples: ['jobs prompt 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11 3 --difference'],
  })
    .option('--difference', 'only what differs from the turn before')
    .action((id: string, step: string, options: ApiOptions & { difference?: boolean }) =>
      showPrompt(io, { id, step }, options),
    );
  addManyCommands(jobs, io);
  addLogs(program, io);
  addEvents(program, io);
  defineApiCommand(program, 'cancel <job>', {
    about: 'cancel a job: a queued one ends at once, an active one is stopped',
    examples: ['cancel 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11'],
  }).action((id: string, options: ApiOptions) => cancelJob(io, id, options));
  const retry = defineApiCommand(program, 'retry <job>', {
    about:
      'go on from what a failed or cancelled job has recorded, as a new job, and print its output',
    examples: [
      'retry 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11 --follow',
      'retry 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11 --anew',
    ],
  }).option('--anew', 'run it from the beginning instead, in a conversation of its own');
  withAwaiting(retry).action(async (id: string, options: RetryOptions) => {
    const client = connect(io, options);
    const body = { resume: options.anew !== true };
    const headers = { 'idempotency-key': randomUUID() };
    const request = { method: 'POST' as const, path: path`/api/jobs/${id}/retry`, body, headers };
    await awaitJob(io, client, await client.request<ListedJob>(request), options);
  });
}

function addList(jobs: Command, io: Io): void {
  withPage(
    defineList(jobs, {
      about: 'list jobs, newest first',
      examples: ['jobs --status failed', 'jobs list --skill text/v1.0/word-count --json'],
    }),
  )
    .option('--status <status>', 'queued, active, waiting, completed, failed or cancelled')
    .option('--agent <id>', 'jobs of this agent')
    .option('--skill <skill>', 'jobs of a skill: category, category/version or all three parts')
    .option('--conversation <id>', 'jobs of this conversation')
    .option('--user <id>', 'jobs for this user')
    .action((options: JobListOptions) => listJobs(io, options));
}

function listJobs(io: Io, options: JobListOptions): Promise<void> {
  const { status, agent, skill, conversation, user } = options;
  const [category, version, name] = skill?.split('/') ?? [];
  return showList<Schema<'JobListItem'>>(io, options, {
    path: '/api/jobs',
    query: {
      status,
      agent_id: agent,
      skill_category: category,
      skill_version: version,
      skill_name: name,
      conversation_id: conversation,
      user_id: user,
      include: 'timing',
    },
    columns: [
      { title: 'JOB', of: (job) => job.job_id },
      { title: 'STATUS', of: (job) => job.status, as: 'state' },
      { title: 'SKILL', of: skillOf },
      { title: 'AGENT', of: (job) => job.agent_id },
      { title: 'ACCEPTED', of: (job) => job.created_at, as: 'time' },
      { title: 'ERROR', of: (job) => job.error?.code },
    ],
  });
}

function skillOf(job: ListedJob): string {
  return `${job.skill_category}/${job.skill_version}/${job.skill_name}`;
}

async function showJob(io: Io, id: string, options: ApiOptions): Promise<void> {
  const job = await connect(io, options).job(id).get();
  if (options.json) return writeJson(io, job);
  printJob(io, job);
}

const jobTimes = ['created_at', 'run_at', 'expires_at', 'started_at', 'finished_at'];

function printJob(io: Io, job: Job): void {
  const { skill_category: _c, skill_version: _v, skill_name: _n, ...fields } = job;
  const { job_id, status, ...others } = fields;
  const shown = { job_id, status, skill: skillOf(job), ...others };
  printFields(io, shown, { times: jobTimes });
}

async function showPrompt(
  io: Io,
  { id, step }: { id: string; step: string },
  options: ApiOptions & { difference?: boolean },
): Promise<void> {
  const prompt = await connect(io, options).request<Schema<'StepPrompt'>>({
    method: 'GET',
    path: path`/api/jobs/${id}/steps/${step}/prompt`,
    query: { as: options.difference ? 'difference' : 'whole' },
  });
  if (options.json) return writeJson(io, prompt);
  if (prompt.state !== 'kept') {
    io.stderr.write(`What was sent is not kept: ${prompt.state}\n`);
  }
  printValue(io, prompt.difference ?? prompt.body);
}

async function cancelJob(io: Io, id: string, options: ApiOptions): Promise<void> {
  const job = await connect(io, options).job(id).cancel();
  if (options.json) return writeJson(io, job);
  const word = job.status === 'cancelled' ? 'cancelled' : 'being stopped';
  io.stdout.write(`${id} is ${word}\n`);
}

function addLogs(program: Command, io: Io): void {
  defineApiCommand(program, 'logs <job>', {
    about: 'print the log lines of a job',
    examples: ['logs -f 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11'],
  })
    .option('-f, --follow', 'go on until the job ends')
    .action((id: string, options: ApiOptions & { follow?: boolean }) =>
      printEvents(io, id, options, ({ type }) => type === 'log'),
    );
}

function addEvents(program: Command, io: Io): void {
  const events = defineCommand(program, 'events', {
    about: 'print the events of a job, or send an event to runs that wait for it',
    examples: ['events 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11', 'events send order.paid amount=4990'],
  });
  defineApiCommand(
    events,
    'show <job>',
    {
      about: 'print the events of a job (the default of events)',
      examples: ['events 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11 --follow --json'],
    },
    { isDefault: true },
  )
    .option('-f, --follow', 'go on until the job ends')
    .action((id: string, options: ApiOptions & { follow?: boolean }) =>
      printEvents(io, id, options, () => true),
    );
  defineApiCommand(events, 'send <event> [data...]', {
    about: 'send an event to the runs that wait for it; data as the input of run',
    examples: ['events send order.paid amount=4990 --event-key order-1042'],
  })
    .option('--event-key <key>', 'which one of that name, such as the id of an order')
    .option('--job <id>', 'the only job that may take it')
    .action(
      (event: string, words: string[], options: ApiOptions & { eventKey?: string; job?: string }) =>
        sendEvent(io, { event, words, options }),
    );
}

async function sendEvent(
  io: Io,
  {
    event,
    words,
    options,
  }: {
    event: string;
    words: readonly string[];
    options: ApiOptions & { eventKey?: string; job?: string };
  },
): Promise<void> {
  const { eventKey = null, job = null } = options;
  const data = words.length === 0 ? null : await readSkillInput(io, words);
  const body = { event, key: eventKey, job_id: job, data };
  const headers = { 'idempotency-key': randomUUID() };
  const request = { method: 'POST' as const, path: '/api/events', body, headers };
  const receipt = await connect(io, options).request<Schema<'RunEventReceipt'>>(request);
  if (options.json) return writeJson(io, receipt);
  io.stdout.write(`Recorded; jobs that waited for it: ${receipt.delivered}\n`);
}

async function printEvents(
  io: Io,
  id: string,
  options: ApiOptions & { follow?: boolean },
  isShown: (event: JobEvent) => boolean,
): Promise<void> {
  const client = connect(io, options);
  const range = { signal: io.interrupted, follow: options.follow === true };
  for await (const event of client.job(id).events(range)) {
    if (!isShown(event)) continue;
    if (options.json) {
      writeEvent(io, event);
      continue;
    }
    const line = eventLine(io.stdout, event);
    if (line !== null) io.stdout.write(`${line}\n`);
    else io.stdout.write(`${event.type} ${clean(JSON.stringify(event.data))}\n`);
  }
}
