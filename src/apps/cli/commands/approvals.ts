/** `skillwright approvals`: questions of runs to a person. */
import type { Command } from 'commander';
import { type ApiOptions, type ListOptions, type Schema, showList } from '../api-answers.ts';
import { connect, path } from '../connection.ts';
import { defineApiCommand, defineCommand, defineList, withPage } from '../define-command.ts';
import { type FormFields, readAnswer, shownFields } from '../form-answer.ts';
import { type Io, writeJson } from '../io.ts';
import { printFields } from '../print.ts';

type Approval = Schema<'Approval'>;

interface ApprovalListOptions extends ListOptions {
  readonly status?: string;
  readonly job?: string;
}

const times = { times: ['requested_at', 'expires_at', 'decided_at'] };
const anId = '019a9d3c-5b7e-7c41-8a2f-3d5e7f901b2c';

export function addApprovalCommands(program: Command, io: Io): void {
  const approvals = defineCommand(program, 'approvals', {
    about: 'list, show and decide the questions of runs to a person',
    examples: ['approvals --status pending', `approvals approve ${anId}`],
  });
  withPage(
    defineList(approvals, {
      about: 'list approvals, newest first',
      examples: ['approvals --status pending'],
    }),
  )
    .option('--status <status>', 'pending, approved, rejected, expired or cancelled')
    .option('--job <id>', 'approvals of this job')
    .action((options: ApprovalListOptions) => listApprovals(io, options));
  defineApiCommand(approvals, 'show <approval>', {
    about: 'show an approval with what exactly is asked',
    examples: [`approvals show ${anId}`],
  }).action(async (id: string, options: ApiOptions) => {
    const request = { method: 'GET' as const, path: path`/api/approvals/${id}` };
    const approval = await connect(io, options).request<Approval>(request);
    if (options.json) return writeJson(io, approval);
    const { fields, link, ...facts } = approval;
    const page = link !== null && { link: link.url, host: link.host };
    printFields(
      io,
      { ...facts, ...page, ...(fields !== null && shownFields(fields as unknown as FormFields)) },
      times,
    );
  });
  addDecisions(approvals, io);
}

function addDecisions(approvals: Command, io: Io): void {
  const reason = ['--reason <text>', 'why; the run gets it'] as const;
  defineApiCommand(approvals, 'approve <approval> [answer...]', {
    about: 'approve it, with the values of its fields if it has some; the first decision counts',
    examples: [
      `approvals approve ${anId} --reason 'Checked with Ada'`,
      `approvals approve ${anId} carrier=post weight=2`,
    ],
  })
    .option(...reason)
    .action((id: string, words: string[], options: DecisionOptions) =>
      decide(io, { id, verb: 'approve', words, options }),
    );
  defineApiCommand(approvals, 'reject <approval>', {
    about: 'reject it; the first decision counts',
    examples: [`approvals reject ${anId} --reason 'Checked with Ada'`],
  })
    .option(...reason)
    .action((id: string, options: DecisionOptions) =>
      decide(io, { id, verb: 'reject', words: [], options }),
    );
}

function listApprovals(io: Io, options: ApprovalListOptions): Promise<void> {
  return showList<Approval>(io, options, {
    path: '/api/approvals',
    query: { status: options.status, job_id: options.job },
    columns: [
      { title: 'APPROVAL', of: (one) => one.approval_id },
      { title: 'STATUS', of: (one) => one.status, as: 'state' },
      { title: 'ASKED', of: (one) => one.requested_at, as: 'time' },
      { title: 'EXPIRES', of: (one) => one.expires_at, as: 'time' },
      { title: 'QUESTION', of: (one) => one.title },
    ],
  });
}

type DecisionOptions = ApiOptions & { readonly reason?: string };

interface Deciding {
  readonly id: string;
  readonly verb: 'approve' | 'reject';
  /** What is filled in, as it was typed. */
  readonly words: readonly string[];
  readonly options: DecisionOptions;
}

async function decide(io: Io, { id, verb, words, options }: Deciding): Promise<void> {
  const { reason } = options;
  const client = connect(io, options);
  const answer = verb === 'approve' ? await answerOf(io, client, id, words) : undefined;
  const body = { ...(reason !== undefined && { reason }), ...(answer !== undefined && { answer }) };
  const operation =
    verb === 'approve' ? path`/api/approvals/${id}/approve` : path`/api/approvals/${id}/reject`;
  const decided = await client.request<Approval>({
    method: 'POST',
    path: operation,
    body,
  });
  if (options.json) return writeJson(io, decided);
  io.stdout.write(`${id} is ${decided.status}\n`);
}

/** The values of the fields of an approval; undefined for one without fields, and nothing typed. */
async function answerOf(
  io: Io,
  client: ReturnType<typeof connect>,
  id: string,
  words: readonly string[],
): Promise<unknown> {
  const request = { method: 'GET' as const, path: path`/api/approvals/${id}` };
  const { fields } = await client.request<Approval>(request);
  return fields === null && words.length === 0
    ? undefined
    : readAnswer(io, words, fields as FormFields | null);
}
