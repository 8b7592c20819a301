/** Jobs that wait for their turn in a conversation, on every database (docs/decisions/conversations.md). */
import { describe, expect, test } from 'vitest';
import type { AcceptedJob, WorkRequest } from '../../src/core/jobs/accept.ts';
import { lockFamilies } from '../../src/core/jobs/families.store.ts';
import { lockGates } from '../../src/core/jobs/gates/gate-locks.ts';
import { waitingMax } from '../../src/core/jobs/in-conversation/conversation-gates.ts';
import { takeMessages } from '../../src/core/jobs/in-conversation/delivered.ts';
import { resumedFrom } from '../../src/core/journal/taken-over.ts';
import { limitOfAgent } from '../../src/core/limits/limit-names.ts';
import { type Engine, engines } from '../support/databases.ts';
import { deadlocksIn, lockedInTurn } from '../support/deadlocks.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';

const behind = (job: AcceptedJob, fields: Partial<WorkRequest> = {}): Partial<WorkRequest> => ({
  conversationId: job.conversation_id,
  conversationMode: 'queue',
  ...fields,
});

/** A world in which `test/v1.0/echo` continues conversations. */
async function talking(engine: Engine, options: Parameters<typeof jobsWorld>[1] = {}) {
  const world = await jobsWorld(engine, options);
  const echo = world.skills.active('default', 'test', 'v1.0', 'echo');
  await world.skills.register([{ ...echo, continuesConversations: true }]);
  return world;
}

const statusOf = async ({ conversations }: JobsWorld, job: AcceptedJob) =>
  (await conversations.get('default', job.conversation_id)).status;
const inputsOf = async (world: JobsWorld, job: AcceptedJob) =>
  (await world.messages(job)).flatMap(({ role, content }) => (role === 'user' ? [content] : []));

describe.each(await engines())('on $name', (engine) => {
  test('a job behind another one begins once that has ended, in the order of acceptance', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    const second = await world.submit(behind(first, { input: '{"n":2}' }));
    const third = await world.submit(behind(first, { input: '{"n":3}', priority: 0 }));

    expect(await world.attempt(second.id, completed())).toBe(false);
    const shown = await world.jobs.get('default', second.id);
    expect(shown).toMatchObject({
      status: 'queued',
      waiting_for: 'the job before it in its conversation',
    });
    expect(await inputsOf(world, first)).toEqual(['{"a":1}']);
    world.hints.length = 0;
    await world.attempt(first.id, completed());

    expect(world.hints).toHaveLength(1);
    expect(await world.row(second.id)).toMatchObject({ held_by: null });
    expect(await world.attempt(third.id, completed())).toBe(false);
    expect(await statusOf(world, first)).toBe('active');
    expect(await world.attempt(second.id, completed({ two: true }))).toBe(true);
    expect(await world.attempt(third.id, completed({ three: true }))).toBe(true);
    expect(await statusOf(world, first)).toBe('completed');
    expect((await world.messages(first)).map(({ job_id }) => job_id)).toEqual(
      [first, first, second, second, third, third].map(({ id }) => id),
    );
  });

  test.each([
    ['fails', (world: JobsWorld, id: string) => world.attempt(id, failed({ retryable: false }))],
    ['is cancelled', (world: JobsWorld, id: string) => world.jobs.cancel('default', id)],
  ])('it begins also where the job before it %s', async (_, end) => {
    const world = await talking(engine);
    const first = await world.submit();
    const second = await world.submit(behind(first));

    await end(world, first.id);

    expect(await world.attempt(second.id, completed())).toBe(true);
    expect(await statusOf(world, first)).toBe('completed');
  });

  test('it waits while the job before it is tried again', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    const second = await world.submit(behind(first));

    await world.attempt(first.id, failed());

    expect(await world.attempt(second.id, completed())).toBe(false);
    world.clock.advance(60_000);
    await world.attempt(first.id, completed());
    expect(await world.attempt(second.id, completed())).toBe(true);
  });

  test('one that is cancelled while it waits lets nothing go, and says nothing', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    const second = await world.submit(behind(first, { input: '{"n":2}' }));
    const third = await world.submit(behind(first, { input: '{"n":3}' }));

    await world.jobs.cancel('default', second.id);

    expect(await statusOf(world, first)).toBe('active');
    expect(await world.attempt(third.id, completed())).toBe(false);
    await world.attempt(first.id, completed());
    expect(await world.attempt(third.id, completed())).toBe(true);
    expect(await inputsOf(world, first)).toEqual(['{"a":1}', '{"n":3}']);
  });

  test('a job that is resumed, and was cancelled while it waited, says what it had to say', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    const second = await world.submit(behind(first, { input: '{"n":2}' }));
    await world.jobs.cancel('default', second.id);
    await world.attempt(first.id, completed());

    const { job: resumed } = await world.jobs.retry(world.caller, second.id, true);

    expect(await inputsOf(world, first)).toEqual(['{"a":1}', '{"n":2}']);
    // What is said is said once.
    await world.attempt(resumed.id, failed({ retryable: false }));
    await world.jobs.retry(world.caller, resumed.id, true);
    expect(await inputsOf(world, first)).toEqual(['{"a":1}', '{"n":2}']);
  });

  test('a job that is resumed, and has steered another one, does not say it again', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    const second = await world.submit(behind(first, { conversationMode: 'steer' }));
    const { run, ended } = await world.begin(first.id);
    await world.database.write((tx) => {
      const message = { jobId: second.id, text: 'more', input: '{"a":1}' };
      return takeMessages(world.context, tx, first, [message], world.clock.now());
    });
    run.end(failed({ retryable: false }));
    await ended;
    expect(await world.row(second.id)).toMatchObject({ status: 'failed', delivered_to: first.id });

    await world.jobs.retry(world.caller, second.id, true);

    expect(await inputsOf(world, first)).toEqual(['{"a":1}']);
  });

  test('a repeated request to go on from a job gets the job of the first, where one without a key is refused', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    await world.attempt(first.id, failed({ retryable: false }));
    const request = behind(first, {
      retryOf: first.id,
      resumes: resumedFrom(await world.row(first.id)),
      conversationMode: 'reject',
    });
    const idempotency = { owner: world.caller.keyId, key: 'one', fingerprint: 'resume' };
    const resumed = await world.submit({ ...request, idempotency });
    await world.attempt(resumed.id, completed());

    expect(await world.submit({ ...request, idempotency })).toMatchObject({ id: resumed.id });
    await expect(world.submit(request)).rejects.toThrow('superseded');
  });

  test.each(['queue', 'steer', 'interrupt'] as const)(
    'while a resumed job has said nothing yet, others may %s it',
    async (conversationMode) => {
      const world = await talking(engine);
      const first = await world.submit();
      await world.attempt(first.id, failed({ retryable: false }));
      const { job: resumed } = await world.jobs.retry(world.caller, first.id, true);

      const next = await world.submit(behind(first, { conversationMode, input: '{"n":2}' }));

      if (conversationMode === 'interrupt') {
        expect(await world.row(resumed.id)).toMatchObject({ status: 'cancelled' });
      } else {
        expect(await world.attempt(next.id, completed())).toBe(false);
        await world.attempt(resumed.id, completed());
      }
      expect(await world.attempt(next.id, completed())).toBe(true);
      expect(await inputsOf(world, first)).toEqual(['{"a":1}', '{"n":2}']);
      expect(await statusOf(world, first)).toBe('completed');
    },
  );

  test('its moment may be changed while it waits, and it goes on waiting', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    const second = await world.submit(behind(first));

    await world.jobs.change('default', second.id, { run_at: null });

    expect(await world.attempt(second.id, completed())).toBe(false);
    await world.attempt(first.id, completed());
    expect(await world.attempt(second.id, completed())).toBe(true);
  });

  test('beyond the most that may wait a request is refused, and takes no Idempotency-Key', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    const more = (n: number) =>
      world.request(
        behind(first, { idempotency: { owner: 'o', key: `${n}`, fingerprint: `${n}` } }),
      );

    const answers = await Promise.all(
      Array.from({ length: waitingMax + 2 }, (_, n) => world.accept(more(n))),
    );

    const kinds = answers.map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'accepted')).toHaveLength(waitingMax);
    expect(kinds.filter((kind) => kind === 'conversation_full')).toHaveLength(2);
    expect(await world.accept(more(0))).toMatchObject({ kind: 'replayed' });
    await world.attempt(first.id, completed());
    expect(await world.accept(more(waitingMax))).toMatchObject({ kind: 'accepted' });
  });

  test('their inputs are bounded together', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    const input = JSON.stringify('x'.repeat(3 * 1024 * 1024));

    expect(await world.accept(world.request(behind(first, { input })))).toMatchObject({
      kind: 'accepted',
    });
    const refused = await world.accept(world.request(behind(first, { input })));
    expect(refused).toEqual({ kind: 'conversation_full' });
  });

  test('is refused for another user than the one for whom a job waits, and made for that one', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    await world.submit(behind(first, { userId: 'ada', isForUser: true }));

    const other = world.request(behind(first, { userId: 'bob', isForUser: true }));
    expect(await world.accept(other)).toEqual({ kind: 'other_user' });
    const unnamed = await world.submit(behind(first));
    expect(await world.row(unnamed.id)).toMatchObject({ user_id: 'ada', for_user: 1 });
    const found = await world.conversations.find('default', first.conversation_id);
    expect(found.user_id).toBe('ada');
  });

  test('nothing waits behind a job of a skill that continues no conversations', async () => {
    const world = await jobsWorld(engine);
    const first = await world.submit();

    expect(await world.accept(world.request(behind(first)))).toEqual({
      kind: 'conversation_active',
    });
  });

  test('the sweep lets a job go behind one that ended while its skill continued no conversations', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    const second = await world.submit(behind(first));
    const echo = world.skills.active('default', 'test', 'v1.0', 'echo');
    await world.skills.register([{ ...echo, continuesConversations: false }]);
    await world.attempt(first.id, completed());
    expect((await world.row(second.id)).held_by).not.toBeNull();

    await world.recovery.sweep();

    expect(await world.row(second.id)).toMatchObject({ held_by: null, status: 'queued' });
    expect(await statusOf(world, first)).toBe('active');
    expect(await inputsOf(world, first)).toHaveLength(2);
    await world.recovery.sweep();
    expect(await inputsOf(world, first)).toHaveLength(2);
  });

  test('one that interrupts begins once the job that runs has stopped, before those that wait', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    const { run, ended } = await world.begin(first.id);
    const waiting = await world.submit(behind(first, { input: '{"n":2}' }));

    const next = await world.submit(
      behind(first, { conversationMode: 'interrupt', input: '{"n":3}' }),
    );

    expect((await world.row(first.id)).cancel_requested_at).not.toBeNull();
    expect(await world.attempt(next.id, completed())).toBe(false);
    await expect.poll(() => run.aborted).not.toBeNull();
    run.end({ kind: 'aborted' });
    await ended;
    expect(await world.row(first.id)).toMatchObject({ status: 'cancelled' });
    expect(await world.attempt(waiting.id, completed())).toBe(false);
    expect(await world.attempt(next.id, completed())).toBe(true);
    expect(await world.attempt(waiting.id, completed())).toBe(true);
    expect(await inputsOf(world, first)).toEqual(['{"a":1}', '{"n":3}', '{"n":2}']);
    expect(await statusOf(world, first)).toBe('completed');
  });

  test('one that interrupts a job that no worker holds is the next at once', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    world.hints.length = 0;

    const next = await world.submit(behind(first, { conversationMode: 'interrupt' }));

    expect(await world.row(first.id)).toMatchObject({ status: 'cancelled' });
    expect(world.hints).toHaveLength(1);
    expect(await world.attempt(next.id, completed())).toBe(true);
    expect(await statusOf(world, first)).toBe('completed');
  });

  test('one that interrupts takes the place of an earlier one that has not begun', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    const { run, ended } = await world.begin(first.id);
    const stop = { conversationMode: 'interrupt' } as const;

    const [second, third] = await Promise.all([
      world.submit(behind(first, stop)),
      world.submit(behind(first, stop)),
    ]);
    const last = await world.submit(behind(first, stop));
    run.end({ kind: 'aborted' });
    await ended;

    for (const { id } of [second, third])
      expect(await world.row(id)).toMatchObject({ status: 'cancelled' });
    expect(await world.attempt(last.id, completed())).toBe(true);
    expect(await statusOf(world, first)).toBe('completed');
  });

  test('a repeated request that interrupts stops nothing a second time', async () => {
    const world = await talking(engine);
    const first = await world.submit();
    const stop = behind(first, {
      conversationMode: 'interrupt',
      idempotency: { owner: 'o', key: 'k', fingerprint: 'f' },
    });
    const next = await world.submit(stop);

    const again = await world.submit(stop);

    expect(again.id).toBe(next.id);
    expect(await world.row(next.id)).toMatchObject({ status: 'queued', held_by: null });
  });

  test.skipIf(engine.name === 'SQLite')(
    'one that is cancelled with others of a limit waits for no end that holds the limit and waits for it',
    async () => {
      const place = await engine.place();
      const world = await talking(engine, { database: await place.open() });
      const limit = limitOfAgent('default', 'default');
      await world.settler.parts.places.setPlaces(limit, 1);
      const first = await world.submit();
      const { run, ended } = await world.begin(first.id);
      const second = await world.submit(behind(first));

      await lockedInTurn(
        world.database,
        (tx) => lockFamilies(tx, [second.id]),
        () => {
          run.end(completed());
          return ended;
        },
        (tx) => lockGates(tx, [limit]),
      );

      expect(await world.attempt(second.id, completed())).toBe(true);
      await world.database.close();
      expect(await deadlocksIn(place.at)).toBe(0);
    },
  );

  test('many that queue, end and are cancelled at once do not deadlock, and none is lost', async () => {
    const place = await engine.place();
    const world = await talking(engine, { database: await place.open() });
    // SQLite is for one process.
    const other =
      engine.name === 'SQLite'
        ? world
        : await talking(engine, { database: await place.open(), clock: world.clock });
    const firsts: AcceptedJob[] = [];
    for (let i = 0; i < 8; i += 1) firsts.push(await world.submit());

    const accepted = await Promise.all([
      ...firsts.flatMap((first) => [world.submit(behind(first)), other.submit(behind(first))]),
      ...firsts.map((first) => other.submit(behind(first, { conversationMode: 'interrupt' }))),
      ...firsts.map(({ id }) => world.attempt(id, completed())),
    ]);
    const waiting = accepted.filter((one): one is AcceptedJob => typeof one === 'object');
    await Promise.all([
      ...waiting.map(({ id }, i) => (i % 2 === 0 ? world : other).attempt(id, completed())),
      ...waiting
        .filter((_, i) => i % 3 === 0)
        .map(({ id }) => world.jobs.cancel('default', id).catch(() => {})),
    ]);
    for (let round = 0; round < 3; round += 1) {
      for (const { id } of waiting) await world.attempt(id, completed());
    }

    const open = world.database.read.kysely.selectFrom('jobs').where('due_at', 'is not', null);
    expect(await open.select('id').execute()).toEqual([]);
    for (const first of firsts) expect(await statusOf(world, first)).not.toBe('active');
    await world.database.close();
    await other.database.close();
    if (engine.name === 'PostgreSQL') expect(await deadlocksIn(place.at)).toBe(0);
  });
});
