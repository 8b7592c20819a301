/** `skillwright jobs cancel` and `jobs retry`, by filters, and `skillwright batch`. */
import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import type { ApiOptions, Schema } from '../api-answers.ts';
import { connect } from '../connection.ts';
import { defineApiCommand } from '../define-command.ts';
import { CliError, exitCodes } from '../exit-codes.ts';
import { type Io, writeJson } from '../io.ts';
import { clean } from '../print.ts';
import { readJsonFile } from '../skill-input.ts';

interface ManyOptions extends ApiOptions {
  readonly status?: string;
  readonly agent?: string;
  readonly skill?: string;
  readonly conversation?: string;
  readonly user?: string;
  readonly batch?: string;
  readonly createdAfter?: string;
  readonly createdBefore?: string;
  readonly dryRun?: boolean;
}

type Answer = Partial<Schema<'CancelledJobs'> & Schema<'RetriedJobs'>>;

/** Adds both to the commands about jobs. */
export function addManyCommands(jobs: Command, io: Io): void {
  const cancel = defineApiCommand(jobs, 'cancel', {
    about: 'cancel all jobs of a filter',
    examples: ['jobs cancel --skill web --status queued --dry-run', 'jobs cancel --agent reader'],
  });
  withFilters(cancel, 'jobs that are queued, active or waiting').action((options: ManyOptions) =>
    changeMany(io, 'cancel', options),
  );
  const retry = defineApiCommand(jobs, 'retry', {
    about: 'run all failed jobs of a filter again, each once',
    examples: ['jobs retry --skill web/v1.0/fetch-page --created-after 2026-01-01T00:00:00Z'],
  });
  withFilters(retry, 'jobs that are failed (the default) or cancelled').action(
    (options: ManyOptions) => changeMany(io, 'retry', options),
  );
}

/** Adds `skillwright batch`. */
export function addBatchCommand(program: Command, io: Io): void {
  defineApiCommand(program, 'batch <file>', {
    about:
      'run the skills of a JSON file (- for stdin): {"items": [{"skill": …, "input": …}]}, or the items alone',
    examples: ['batch monday.json', 'batch - --atomic --json < monday.json'],
  })
    .option('--atomic', 'accept none if one is refused')
    .option('--idempotency-key <key>', 'a repeat with the same key runs nothing again')
    .action((file: string, options: BatchOptions) => sendBatch(io, file, options));
}

function withFilters(command: Command, statuses: string): Command {
  return command
    .option('--status <status>', statuses)
    .option('--agent <id>', 'jobs of this agent')
    .option('--skill <skill>', 'jobs of a skill: category, category/version or all three parts')
    .option('--conversation <id>', 'jobs of this conversation')
    .option('--user <id>', 'jobs for this user')
    .option('--batch <id>', 'jobs of this batch')
    .option('--created-after <timestamp>', 'jobs accepted later than that')
    .option('--created-before <timestamp>', 'jobs accepted earlier than that')
    .option('--dry-run', 'only count them');
}

/** What the requests of one command have done. */
interface Done {
  cancelled: number;
  stopping: number;
  retried: number;
  readonly refused: Record<string, number>;
}

async function changeMany(io: Io, verb: 'cancel' | 'retry', options: ManyOptions): Promise<void> {
  const client = connect(io, options);
  const filters = filtersOf(options);
  const send = (more: object) =>
    client.request<Answer>({
      method: 'POST',
      path: `/api/jobs/${verb}`,
      body: { ...filters, ...more },
      // A repeat finds what an earlier request has done, and does it no second time.
      isSafe: true,
    });
  if (options.dryRun) {
    printCount(io, await send({ dry_run: true }), options);
    return;
  }
  const sum: Done = { cancelled: 0, stopping: 0, retried: 0, refused: {} };
  try {
    for (let after: string | undefined; ; ) {
      const answer = await send({ after });
      add(sum, answer);
      if (answer.done) break;
      after = answer.next ?? undefined;
      io.stderr.write(`left: ${countOf(answer)}\n`);
    }
  } catch (error) {
    if (!options.json) io.stderr.write(`Until then: ${textOf(verb, sum)}\n`);
    throw error;
  }
  printSum(io, verb, sum, options);
}

function filtersOf(options: ManyOptions) {
  const [category, version, name, more] = options.skill?.split('/') ?? [];
  if (more !== undefined)
    throw new CliError('--skill takes category/version/name at most.', exitCodes.usage);
  return {
    status: options.status,
    agent_id: options.agent,
    skill_category: category,
    skill_version: version,
    skill_name: name,
    conversation_id: options.conversation,
    user_id: options.user,
    batch_id: options.batch,
    created_after: options.createdAfter,
    created_before: options.createdBefore,
  };
}

function add(sum: Done, answer: Answer): void {
  sum.cancelled += answer.cancelled ?? 0;
  sum.stopping += answer.stopping ?? 0;
  sum.retried += answer.retried ?? 0;
  for (const [code, n] of Object.entries(answer.refused ?? {})) {
    sum.refused[code] = (sum.refused[code] ?? 0) + n;
  }
}

/** The platform counts no further than this. */
const countedMax = 10_000;

function countOf({ remaining = 0 }: Answer): string {
  return remaining < countedMax ? `${remaining}` : `${remaining} or more`;
}

function printCount(io: Io, answer: Answer, { json }: ApiOptions): void {
  if (json) writeJson(io, { matching: answer.remaining });
  else io.stdout.write(`${countOf(answer)} jobs\n`);
}

function textOf(verb: 'cancel' | 'retry', { cancelled, stopping, retried }: Done): string {
  if (verb === 'retry') return `${retried} run again`;
  return `${cancelled} cancelled, ${stopping} being stopped`;
}

function printSum(io: Io, verb: 'cancel' | 'retry', sum: Done, { json }: ApiOptions): void {
  const { cancelled, stopping, retried, refused } = sum;
  if (json) writeJson(io, verb === 'cancel' ? { cancelled, stopping } : { retried, refused });
  else io.stdout.write(`${textOf(verb, sum)}\n`);
  const refusals = Object.entries(refused).map(([code, n]) => `${n} with ${code}`);
  if (refusals.length > 0) {
    throw new CliError(`Jobs were refused: ${refusals.join(', ')}.`, exitCodes.failed);
  }
}

interface BatchOptions extends ApiOptions {
  readonly atomic?: boolean;
  readonly idempotencyKey?: string;
}

async function sendBatch(io: Io, file: string, options: BatchOptions): Promise<void> {
  const given = await readJsonFile(io, file);
  const batch = Array.isArray(given) ? { items: given } : given;
  const { atomic, idempotencyKey = randomUUID() } = options;
  const accepted = await connect(io, options).request<Schema<'AcceptedBatch'>>({
    method: 'POST',
    path: '/api/batches',
    body: atomic ? Object.assign({}, batch, { atomic }) : batch,
    // So that a repeat after a connection that broke runs nothing twice.
    headers: { 'idempotency-key': idempotencyKey },
  });
  if (options.json) writeJson(io, accepted);
  else printBatch(io, accepted);
  if (accepted.refused > 0) {
    const { length } = accepted.items;
    throw new CliError(`${accepted.refused} of ${length} items were refused.`, exitCodes.failed);
  }
}

function printBatch(io: Io, { id, accepted, refused, items }: Schema<'AcceptedBatch'>): void {
  const results = Map.groupBy(items, ({ job_key_result }) => job_key_result);
  const counts = [`${accepted} accepted`, `${refused} refused`];
  for (const result of ['replaced', 'skipped', 'debounced'] as const) {
    const n = results.get(result)?.length ?? 0;
    if (n > 0) counts.push(`${n} ${result}`);
  }
  io.stdout.write(`${id}: ${counts.join(', ')}\n`);
  for (const [i, { error, message }] of items.entries()) {
    if (error !== undefined) io.stdout.write(`items.${i}: ${error}: ${clean(message ?? '')}\n`);
  }
}
