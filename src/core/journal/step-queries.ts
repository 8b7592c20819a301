/** Every query on the steps of jobs. */
import { type Insertable, type Selectable, sql } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { isIn } from '../../adapters/database/ids-in.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { allRows, firstRow, listOf, statement } from '../../adapters/database/statement.ts';
import type { JobStepsTable, StepStatus } from '../../adapters/database/tables.ts';

export type StepRow = Selectable<JobStepsTable>;

export function insertSteps(tx: Transaction, rows: readonly Insertable<JobStepsTable>[]) {
  return tx.insert('job_steps', rows);
}

/** Records the version of the agent that asks a model for a job, and what its instructions are filled with, if anything. */
export async function recordAgent(
  tx: Transaction,
  id: string,
  version: number,
  values: string | null,
) {
  await tx.kysely
    .updateTable('jobs')
    .set({ agent_version: version, ...(values !== null && { instruction_values: values }) })
    .where('id', '=', id)
    .execute();
}

/** What the end of a step changes. */
export interface EndedStep
  extends Omit<
    StepRow,
    | 'epoch'
    | 'generation'
    | 'parent'
    | 'turn'
    | 'kind'
    | 'name'
    | 'call_id'
    | 'reserved'
    | 'reserved_cost'
    | 'expected_prompt'
    | 'price'
    | 'started_at'
    | 'digest'
    | 'due_at'
    | 'attempt'
    | 'seen_to'
    | 'told'
    | 'rule'
    | 'guard'
    | 'files'
  > {
  status: Exclude<StepStatus, 'active' | 'waiting'>;
}

const end = statement<EndedStep>()((db, p) =>
  db
    .updateTable('job_steps')
    .set({
      status: p('status'),
      error: p('error'),
      message_id: p('message_id'),
      memory: p('memory'),
      result: p('result'),
      prompt_tokens: p('prompt_tokens'),
      completion_tokens: p('completion_tokens'),
      cache_read_tokens: p('cache_read_tokens'),
      cache_write_tokens: p('cache_write_tokens'),
      reasoning_tokens: p('reasoning_tokens'),
      cost: p('cost'),
      reserved: 0,
      reserved_cost: 0,
      estimated: p('estimated'),
      estimated_cost: p('estimated_cost'),
      finished_at: p('finished_at'),
    })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n'))
    .where('status', '=', 'active'),
);

/** Ends active steps. Returns 1 for each that was active, else 0. */
export function endSteps(tx: Transaction, steps: readonly EndedStep[]): Promise<number[]> {
  return tx.changes(end, steps);
}

const again = statement<{ job_id: string; n: number; epoch: number; now: number }>()((db, p) =>
  db
    .updateTable('job_steps')
    .set({
      status: 'active',
      epoch: p('epoch'),
      error: null,
      started_at: p('now'),
      finished_at: null,
    })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

/** Makes an ended step active again, for this claim. */
export function restartStep(
  tx: Transaction,
  job: { readonly id: string; readonly epoch: number },
  n: number,
  now: number,
): Promise<void> {
  return tx.each(again, [{ job_id: job.id, n, epoch: job.epoch, now }]);
}

const startApproved = statement<{
  job_id: string;
  n: number;
  epoch: number;
  digest: string;
  now: number;
}>()((db, p) =>
  db
    .updateTable('job_steps')
    .set({ status: 'active', epoch: p('epoch'), digest: p('digest'), started_at: p('now') })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

/** Starts a tool whose call a person has approved. Its digest says from now on that the approval is used. */
export function startApprovedTool(
  tx: Transaction,
  job: { readonly id: string; readonly epoch: number },
  tool: { readonly n: number; readonly digest: string },
  now: number,
): Promise<void> {
  return tx.each(startApproved, [{ job_id: job.id, epoch: job.epoch, ...tool, now }]);
}

const decide = statement<{ job_id: string; n: number; rule: string }>()((db, p) =>
  db
    .updateTable('job_steps')
    .set({ rule: p('rule') })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

/** Records what the rules of the agent have decided about the call of a tool. */
export function recordRule(tx: Transaction, jobId: string, n: number, rule: string): Promise<void> {
  return tx.each(decide, [{ job_id: jobId, n, rule }]);
}

interface EndedGuard {
  job_id: string;
  n: number;
  status: 'completed' | 'failed';
  error: string | null;
  guard: string;
  /** The text that it gave in place of another, as JSON. */
  result: string | null;
  memory: string | null;
  now: number;
}

const endOfGuard = statement<EndedGuard>()((db, p) =>
  db
    .updateTable('job_steps')
    .set({
      status: p('status'),
      error: p('error'),
      guard: p('guard'),
      result: p('result'),
      memory: p('memory'),
      finished_at: p('now'),
    })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

/** Ends a guard with what it has decided. */
export function endGuardStep(tx: Transaction, row: EndedGuard): Promise<void> {
  return tx.each(endOfGuard, [row]);
}

const wholeResult = statement<{ job_id: string; n: number; result: string | null }>()((db, p) =>
  db
    .updateTable('job_steps')
    .set({ result: p('result') })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

/** Changes the whole result of a tool, where its message has only the beginning. */
export function setToolResult(
  tx: Transaction,
  row: { job_id: string; n: number; result: string | null },
): Promise<void> {
  return tx.each(wholeResult, [row]);
}

/**
 * The calls of a tool before a step of a job, and what its calls of models have used, with those of the jobs that it goes on
 * from: the copies of their steps are calls of this one, and cost nothing. PostgreSQL sums to text.
 */
export const findUseOfTool = firstRow<{
  job_id: string;
  n: number;
  name: string;
  on_record: readonly string[];
}>()((db, p, dialect) =>
  db
    .selectFrom('job_steps')
    .select([
      sql<
        number | string | null
      >`sum(case when job_id = ${p('job_id')} and kind = 'tool' and name = ${p('name')} and n < ${p('n')} then 1 else 0 end)`.as(
        'calls',
      ),
      sql<
        number | string | null
      >`sum(coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0) + estimated)`.as('tokens'),
      sql<number | string | null>`sum(coalesce(cost, 0) + estimated_cost)`.as('cost'),
    ])
    .where(isIn(dialect, sql`job_id`, listOf(p, 'on_record'))),
);

/** All that says what became of a step, without its result, which may have a megabyte. */
const columnsOfStep = [
  ...(['job_id', 'n', 'epoch', 'generation', 'parent', 'turn', 'kind', 'name'] as const),
  ...(['call_id', 'status', 'error', 'message_id', 'memory', 'digest', 'attempt'] as const),
  ...(['prompt_tokens', 'completion_tokens', 'reserved', 'estimated', 'started_at'] as const),
  ...(['cost', 'rule', 'guard'] as const),
] as const;
export type StepOfGeneration = Pick<StepRow, (typeof columnsOfStep)[number]>;

/** The steps of a generation, in order; a step that code takes is alone in its generation. */
export const listStepsOfGeneration = allRows<{ job_id: string; generation: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select(columnsOfStep)
    .where('job_id', '=', p('job_id'))
    .where('generation', '=', p('generation'))
    .orderBy('n'),
);

/** The text that a guard gave in place of another, as JSON. */
export const findGuardResult = firstRow<{ job_id: string; n: number }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select('result')
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n'))
    .where('kind', '=', 'guard'),
);

/** The whole result of a tool, where its message has only the beginning. */
export const findToolResult = firstRow<{ job_id: string; n: number }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select('result')
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n'))
    .where('kind', '=', 'tool'),
);

/** The message of the last tool call of this id in a conversation. */
export const findToolMessage = firstRow<{ conversation_id: string; call_id: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select('message_id')
    .where('job_id', 'in', (jobs) =>
      jobs
        .selectFrom('messages')
        .select('job_id')
        .distinct()
        .where('conversation_id', '=', p('conversation_id')),
    )
    .where('call_id', '=', p('call_id'))
    .where('kind', '=', 'tool')
    .where('message_id', 'is not', null)
    .orderBy('message_id', 'desc')
    .limit(1),
);

/** The last message of the first turns of a generation, with their tools. */
export const findLastMessageOfTurns = firstRow<
  { job_id: string; generation: string; turns: number },
  Transaction
>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select('message_id as id')
    .where('job_id', '=', p('job_id'))
    .where('generation', '=', p('generation'))
    .where('turn', '<=', p('turns'))
    .where('turn', '>', 0)
    .where('message_id', 'is not', null)
    .orderBy('message_id', 'desc')
    .limit(1),
);

/**
 * The epochs of the claims that recorded the last turn of a model, and the last turn of a generation that an earlier claim had
 * begun; 0 for none. With them, how many claims have begun generations. Of models' runs alone; what guards ask brings no run forward.
 */
export const listLastTurns = allRows<{ ids: readonly string[] }, Transaction>()((db, p, dialect) =>
  db
    .selectFrom(
      db
        .selectFrom('job_steps')
        .select(['job_id', 'generation'])
        .select(sql<number | null>`min(${epochOfTurn})`.as('first'))
        .select(sql<number | null>`max(${epochOfTurn})`.as('last'))
        .where(isIn(dialect, sql`job_id`, listOf(p, 'ids')))
        .where('kind', '=', 'model')
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('job_steps as guard')
                .select('guard.n')
                .whereRef('guard.job_id', '=', 'job_steps.job_id')
                .whereRef('guard.n', '=', 'job_steps.parent')
                .where('guard.kind', '=', 'guard'),
            ),
          ),
        )
        .groupBy(['job_id', 'generation'])
        .as('generations'),
    )
    .select([
      'job_id',
      sql<number>`coalesce(max(last), 0)`.as('epoch'),
      sql<number>`coalesce(max(case when first < last then last end), 0)`.as('continued'),
      sql<number | string>`count(distinct first)`.as('beginnings'),
    ])
    .groupBy('job_id'),
);

const epochOfTurn = sql`case when status = 'completed' and turn > 0 then epoch end`;

/** The last step of a job. */
export const findLastStep = firstRow<{ job_id: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select('n')
    .where('job_id', '=', p('job_id'))
    .orderBy('n', 'desc')
    .limit(1),
);

/** A step that called a model. */
export const findModelStep = firstRow<{ job_id: string; n: number }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select(['generation', 'turn', 'name', 'attempt'])
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n'))
    .where('kind', '=', 'model'),
);
export type ModelStep = Pick<StepRow, 'generation' | 'turn' | 'name' | 'attempt'>;

/** The columns that clients are shown. A result or a memory may have a megabyte, so neither is one of them. */
const listedColumns = [
  ...(['n', 'parent', 'generation', 'kind', 'name', 'turn', 'status', 'error'] as const),
  ...(['message_id', 'prompt_tokens', 'completion_tokens', 'started_at', 'finished_at'] as const),
  ...(['cache_read_tokens', 'cache_write_tokens', 'reasoning_tokens'] as const),
  ...(['estimated', 'cost', 'estimated_cost', 'price', 'due_at', 'rule'] as const),
  ...(['guard', 'files', 'attempt'] as const),
] as const;
export type ListedStep = Pick<StepRow, (typeof listedColumns)[number]>;

/** Which steps of a job are listed. */
export interface StepsPage extends PageAsked {
  readonly status?: StepStatus | undefined;
  /** Whether approvals are among them. */
  readonly showsApprovals: boolean;
}

/** A page of the steps of a job, in order, and how many there are in all. */
export async function listSteps(db: Handle, jobId: string, page: StepsPage) {
  const { status, showsApprovals } = page;
  const query = db.kysely
    .selectFrom('job_steps')
    .where('job_id', '=', jobId)
    .$if(!showsApprovals, (all) => all.where('kind', '<>', 'approval'))
    .$if(status !== undefined, (all) => all.where('status', '=', status as StepStatus));
  const steps = await query
    .select(listedColumns)
    .orderBy('n')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return { steps, total: await countOf(query) };
}

/** The active steps of a job. */
export const listActiveSteps = allRows<{ job_id: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .selectAll()
    .where('job_id', '=', p('job_id'))
    .where('status', '=', 'active')
    .orderBy('n'),
);

const remove = statement<{ job_id: string }>()((db, p) =>
  db.deleteFrom('job_steps').where('job_id', '=', p('job_id')),
);

/** Deletes the steps of jobs. */
export async function deleteSteps(tx: Transaction, jobIds: readonly string[]): Promise<void> {
  await tx.each(
    remove,
    jobIds.map((job_id) => ({ job_id })),
  );
}
