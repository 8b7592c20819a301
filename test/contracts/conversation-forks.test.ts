/** Copies of messages in forks end with the jobs that said them, on every database (docs/agents.md). */
import { describe, expect, test } from 'vitest';
import { Forks } from '../../src/core/jobs/in-conversation/forks.ts';
import { deleteExpired } from '../../src/core/jobs/retention.ts';
import { removeApprovals } from '../../src/platform/approvals/approvals.ts';
import { type Engine, engines } from '../support/databases.ts';
import { completed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { manualClock } from '../support/manual-clock.ts';

/** A world in which `test/v1.0/echo` continues conversations, and their forks. */
async function talking(engine: Engine) {
  // Jobs are found by their ids, which tell the real time: the clock begins there.
  const world = await jobsWorld(engine, { clock: manualClock(new Date().toISOString()) });
  const echo = world.skills.active('default', 'test', 'v1.0', 'echo');
  await world.skills.register([{ ...echo, continuesConversations: true }]);
  const { agents, conversations } = world;
  const forks = new Forks(world.context, { agents, conversations });
  const fork = (id: string) =>
    forks.fork({ organizationId: 'default' }, id, { before: undefined, user: undefined });
  return { world, fork };
}

const rowsOf = async ({ database }: JobsWorld, conversation_id: string) => {
  const { kysely } = database.read;
  const found = kysely.selectFrom('conversations').where('id', '=', conversation_id);
  const said = kysely.selectFrom('messages').where('conversation_id', '=', conversation_id);
  return {
    conversations: (await found.select('id').execute()).length,
    messages: (await said.select('id').execute()).length,
  };
};

describe.each(await engines())('on $name', (engine) => {
  test('retention deletes copies with the messages, and a fork that has none left', async () => {
    const { world, fork } = await talking(engine);
    const first = await world.submit();
    await world.attempt(first.id, completed({ one: 1 }));
    const empty = await fork(first.conversation_id);
    const kept = await fork(first.conversation_id);
    const ofFork = await fork(kept.id);
    world.clock.advance(10 * 24 * 60 * 60 * 1000);
    const next = await world.submit({ conversationId: kept.id });
    await world.attempt(next.id, completed({ two: 2 }));

    const parts = { ...world, readTo: null, writer: 'first', removeOfJobs: removeApprovals };
    expect(await deleteExpired(parts, 7)).toBe(1);

    for (const id of [first.conversation_id, empty.id, ofFork.id]) {
      expect(await rowsOf(world, id)).toEqual({ conversations: 0, messages: 0 });
    }
    expect(await rowsOf(world, kept.id)).toEqual({ conversations: 1, messages: 2 });
    const { total } = await world.conversations.list('default', {}, { limit: 10, offset: 0 });
    expect(total).toBe(1);
  });

  test('a fork has no job that works, whatever its conversation has', async () => {
    const { world, fork } = await talking(engine);
    const first = await world.submit();
    const copy = await fork(first.conversation_id);

    const next = await world.accept(world.request({ conversationId: copy.id }));

    expect(next).toMatchObject({ kind: 'accepted' });
    expect(await world.attempt(first.id, completed())).toBe(true);
    expect((await world.conversations.get('default', copy.id)).status).toBe('active');
  });
});
