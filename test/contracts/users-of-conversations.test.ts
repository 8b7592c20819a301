/** The migration that gives conversations to the users for whom they went on. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { up } from '../../src/adapters/database/migrations/0039-users-of-conversations.ts';
import { engines } from '../support/databases.ts';

/** The jobs of conversations, each with its user, in the order in which they spoke; of `key` no user was named. */
const conversations: Record<string, { from?: string; jobs: [id: string, user: string][] }> = {
  none: { jobs: [['n1', 'key']] },
  begun: { jobs: [['b1', 'bob']] },
  taken: {
    jobs: [
      ['t1', 'key'],
      ['t2', 'ada'],
      ['t3', 'ada'],
    ],
  },
  early: { from: 'taken', jobs: [['t1', 'key']] },
  late: {
    from: 'taken',
    jobs: [
      ['t1', 'key'],
      ['t2', 'ada'],
    ],
  },
};

describe.each(await engines())('on $name', (engine) => {
  test('gives those that began for no user to the first one, and their forks with what that one said', async () => {
    const database = await engine.emptied();
    await database.write(async ({ kysely }) => {
      const begun = new Set<string>();
      for (const [id, { from = null, jobs }] of Object.entries(conversations)) {
        const first = id === 'begun' ? 'bob' : 'key';
        await sql`insert into conversations (id, organization_id, agent_id, user_id, status, trigger_type, forked_from, created_at, updated_at)
          values (${id}, 'o', 'a', ${first}, 'completed', 'api', ${from}, 0, 0)`.execute(kysely);
        for (const [job, user] of jobs) {
          await sql`insert into messages (conversation_id, id, job_id, role, content, created_at)
            values (${id}, ${`${id}-${job}`}, ${job}, 'user', '{}', 0)`.execute(kysely);
          if (begun.has(job)) continue;
          begun.add(job);
          await sql`insert into jobs (id, organization_id, api_key_id, agent_id, conversation_id, skill_category, skill_name,
              skill_version, trigger_type, user_id, for_user, status, max_attempts, run_at, input, created_at)
            values (${job}, 'o', 'k', 'a', ${id}, 'agent', 'run-task', 'v1.0', 'api', ${user}, ${user === 'key' ? 0 : 1},
              'completed', 1, 0, '{}', 0)`.execute(kysely);
        }
      }
    });

    await database.write(({ kysely }) => up(kysely as never));

    const { rows } = await sql<{ id: string; user_id: string }>`
      select id, user_id from conversations`.execute(database.read.kysely);
    const users = Object.fromEntries(rows.map(({ id, user_id }) => [id, user_id]));
    expect(users).toEqual({ none: 'key', begun: 'bob', taken: 'ada', early: 'key', late: 'ada' });
  });
});
