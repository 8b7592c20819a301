/** The first schema: keys, skills, agents, jobs, conversations, the outbox. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const sqlite = dialect === 'sqlite';
  const moment = 'bigint';
  const clustered = clusteredIn(dialect);

  await clustered(
    db.schema
      .createTable('organizations')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('created_at', moment, (c) => c.notNull()),
  ).execute();

  await clustered(
    db.schema
      .createTable('api_keys')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('client_name', 'text', (c) => c.notNull())
      .addColumn('key_hash', 'text', (c) => c.notNull().unique())
      .addColumn('scopes', 'text', (c) => c.notNull())
      .addColumn('rate_limit', 'integer', (c) => c.notNull())
      .addColumn('enabled', 'integer', (c) => c.notNull())
      .addColumn('created_at', moment, (c) => c.notNull())
      .addColumn('expires_at', moment),
  ).execute();

  await clustered(
    db.schema
      .createTable('skills')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('category', 'text', (c) => c.notNull())
      .addColumn('skill_name', 'text', (c) => c.notNull())
      .addColumn('version', 'text', (c) => c.notNull())
      .addColumn('display_name', 'text', (c) => c.notNull())
      .addColumn('description', 'text', (c) => c.notNull())
      .addColumn('parameters_schema', 'text', (c) => c.notNull())
      .addColumn('output_schema', 'text', (c) => c.notNull())
      .addColumn('required_scopes', 'text', (c) => c.notNull())
      .addColumn('timeout_ms', 'integer', (c) => c.notNull())
      .addColumn('max_attempts', 'integer', (c) => c.notNull())
      .addColumn('defined', 'integer', (c) => c.notNull())
      .addColumn('deprecated', 'integer', (c) => c.notNull())
      .addColumn('created_at', moment, (c) => c.notNull())
      .addColumn('updated_at', moment, (c) => c.notNull())
      .addUniqueConstraint('skills_tuple', ['category', 'skill_name', 'version']),
  ).execute();

  await clustered(
    db.schema
      .createTable('agents')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('id', 'text', (c) => c.notNull())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('description', 'text', (c) => c.notNull())
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('instructions', 'text', (c) => c.notNull())
      .addColumn('model', 'text')
      .addColumn('skills', 'text', (c) => c.notNull())
      .addColumn('metadata', 'text', (c) => c.notNull())
      .addColumn('created_at', moment, (c) => c.notNull())
      .addColumn('updated_at', moment, (c) => c.notNull())
      .addPrimaryKeyConstraint('agents_pk', ['organization_id', 'id']),
  ).execute();

  await clustered(
    db.schema
      .createTable('jobs')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('api_key_id', 'text', (c) => c.notNull())
      .addColumn('agent_id', 'text', (c) => c.notNull())
      .addColumn('conversation_id', 'text', (c) => c.notNull())
      .addColumn('skill_category', 'text', (c) => c.notNull())
      .addColumn('skill_name', 'text', (c) => c.notNull())
      .addColumn('skill_version', 'text', (c) => c.notNull())
      .addColumn('trigger_type', 'text', (c) => c.notNull())
      .addColumn('user_id', 'text', (c) => c.notNull())
      .addColumn('status', 'text', (c) => c.notNull().defaultTo('queued'))
      .addColumn('attempt', 'integer', (c) => c.notNull().defaultTo(0))
      .addColumn('max_attempts', 'integer', (c) => c.notNull())
      .addColumn('epoch', 'integer', (c) => c.notNull().defaultTo(0))
      .addColumn('deaths', 'integer', (c) => c.notNull().defaultTo(0))
      .addColumn('run_at', moment, (c) => c.notNull())
      .addColumn('due_at', moment)
      .addColumn('started_at', moment)
      .addColumn('finished_at', moment)
      .addColumn('cancel_requested_at', moment)
      .addColumn('retry_of', 'text')
      .addColumn('input', 'text', (c) => c.notNull())
      .addColumn('output', 'text')
      .addColumn('error', 'text')
      .addColumn('progress', 'text')
      .addColumn('created_at', moment, (c) => c.notNull()),
  ).execute();
  // What the sweep looks for; a settled job leaves it.
  await sql`create index jobs_due on jobs (status, due_at) where due_at is not null`.execute(db);
  await sql`create index jobs_newest on jobs (organization_id, id)`.execute(db);
  // Few jobs end badly, and people look for those: they are found without walking past the others.
  await sql`create index jobs_failed on jobs (organization_id, status, id) where status in ('failed', 'cancelled')`.execute(
    db,
  );

  await clustered(
    db.schema
      .createTable('job_counts')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('agent_id', 'text', (c) => c.notNull())
      .addColumn('skill_category', 'text', (c) => c.notNull())
      .addColumn('skill_name', 'text', (c) => c.notNull())
      .addColumn('skill_version', 'text', (c) => c.notNull())
      .addColumn('trigger_type', 'text', (c) => c.notNull())
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('writer', 'text', (c) => c.notNull())
      .addColumn('count', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('job_counts_pk', [
        'organization_id',
        'agent_id',
        'skill_category',
        'skill_name',
        'skill_version',
        'trigger_type',
        'status',
        'writer',
      ]),
  ).execute();

  await clustered(
    db.schema
      .createTable('job_events')
      .addColumn('job_id', 'text', (c) => c.notNull())
      .addColumn('epoch', 'integer', (c) => c.notNull())
      .addColumn('n', 'integer', (c) => c.notNull())
      .addColumn('type', 'text', (c) => c.notNull())
      .addColumn('data', 'text', (c) => c.notNull())
      .addColumn('created_at', moment, (c) => c.notNull())
      .addPrimaryKeyConstraint('job_events_pk', ['job_id', 'epoch', 'n']),
  ).execute();

  await clustered(
    db.schema
      .createTable('conversations')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('agent_id', 'text', (c) => c.notNull())
      .addColumn('user_id', 'text', (c) => c.notNull())
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('trigger_type', 'text', (c) => c.notNull())
      .addColumn('created_at', moment, (c) => c.notNull())
      .addColumn('updated_at', moment, (c) => c.notNull()),
  ).execute();
  await sql`create index conversations_newest on conversations (organization_id, id)`.execute(db);
  await sql`create index conversations_of_user on conversations (organization_id, user_id, id)`.execute(
    db,
  );

  await clustered(
    db.schema
      .createTable('conversation_counts')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('agent_id', 'text', (c) => c.notNull())
      .addColumn('trigger_type', 'text', (c) => c.notNull())
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('writer', 'text', (c) => c.notNull())
      .addColumn('count', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('conversation_counts_pk', [
        'organization_id',
        'agent_id',
        'trigger_type',
        'status',
        'writer',
      ]),
  ).execute();

  await clustered(
    db.schema
      .createTable('messages')
      .addColumn('conversation_id', 'text', (c) => c.notNull())
      .addColumn('id', 'text', (c) => c.notNull())
      .addColumn('job_id', 'text', (c) => c.notNull())
      .addColumn('role', 'text', (c) => c.notNull())
      .addColumn('content', 'text', (c) => c.notNull())
      .addColumn('prompt_tokens', 'bigint', (c) => c.notNull().defaultTo(0))
      .addColumn('completion_tokens', 'bigint', (c) => c.notNull().defaultTo(0))
      .addColumn('created_at', moment, (c) => c.notNull())
      .addPrimaryKeyConstraint('messages_pk', ['conversation_id', 'id']),
  ).execute();

  await db.schema
    .createTable('events')
    .addColumn('seq', sqlite ? 'integer' : 'bigserial', (c) =>
      sqlite ? c.primaryKey().notNull() : c.primaryKey().notNull(),
    )
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('organization_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('type', 'text', (c) => c.notNull())
    .addColumn('data', 'text', (c) => c.notNull())
    .addColumn('created_at', moment, (c) => c.notNull())
    .execute();

  await clustered(
    db.schema
      .createTable('idempotency_keys')
      .addColumn('api_key_id', 'text', (c) => c.notNull())
      .addColumn('idempotency_key', 'text', (c) => c.notNull())
      .addColumn('fingerprint', 'text', (c) => c.notNull())
      .addColumn('job_id', 'text', (c) => c.notNull())
      .addColumn('created_at', moment, (c) => c.notNull())
      .addPrimaryKeyConstraint('idempotency_keys_pk', ['api_key_id', 'idempotency_key']),
  ).execute();
  await sql`create index idempotency_keys_age on idempotency_keys (created_at)`.execute(db);
}
