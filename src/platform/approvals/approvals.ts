/**
 * Approvals: questions of runs to a person. Lists and decides them; runs insert them (`approval-waits.ts`). The first
 * decision counts: it ends the waiting step, changes the approval and appends its event in one transaction, so a
 * decision that was confirmed is never lost and no later one replaces it.
 */
import type { Database, Handle, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { Context } from '../../core/context/context.ts';
import { appendEvents } from '../../core/events/outbox.ts';
import type { WaitEnds } from '../../core/jobs/end-waits.ts';
import { familyOf } from '../../core/jobs/families.ts';
import { type Clock, timestamp } from '../../kernel/clock.ts';
import { invalid, invalidIn, notFound, PlatformError } from '../../kernel/errors.ts';
import { answerIssues, type Form } from '../../kernel/form.ts';
import { isId } from '../../kernel/ids.ts';
import type { Json } from '../../kernel/json.ts';
import { approvalBody, decidedEvent, decisionOf } from './approval-views.ts';
import {
  type ApprovalFilters,
  type ApprovalRow,
  deciderKey,
  deleteApprovals,
  endApproval,
  findApproval,
  listApprovals,
  namesOfKeys,
  usersOfJobs,
} from './approvals.store.ts';

/** The author of a decision: an API key, or a session of the console. */
export interface Decider {
  readonly kind: 'api_key' | 'console';
  readonly id: string;
  /** The API key with which the session acts. */
  readonly apiKeyId?: string;
}

export interface Decision {
  readonly status: 'approved' | 'rejected';
  readonly by: Decider;
  readonly reason: string | null;
  /** The values of the form; absent without any. */
  readonly answer?: Json | undefined;
}

export class Approvals {
  readonly database: Database;
  readonly clock: Clock;
  readonly waitEnds: WaitEnds;

  constructor({ database, clock }: Context, waitEnds: WaitEnds) {
    this.database = database;
    this.clock = clock;
    this.waitEnds = waitEnds;
  }

  /** The organization's approval, or `404 not_found`. */
  async find(organizationId: string, id: string): Promise<ApprovalRow> {
    if (!isId(id)) throw notFound('Approval');
    return readApproval(this.database.read, organizationId, id);
  }

  /** A page of approvals; `job_id` stands for the jobs below that one, too. */
  async list(
    organizationId: string,
    {
      job_id,
      ...others
    }: Omit<ApprovalFilters, 'job_ids'> & { readonly job_id?: string | undefined },
    page: PageAsked,
  ) {
    const { read } = this.database;
    const filters = {
      ...others,
      job_ids: job_id === undefined ? undefined : await familyOf(read, job_id),
    };
    const { rows, total, next } = await listApprovals(read, organizationId, filters, page);
    const names = await namesOf(read, rows);
    return { data: rows.map((row) => approvalBody(row, names)), total, next };
  }

  async get(organizationId: string, id: string) {
    return bodyOf(this, await this.find(organizationId, id));
  }

  /**
   * Decides a pending approval; `409 conflict` for one that is not pending any more, or whose deadline has passed. An
   * answer that does not fit the form is 400, and the approval stays pending.
   */
  async decide(organizationId: string, id: string, decision: Decision) {
    const before = await this.find(organizationId, id);
    const answer = before.status === 'pending' ? answerOf(before, decision) : null;
    const decided = { ...decision, answer };
    return bodyOf(this, await this.database.write((tx) => decideIn(this, tx, before, decided)));
  }
}

async function bodyOf({ database }: Approvals, row: ApprovalRow) {
  return approvalBody(row, await namesOf(database.read, [row]));
}

async function namesOf(db: Handle, rows: readonly ApprovalRow[]) {
  return { keys: await namesOfKeys(db, rows), users: await usersOfJobs(db, rows) };
}

async function readApproval(db: Handle, organizationId: string, id: string): Promise<ApprovalRow> {
  const row = await findApproval(db, { organization_id: organizationId, id });
  if (row === undefined) throw notFound('Approval');
  return row;
}

/** The recorded answer to the form; null without a form, and for a rejection. */
function answerOf({ fields }: ApprovalRow, { status, answer }: Decision): Json | null {
  if (status === 'rejected') {
    if (answer !== undefined) throw invalid('answer', 'is for an approval that is approved');
    return null;
  }
  if (fields === null) {
    if (answer !== undefined) throw invalid('answer', 'is for an approval that has fields');
    return null;
  }
  const given = answer ?? {};
  const issues = answerIssues(JSON.parse(fields) as Form, given);
  if (issues === null) return given;
  const nameOf = (field: string) => (field === 'body' ? 'answer' : `answer.${field}`);
  throw invalidIn(issues.map(({ field, issue }) => ({ field: nameOf(field), issue })));
}

async function decideIn(
  { clock, waitEnds }: Approvals,
  tx: Transaction,
  { organization_id, id, job_id, n, expires_at }: ApprovalRow,
  { status, by, reason, answer }: Omit<Decision, 'answer'> & { readonly answer: Json | null },
): Promise<ApprovalRow> {
  const now = clock.now();
  const { kind, apiKeyId = null } = by;
  const decision = decisionOf(status === 'approved', { kind, id: by.id }, reason, answer);
  const result = { value: decision };
  // The step decides who is first: a decision, the deadline or the end of the job.
  const [isFirst] =
    expires_at > now ? await waitEnds.endWaits(tx, [{ job_id, n, result }], now) : [false];
  const decider = { decided_by: by.id, decided_by_kind: kind, decided_by_key: apiKeyId };
  const text = answer === null ? null : JSON.stringify(answer);
  const decided = { status, decided_at: now, ...decider, reason, answer: text };
  const row = isFirst ? await endApproval(tx, { job_id, n }, decided) : undefined;
  if (row === undefined) {
    const other = await readApproval(tx, organization_id, id);
    throw refusal(other, await namesOfKeys(tx, [other]));
  }
  await appendEvents(tx, [decidedEvent(row)], now);
  return row;
}

/** Why an approval cannot be decided. */
function refusal(row: ApprovalRow, names: ReadonlyMap<string, string>) {
  const { status, decided_at, decided_by, decided_by_kind, expires_at } = row;
  const at = timestamp(decided_at ?? expires_at);
  const name = names.get(deciderKey(row) ?? '');
  const by = name === undefined ? '' : ` by “${name}”`;
  const means =
    decided_by_kind === 'console' ? 'in the session of the console' : 'with the API key';
  switch (status) {
    case 'approved':
    case 'rejected':
      return conflict(
        `This was ${status} at ${at}${by} ${means} ${decided_by}: the first decision counts`,
      );
    case 'cancelled':
      return conflict(`This was cancelled at ${at}, because its job ended`);
    case 'expired':
    case 'pending':
      return conflict(`This expired at ${timestamp(expires_at)}`);
  }
}

const conflict = (message: string) => new PlatformError('conflict', message);

/** Deletes the approvals of jobs, in the transaction that deletes these. */
export const removeApprovals = deleteApprovals;
