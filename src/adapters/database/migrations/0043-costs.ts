/**
 * Parts of the tokens of calls (read from a cache, written to it, reasoning), what calls cost, and budgets in
 * money. Amounts are nano-dollars. A cost is null where the price is unknown, as for calls before this version.
 */
import { type Kysely, sql } from 'kysely';

const parts = ['cache_read_tokens', 'cache_write_tokens', 'reasoning_tokens'] as const;

export async function up(db: Kysely<unknown>): Promise<void> {
  const add = (table: string, column: string, isCounted: boolean) =>
    db.schema
      .alterTable(table)
      .addColumn(column, 'bigint', (c) => (isCounted ? c.notNull().defaultTo(0) : c))
      .execute();

  for (const part of parts) {
    await add('job_steps', part, false);
    await add('messages', part, true);
    await add('token_usage', part, true);
  }
  await add('job_steps', 'expected_prompt', false);
  await add('job_steps', 'cost', false);
  await add('job_steps', 'estimated_cost', true);
  await add('job_steps', 'reserved_cost', true);
  await db.schema.alterTable('job_steps').addColumn('price', 'text').execute();
  await add('messages', 'cost', false);
  await add('token_usage', 'cost', true);
  await add('token_usage', 'estimated_cost', true);
  await add('token_usage', 'reserved_cost', true);
  await add('token_usage', 'unpriced_calls', true);
  // What earlier calls have cost is not known.
  await sql`update token_usage set unpriced_calls = calls`.execute(db);
  await add('token_budgets', 'cost_per_day', false);
  await add('token_budgets', 'cost_per_month', false);

  await sql`drop index messages_with_tokens`.execute(db);
  await sql`create index messages_with_tokens on messages
    (conversation_id, job_id, id, prompt_tokens, completion_tokens, unreported,
      cache_read_tokens, cache_write_tokens, reasoning_tokens, cost, model)
    where prompt_tokens + completion_tokens + unreported > 0`.execute(db);
}
