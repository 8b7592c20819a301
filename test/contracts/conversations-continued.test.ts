/** Conversations that a later job continues, on every database (docs/decisions/conversations.md). */
import { describe, expect, test } from 'vitest';
import type { DialogueMessage } from '../../src/adapters/models/model.ts';
import type { AcceptedJob, WorkRequest } from '../../src/core/jobs/accept.ts';
import { newId } from '../../src/kernel/ids.ts';
import { engines } from '../support/databases.ts';
import { deadlocksIn } from '../support/deadlocks.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { openWholeJournal } from '../support/whole-journal.ts';

const page = { limit: 50, offset: 0 };

/** Asks to go on with the conversation of a job. */
const goOn = (job: AcceptedJob, fields: Partial<WorkRequest> = {}): Partial<WorkRequest> => ({
  conversationId: job.conversation_id,
  ...fields,
});
const keyed = (key: string, fingerprint = 'same') => ({
  idempotency: { owner: 'a key', key, fingerprint },
});

async function ended({ submit, attempt }: JobsWorld, fields: Partial<WorkRequest> = {}) {
  const job = await submit(fields);
  await attempt(job.id, completed());
  return job;
}

const statusOf = async ({ conversations }: JobsWorld, job: AcceptedJob) =>
  (await conversations.get('default', job.conversation_id)).status;

/** What is counted of conversations is what there is. */
async function expectCounts({ database, conversations }: JobsWorld): Promise<void> {
  const rows = await database.read.kysely.selectFrom('conversations').selectAll().execute();
  for (const status of ['active', 'completed', 'failed'] as const) {
    for (const trigger_type of ['api', 'scheduled'] as const) {
      const { total } = await conversations.list('default', { status, trigger_type }, page);
      const own = rows.filter((row) => row.status === status && row.trigger_type === trigger_type);
      expect(total, `${trigger_type} ${status}`).toBe(own.length);
    }
  }
}

describe.each(await engines())('on $name', (engine) => {
  test('a job that continues a conversation adds its messages, and makes it active again', async () => {
    const world = await jobsWorld(engine);
    const first = await ended(world);
    expect(await statusOf(world, first)).toBe('completed');
    world.clock.advance(1_000);

    const next = await world.submit(goOn(first, { input: '{"b":2}' }));

    expect(next.conversation_id).toBe(first.conversation_id);
    expect(await statusOf(world, first)).toBe('active');
    await expectCounts(world);
    await world.attempt(next.id, completed({ more: true }));
    expect(await statusOf(world, first)).toBe('completed');
    expect(await world.messages(first)).toMatchObject([
      { job_id: first.id, role: 'user', content: '{"a":1}' },
      { job_id: first.id, role: 'assistant' },
      { job_id: next.id, role: 'user', content: '{"b":2}' },
      { job_id: next.id, role: 'assistant', content: '{"more":true}' },
    ]);
    const conversation = await world.conversations.get('default', first.conversation_id);
    expect(Date.parse(conversation.updated_at)).toBe(world.clock.now());
    expect(conversation.created_at).not.toBe(conversation.updated_at);
    await expectCounts(world);
  });

  test('conversation.created is sent for the first job only', async () => {
    const world = await jobsWorld(engine);
    const first = await ended(world);

    const next = await ended(world, goOn(first));

    const types = (await world.events()).map(({ type }) => type);
    expect(types).toEqual([
      'agent.created',
      'conversation.created',
      'skill.completed',
      'skill.completed',
    ]);
    expect((await world.events(next)).at(-1)?.data).toContain(next.id);
  });

  test('its status is that of its last job', async () => {
    const world = await jobsWorld(engine);
    const first = await ended(world);
    const next = await world.submit(goOn(first));

    await world.attempt(next.id, failed({ retryable: false }));
    expect(await statusOf(world, first)).toBe('failed');
    await ended(world, goOn(first));
    expect(await statusOf(world, first)).toBe('completed');
    const last = await world.submit(goOn(first));
    await world.jobs.cancel('default', last.id);

    expect(await statusOf(world, first)).toBe('failed');
    await expectCounts(world);
  });

  test('a conversation is counted under the trigger type of its first job', async () => {
    const world = await jobsWorld(engine);
    const first = await ended(world, { triggerType: 'scheduled' });

    const next = await world.submit(goOn(first, { triggerType: 'api' }));
    await expectCounts(world);
    await world.attempt(next.id, completed());

    await expectCounts(world);
    const conversation = await world.conversations.get('default', first.conversation_id);
    expect(conversation.trigger_type).toBe('scheduled');
  });

  test('is refused while another run of it is active or queued, until that has ended', async () => {
    const world = await jobsWorld(engine);
    const first = await world.submit();
    const again = () => world.accept(world.request(goOn(first)));

    expect(await again()).toEqual({ kind: 'conversation_active' });
    const { run, ended: done } = await world.begin(first.id);
    expect(await again()).toEqual({ kind: 'conversation_active' });
    run.end(failed());
    await done;
    expect((await world.row(first.id)).status).toBe('queued');
    expect(await again()).toEqual({ kind: 'conversation_active' });
    world.clock.advance(60_000);
    await world.attempt(first.id, completed());

    expect(await again()).toMatchObject({ kind: 'accepted' });
    expect(await world.messages(first)).toHaveLength(3);
  });

  test('of many requests at once one is accepted, also from several processes', async () => {
    const place = await engine.place();
    const world = await jobsWorld(engine, { database: await place.open() });
    // SQLite is for one process.
    const other =
      engine.name === 'SQLite'
        ? world
        : await jobsWorld(engine, { database: await place.open(), clock: world.clock });
    const first = await ended(world);

    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? world : other).accept(world.request(goOn(first))),
      ),
    );

    expect(answers.filter(({ kind }) => kind === 'accepted')).toHaveLength(1);
    expect(answers.filter(({ kind }) => kind === 'conversation_active')).toHaveLength(19);
    const jobs = await world.database.read.kysely.selectFrom('jobs').select('id').execute();
    expect(jobs).toHaveLength(2);
    expect(await world.messages(first)).toHaveLength(3);
    await expectCounts(world);
  });

  test('a refused request takes no Idempotency-Key, and a repeated request gets the first response', async () => {
    const world = await jobsWorld(engine);
    const first = await ended(world);
    const accept = (key: string, fingerprint?: string) =>
      world.accept(world.request(goOn(first, keyed(key, fingerprint))));

    const accepted = await accept('k');
    expect(accepted).toMatchObject({ kind: 'accepted' });
    const { job } = accepted as { job: AcceptedJob };
    expect(await accept('k')).toMatchObject({ kind: 'replayed', job: { id: job.id } });
    expect(await accept('k', 'other')).toEqual({ kind: 'key_reused' });
    expect(await accept('new')).toEqual({ kind: 'conversation_active' });
    await world.attempt(job.id, completed());

    expect(await accept('new')).toMatchObject({ kind: 'accepted' });
    expect(await accept('k')).toMatchObject({ kind: 'replayed', job: { id: job.id } });
  });

  test('the same request twice at once is one job', async () => {
    const world = await jobsWorld(engine);
    const first = await ended(world);

    const answers = await Promise.all(
      [1, 2, 3].map(() => world.accept(world.request(goOn(first, keyed('k'))))),
    );

    const kinds = answers.map(({ kind }) => kind).sort();
    expect(kinds).toEqual(['accepted', 'replayed', 'replayed']);
    const ids = answers.map((answer) => ('job' in answer ? answer.job.id : ''));
    expect(new Set(ids).size).toBe(1);
  });

  test('an unknown conversation fails only its own request', async () => {
    const world = await jobsWorld(engine);

    const [gone, fine] = await Promise.allSettled([
      world.accept(world.request({ conversationId: newId() })),
      world.accept(world.request()),
    ]);

    expect(gone).toMatchObject({ status: 'rejected', reason: { code: 'not_found' } });
    expect(fine).toMatchObject({ status: 'fulfilled', value: { kind: 'accepted' } });
  });

  test('shows a later job the messages of earlier ones, oldest first, without its own', async () => {
    const world = await jobsWorld(engine, { freeSlots: () => 1_000 });
    const speak = async (fields: Partial<WorkRequest>, text: string, isDialogue = true) => {
      const { id } = await world.submit(fields);
      const job = world.begun.find((one) => one.id === id);
      if (job === undefined) throw new Error('It was not claimed.');
      const journal = openWholeJournal(world, job);
      const wanted = {
        generation: 'g',
        parent: null,
        turn: 1,
        model: 'm/m',
        agentVersion: 1,
        prompt: 1,
        expected: 1,
        output: 1,
      };
      const begun = await journal.beginCall(wanted);
      if (begun.kind !== 'begun') throw new Error('It has not begun.');
      await journal.endCall(begun.call, {
        ...wanted,
        status: 'completed',
        error: null,
        message: { role: 'assistant', text, toolCalls: [] },
        isDialogue,
        usage: { prompt: 3, completion: 4 },
        estimated: 0,
        tools: [],
      });
      const outcome = { kind: 'completed' as const, output: JSON.stringify(text) };
      await world.settle({
        job,
        outcome,
        messages: [],
        openedJournal: true,
        answer: isDialogue ? text : null,
      });
      return job;
    };
    const first = await speak({ input: '{"task":"one"}' }, 'first');
    const aside = await speak(goOn(first, { input: '{"task":"two"}' }), 'aside', false);
    const third = await speak(goOn(first, { input: '{"task":"three"}' }), 'third');

    const history = (jobId: string, { limit = 100, bytesMax = 1_000 } = {}) =>
      world.conversations.dialogue(first.conversation_id, [jobId], { limit, bytesMax });
    const shown = async (jobId: string, bounds = {}) =>
      (await history(jobId, bounds)).messages.map(({ content, data }) =>
        data === null ? content : (JSON.parse(data) as DialogueMessage).text,
      );

    const all = ['{"task":"one"}', 'first', '{"task":"two"}', '{"task":"three"}', 'third'];
    expect(await shown('another')).toEqual(all);
    expect(await shown('another', { limit: 2 })).toEqual(all.slice(-2));
    // Of bytes, too, the newest: the last two messages have 15 and about 50.
    expect(await shown('another', { bytesMax: 75 })).toEqual(all.slice(-2));
    expect(await shown('another', { bytesMax: 1 })).toEqual(all.slice(-1));
    expect((await history('another', { bytesMax: 1 })).isCut).toBe(true);
    expect((await history('another', { limit: 4 })).isCut).toBe(true);
    expect((await history('another', { limit: 5 })).isCut).toBe(false);
    expect(await shown(third.id)).toEqual(all.slice(0, 3));
    expect(await shown(aside.id)).toEqual([...all.slice(0, 2), ...all.slice(3)]);

    const fields = async () =>
      (await history('another')).messages.map(({ task_field }) => task_field);
    expect(await fields()).toEqual([null, null, null, null, null]);
    const echo = world.skills.active('default', 'test', 'v1.0', 'echo');
    await world.skills.register([{ ...echo, taskField: 'task' }]);
    expect(await fields()).toEqual(['task', null, 'task', 'task', null]);
    const own = await world.conversations.tokensOfJob(first.conversation_id, third.id);
    expect(own.token_stats).toMatchObject({
      prompt_tokens: 3,
      completion_tokens: 4,
      total_tokens: 7,
    });
    const { token_stats } = await world.conversations.get('default', first.conversation_id);
    expect(token_stats).toMatchObject({
      prompt_tokens: 9,
      completion_tokens: 12,
      total_tokens: 21,
    });
  });

  test('the key of a refused request goes to the next one in the same write, or is released', async () => {
    const world = await jobsWorld(engine);
    const first = await ended(world);
    await world.submit(goOn(first));
    const elsewhere = await ended(world);

    const [refused, next, again, lost] = await world.database.write((tx) =>
      world.acceptor.acceptWithin(tx, [
        world.request(goOn(first, keyed('k', 'one'))),
        world.request(goOn(elsewhere, keyed('k', 'two'))),
        world.request(goOn(first, keyed('k', 'two'))),
        world.request(goOn(first, keyed('other'))),
      ]),
    );

    expect([refused?.kind, next?.kind, again?.kind, lost?.kind]).toEqual([
      'conversation_active',
      'accepted',
      'replayed',
      'conversation_active',
    ]);
    const keys = await world.database.read.kysely
      .selectFrom('idempotency_keys')
      .select(['idempotency_key', 'fingerprint', 'job_id'])
      .execute();
    const job = next?.kind === 'accepted' ? next.job.id : '';
    expect(keys).toEqual([{ idempotency_key: 'k', fingerprint: 'two', job_id: job }]);
    await expectCounts(world);
  });

  test('many jobs that continue and end at once do not deadlock', async () => {
    const place = await engine.place();
    const world = await jobsWorld(engine, { database: await place.open() });
    // SQLite is for one process.
    const other =
      engine.name === 'SQLite'
        ? world
        : await jobsWorld(engine, { database: await place.open(), clock: world.clock });
    const jobs: AcceptedJob[] = [];
    for (let i = 0; i < 12; i += 1) jobs.push(await ended(world));
    const all = [jobs, jobs.toReversed()];
    let active: AcceptedJob[] = [];

    for (let round = 0; round < 8; round += 1) {
      const ends = active.map(({ id }, i) =>
        world.attempt(id, i % 2 === 0 ? completed() : failed({ retryable: false })),
      );
      const accepts = all.flatMap((order, i) =>
        order.map((job) => (i === 0 ? world : other).accept(world.request(goOn(job)))),
      );
      await Promise.all(ends);
      const answers = await Promise.all(accepts);
      active = answers.flatMap((one) => (one.kind === 'accepted' ? [one.job] : []));
    }
    await Promise.all(active.map(({ id }) => world.attempt(id, completed())));

    await expectCounts(world);
    await world.database.close();
    await other.database.close();
    if (engine.name === 'PostgreSQL') expect(await deadlocksIn(place.at)).toBe(0);
  });
});
