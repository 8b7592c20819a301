/**
 * Marks the messages that guards have judged as earlier versions ran them, so that they are not judged again: those with which
 * jobs began whose guards all ended, as the model was asked afterwards, or one refused. Copies in forks are not marked: a fork
 * may have been made before its guards ended.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    update messages set dialogue = 1
    where role = 'user' and data is null and (conversation_id, id) in (
      select own.conversation_id, min(own.id)
      from jobs join messages as own on own.conversation_id = jobs.conversation_id and own.job_id = jobs.id
      where own.role = 'user' and own.data is null and jobs.agent_overrides is null and jobs.id in (
        select guarded.job_id from job_steps as guarded
        where guarded.kind = 'guard' and guarded.call_id like '_/message' and (
          guarded.guard like '%"action":"refuse"%' or exists (
            select 1 from job_steps as asked
            where asked.job_id = guarded.job_id and asked.kind = 'model' and asked.generation = guarded.generation
          )
        )
      )
      group by own.conversation_id, own.job_id
    )`.execute(db);
}
