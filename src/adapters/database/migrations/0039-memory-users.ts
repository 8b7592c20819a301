/**
 * Memories of users: each user of an agent is an owner of its own, and one more owner stands for all users
 * together, so that clients can list and search them all. Also where a memory is from, and when it ends.
 * And whether a client named the user of a job, or `user_id` is only the name of its key.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const owners = () => db.schema.alterTable('memory_owners');
  await owners()
    .addColumn('kind', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  await owners()
    .addColumn('user_id', 'text', (c) => c.notNull().defaultTo(''))
    .execute();
  await owners().addColumn('next_expiry', 'bigint').execute();
  await sql`drop index memory_owners_agent`.execute(db);
  await sql`create unique index memory_owners_agent
    on memory_owners (organization_id, agent_id, kind, user_id) where removed = 0`.execute(db);

  await sql`create index memory_owners_expiring on memory_owners (next_expiry)
    where next_expiry is not null`.execute(db);

  const memories = () => db.schema.alterTable('memories');
  await memories().addColumn('user_id', 'text').execute();
  await memories().addColumn('together', 'bigint').execute();
  await memories().addColumn('job_id', 'text').execute();
  await memories().addColumn('conversation_id', 'text').execute();
  await memories().addColumn('step', 'integer').execute();
  await memories().addColumn('expires_at', 'bigint').execute();
  // All are partial: memories without a user, a job or an end are in none of them.
  await sql`create index memories_together on memories (together, id) where together is not null`.execute(
    db,
  );
  await sql`create index memories_together_tag on memories (together, tag, id)
    where together is not null`.execute(db);
  await sql`create index memories_of_job on memories (job_id) where job_id is not null`.execute(db);
  await sql`create index memories_expiring on memories (owner, expires_at)
    where expires_at is not null`.execute(db);
  await sql`create index memories_together_expiring on memories (together, expires_at)
    where expires_at is not null`.execute(db);

  await db.schema
    .alterTable('jobs')
    .addColumn('for_user', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  // Most jobs name no user, and are not in it.
  await sql`create index jobs_of_user on jobs (organization_id, user_id, id) where for_user = 1`.execute(
    db,
  );
}
