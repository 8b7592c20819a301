/** Copies the record of a job to a job that goes on from it. */
import { sql } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';

/**
 * Copies the steps that have ended, and those of code and tools that were interrupted, which run again. Calls of models
 * without an answer, requests that failed, guards that failed and kept their text back, with what their models said, and waits
 * that did not end are made anew. The copies are of the epoch before the first claim, and failures of no attempt of the job.
 * Tokens and costs stay with the job that was charged, and the waits for providers with the one that was patient for so long.
 */
export async function copyEndedSteps(tx: Transaction, from: string, to: string): Promise<void> {
  await sql`
    insert into job_steps (
      job_id, n, epoch, generation, parent, turn, kind, name, call_id, status, error, message_id, memory, result,
      digest, guard, rule, files, due_at, seen_to, told, prompt_tokens, completion_tokens, cost, started_at, finished_at
    )
    select
      cast(${to} as text), n, 1, generation, parent, turn, kind, name, call_id, status, error, message_id, memory, result,
      digest, guard, rule, files, due_at, seen_to, told,
      case when kind = 'model' then 0 end, case when kind = 'model' then 0 end, case when kind = 'model' then 0 end,
      started_at, finished_at
    from job_steps
    where job_id = ${from} and kind <> 'provider' and (
      status = 'completed'
      or (status = 'failed' and kind not in ('model', 'guard', 'generate'))
      or (status = 'failed' and kind = 'guard' and guard like '%"action":"pass"%')
      or (status = 'interrupted' and kind in ('tool', 'skill', 'step'))
    ) and not (kind = 'model' and coalesce(parent, 0) in (
      select n from job_steps
      where job_id = ${from} and kind = 'guard' and status = 'failed' and guard not like '%"action":"pass"%'
    ))`.execute(tx.kysely);
}
