/** The text that the calls of models have streamed, from the events of their job. */
import { sql } from 'kysely';
import type { Handle } from '../../adapters/database/database.ts';
import { statement } from '../../adapters/database/statement.ts';

const streamed = statement<{ job_id: string }>()((db, p, dialect) => {
  const data = dialect === 'sqlite' ? sql`data` : sql`data::json`;
  const step =
    dialect === 'sqlite' ? sql<number>`${data}->>'step'` : sql<number>`(${data}->>'step')::int`;
  const text = sql`${data}->>'text'`;
  const bytes =
    dialect === 'sqlite'
      ? sql<number>`length(cast(${text} as blob))`
      : sql<number>`octet_length(${text})`;
  return db
    .selectFrom('job_events')
    .select([step.as('step'), sql<number>`sum(${bytes})`.as('bytes')])
    .where('job_id', '=', p('job_id'))
    .where('type', '=', sql.lit('token'))
    .groupBy(step);
});

/** UTF-8 bytes of the text that each call of a model has streamed, by step. */
export async function streamedBytesOf(
  db: Handle,
  jobId: string,
): Promise<ReadonlyMap<number, number>> {
  const rows = await db.all(streamed, { job_id: jobId });
  return new Map(rows.map(({ step, bytes }) => [step, Number(bytes)]));
}
