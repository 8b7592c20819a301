/** What agents that think leave behind: steps of jobs, tokens used, budgets, credentials of providers. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const moment = 'bigint';
  const clustered = clusteredIn(dialect);

  await db.schema
    .alterTable('messages')
    .addColumn('unreported', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  await db.schema
    .alterTable('messages')
    .addColumn('dialogue', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  await db.schema.alterTable('messages').addColumn('data', 'text').execute();
  await db.schema
    .alterTable('skills')
    .addColumn('continues_conversations', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();

  await clustered(
    db.schema
      .createTable('job_steps')
      .addColumn('job_id', 'text', (c) => c.notNull())
      .addColumn('n', 'integer', (c) => c.notNull())
      .addColumn('epoch', 'integer', (c) => c.notNull())
      .addColumn('generation', 'text', (c) => c.notNull())
      .addColumn('turn', 'integer', (c) => c.notNull())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('call_id', 'text')
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('error', 'text')
      .addColumn('message_id', 'text')
      .addColumn('memory', 'text')
      .addColumn('prompt_tokens', 'bigint')
      .addColumn('completion_tokens', 'bigint')
      .addColumn('reserved', 'bigint', (c) => c.notNull().defaultTo(0))
      .addColumn('estimated', 'bigint', (c) => c.notNull().defaultTo(0))
      .addColumn('started_at', moment, (c) => c.notNull())
      .addColumn('finished_at', moment)
      .addPrimaryKeyConstraint('job_steps_pk', ['job_id', 'n']),
  ).execute();
  await sql`create index job_steps_generation on job_steps (job_id, generation, n)`.execute(db);

  await clustered(
    db.schema
      .createTable('token_usage')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('owner_kind', 'text', (c) => c.notNull())
      .addColumn('owner_id', 'text', (c) => c.notNull())
      .addColumn('day', 'text', (c) => c.notNull())
      .addColumn('prompt_tokens', 'bigint', (c) => c.notNull().defaultTo(0))
      .addColumn('completion_tokens', 'bigint', (c) => c.notNull().defaultTo(0))
      .addColumn('estimated_tokens', 'bigint', (c) => c.notNull().defaultTo(0))
      .addColumn('reserved_tokens', 'bigint', (c) => c.notNull().defaultTo(0))
      .addColumn('calls', 'bigint', (c) => c.notNull().defaultTo(0))
      .addColumn('unreported_calls', 'bigint', (c) => c.notNull().defaultTo(0))
      .addPrimaryKeyConstraint('token_usage_pk', [
        'organization_id',
        'owner_kind',
        'owner_id',
        'day',
      ]),
  ).execute();
  await db.schema
    .createIndex('token_usage_by_day')
    .on('token_usage')
    .columns(['day', 'organization_id', 'owner_kind', 'owner_id'])
    .execute();

  await clustered(
    db.schema
      .createTable('token_budgets')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('owner_kind', 'text', (c) => c.notNull())
      .addColumn('owner_id', 'text', (c) => c.notNull())
      .addColumn('tokens_per_day', 'bigint')
      .addColumn('tokens_per_month', 'bigint')
      .addColumn('updated_at', moment, (c) => c.notNull())
      .addPrimaryKeyConstraint('token_budgets_pk', ['organization_id', 'owner_kind', 'owner_id']),
  ).execute();

  await clustered(
    db.schema
      .createTable('credentials')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('provider', 'text', (c) => c.notNull())
      .addColumn('api_key', 'text')
      .addColumn('base_url', 'text')
      .addColumn('created_at', moment, (c) => c.notNull())
      .addColumn('updated_at', moment, (c) => c.notNull())
      .addPrimaryKeyConstraint('credentials_pk', ['organization_id', 'provider']),
  ).execute();
}
