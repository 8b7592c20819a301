/** The migration that marks the messages of users that guards have judged. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { up } from '../../src/adapters/database/migrations/0037-judged-messages.ts';
import { engines } from '../support/databases.ts';

/** The steps of a job: the kind, the key of a guard's text, and the verdict. */
const jobs: Record<string, [kind: string, callId: string | null, guard: string | null][]> = {
  passed: [
    ['guard', '0/message', '{"on":"message","action":"pass"}'],
    ['model', null, null],
  ],
  refused: [['guard', '1/message', '{"on":"message","action":"refuse"}']],
  interrupted: [['guard', '0/message', '{"on":"message","action":"pass"}']],
  answer: [
    ['model', null, null],
    ['guard', '0/answer/1', '{"on":"answer","action":"pass"}'],
  ],
};

describe.each(await engines())('on $name', (engine) => {
  test('marks what jobs began with whose guards all ended, and no other message', async () => {
    const database = await engine.emptied();
    await database.write(async ({ kysely }) => {
      for (const [id, steps] of Object.entries(jobs)) {
        await sql`insert into jobs (id, organization_id, api_key_id, agent_id, conversation_id, skill_category, skill_name,
            skill_version, trigger_type, user_id, status, max_attempts, run_at, input, created_at)
          values (${id}, 'o', 'k', 'a', 'c', 'agent', 'run-task', 'v1.0', 'api', '', 'completed', 1, 0, '{}', 0)`.execute(
          kysely,
        );
        for (const n of [1, 2])
          await sql`insert into messages (conversation_id, id, job_id, role, content, created_at)
            values ('c', ${`${id}-${n}`}, ${id}, 'user', '{}', 0)`.execute(kysely);
        for (const [n, [kind, callId, guard]] of steps.entries())
          await sql`insert into job_steps (job_id, n, epoch, generation, turn, kind, name, call_id, status, guard, started_at)
            values (${id}, ${n + 1}, 1, 'g', 0, ${kind}, 'x', ${callId}, 'completed', ${guard}, 0)`.execute(
            kysely,
          );
      }
    });

    await database.write(({ kysely }) => up(kysely as never));

    const { rows } = await sql<{ id: string }>`
      select id from messages where dialogue = 1 order by id`.execute(database.read.kysely);
    expect(rows.map(({ id }) => id)).toEqual(['passed-1', 'refused-1']);
  });
});
