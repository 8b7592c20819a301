/** Jobs whose messages the run of another one takes, on every database (docs/decisions/conversations.md). */
import { describe, expect, test } from 'vitest';
import type { AcceptedJob } from '../../src/core/jobs/accept.ts';
import { steeringMessages, takeMessages } from '../../src/core/jobs/in-conversation/delivered.ts';
import type { ClaimedJob } from '../../src/core/jobs/jobs.store.ts';
import { type Engine, engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';

/** A world in which `test/v1.0/echo` continues conversations, with a job that runs and one that steers it. */
async function steering(engine: Engine, input = '{"task":"more"}') {
  const world = await jobsWorld(engine);
  const echo = world.skills.active('default', 'test', 'v1.0', 'echo');
  await world.skills.register([{ ...echo, continuesConversations: true }]);
  const first = await world.submit({ input: '{"task":"first"}' });
  const steer = (text = input) =>
    world.submit({
      conversationId: first.conversation_id,
      conversationMode: 'steer',
      input: text,
    });
  return { world, first, steer };
}

/** What the run of a job takes now. */
async function take(world: JobsWorld, job: AcceptedJob) {
  const claimed = (await world.row(job.id)) as unknown as ClaimedJob;
  const { read } = world.database;
  const waiting = await steeringMessages(read, claimed, 'task', world.clock.now());
  if (waiting.length === 0) return [];
  return world.database.write((tx) =>
    takeMessages(world.context, tx, claimed, waiting, world.clock.now()),
  );
}

const seen = async (world: JobsWorld, job: AcceptedJob) => {
  const { status, output, error, delivered_to, waiting_for } = await world.jobs.get(
    'default',
    job.id,
  );
  return { status, output, error, delivered_to, waiting_for };
};

describe.each(await engines())('on $name', (engine) => {
  test('are taken once, in the order of acceptance, and end with it', async () => {
    const { world, first, steer } = await steering(engine);
    const [second, third] = [await steer(), await steer('{"task":"and more"}')];

    expect((await take(world, first)).map(({ text }) => text)).toEqual(['more', 'and more']);
    expect(await take(world, first)).toEqual([]);
    expect(await seen(world, second)).toMatchObject({
      status: 'waiting',
      delivered_to: first.id,
      waiting_for: 'the job before it in its conversation, which has its message',
    });
    // No claim reads it meanwhile.
    expect(await world.attempt(third.id, completed())).toBe(false);
    await world.attempt(first.id, completed({ answer: 'done' }));

    for (const job of [second, third]) {
      expect(await seen(world, job)).toMatchObject({
        status: 'completed',
        output: { answer: 'done' },
        waiting_for: null,
      });
      expect(await world.messages(job)).toHaveLength(2);
    }
    const { status } = await world.conversations.get('default', first.conversation_id);
    expect(status).toBe('completed');
  });

  test('one that was taken waits for the last attempt of the job, and fails with it', async () => {
    const { world, first, steer } = await steering(engine);
    const second = await steer();
    await take(world, first);

    await world.attempt(first.id, failed());
    expect(await seen(world, second)).toMatchObject({ status: 'waiting' });
    world.clock.advance(60_000);
    await world.attempt(first.id, failed({ retryable: false }));

    const { error } = await seen(world, first);
    expect(await seen(world, second)).toMatchObject({ status: 'failed', error });
  });

  test('one that is cancelled after it was taken lets the run go on', async () => {
    const { world, first, steer } = await steering(engine);
    const second = await steer();
    await take(world, first);

    await world.jobs.cancel('default', second.id);

    expect(await seen(world, second)).toMatchObject({ status: 'cancelled' });
    const { status } = await world.conversations.get('default', first.conversation_id);
    expect(status).toBe('active');
    expect(await world.attempt(first.id, completed())).toBe(true);
  });

  test('one that no run has taken is the next one', async () => {
    const { world, first, steer } = await steering(engine);
    const second = await steer();

    await world.attempt(first.id, completed());

    expect(await world.attempt(second.id, completed({ next: 1 }))).toBe(true);
    expect(await seen(world, second)).toMatchObject({ delivered_to: null, output: { next: 1 } });
  });

  test('the sweep ends one whose end was not recorded with that of the job, as its skill continued no conversations then', async () => {
    const { world, first, steer } = await steering(engine);
    const second = await steer();
    await take(world, first);
    const echo = world.skills.active('default', 'test', 'v1.0', 'echo');
    await world.skills.register([{ ...echo, continuesConversations: false }]);
    await world.attempt(first.id, completed({ answer: 'done' }));
    expect(await seen(world, second)).toMatchObject({ status: 'waiting' });
    const messages = await world.messages(first);

    await world.recovery.sweep();

    expect(await seen(world, second)).toMatchObject({ output: { answer: 'done' } });
    expect(await world.messages(first)).toEqual(messages);
  });
});
