/** Accept: every way to start work ends here (docs/decisions/jobs.md, docs/decisions/conversations.md). */
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { Execution } from '../../src/core/jobs/execute.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { deadlocksIn } from '../support/deadlocks.ts';
import { completed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { anyWriter } from '../support/writers.ts';

const day = 24 * 60 * 60 * 1000;
const other = { category: 'test', name: 'other', version: 'v1.0' };

/** How many rows each table that accepting writes to has. */
async function sizes(database: Database): Promise<Record<string, number>> {
  const tables = ['jobs', 'conversations', 'messages', 'events', 'idempotency_keys'] as const;
  const rows = tables.map(async (table) => {
    const all = await database.read.kysely.selectFrom(table).selectAll().execute();
    return [table, all.length] as const;
  });
  return Object.fromEntries(await Promise.all(rows));
}

describe.each(await engines())('on $name', (engine) => {
  describe('accepted work', () => {
    test('is recorded whole: job, conversation, message, event, counts', async () => {
      const { submit, row, clock, database, events, messages, caller } = await jobsWorld(engine);

      const job = await submit({ userId: 'ann', input: '{"text":"hi"}' });

      const now = clock.now();
      expect(await row(job.id)).toEqual({
        id: job.id,
        organization_id: 'default',
        api_key_id: caller.keyId,
        agent_id: 'default',
        conversation_id: job.conversation_id,
        skill_category: 'test',
        skill_name: 'echo',
        skill_version: 'v1.0',
        trigger_type: 'api',
        user_id: 'ann',
        status: 'queued',
        attempt: 0,
        max_attempts: 3,
        epoch: 0,
        deaths: 0,
        run_at: now,
        due_at: now,
        expires_at: null,
        batch_id: null,
        held_by: null,
        gated: 0,
        has_begun: 0,
        concurrency_key: null,
        job_key: null,
        replaced_by: null,
        delivered_to: null,
        started_at: null,
        finished_at: null,
        cancel_requested_at: null,
        resumed_at: null,
        active_ms: 0,
        parent_job_id: null,
        parent_step: null,
        depth: 0,
        retry_of: null,
        resumes: null,
        input: '{"text":"hi"}',
        agent_overrides: null,
        instruction_values: null,
        attempts_before: 0,
        begun: 0,
        claimed_by: 0,
        idle_claims: 0,
        agent_version: null,
        for_user: 0,
        priority: 1,
        erased_at: null,
        output: null,
        error: null,
        progress: null,
        created_at: now,
      });
      expect(await messages(job)).toMatchObject([
        {
          job_id: job.id,
          role: 'user',
          content: '{"text":"hi"}',
          prompt_tokens: 0,
          created_at: now,
        },
      ]);
      const [event, ...more] = await events(job);
      expect(more).toEqual([]);
      expect(event).toMatchObject({ type: 'conversation.created', agent_id: 'default' });
      expect(JSON.parse(event?.data ?? '')).toEqual({
        conversation_id: job.conversation_id,
        trigger_type: 'api',
        user_id: 'ann',
      });
      await expectConsistent(database);
    });

    test('is recorded whole or not at all', async () => {
      const { submit, database, hints } = await jobsWorld(engine);
      const before = await sizes(database);
      // The last thing that accepting writes cannot be written.
      await database.write((tx) => tx.kysely.schema.dropTable('conversation_counts').execute());

      await expect(submit()).rejects.toThrow();

      expect(await sizes(database)).toEqual(before);
      expect(hints).toEqual([]);
    });

    test('is committed and readable when its hint is sent', async () => {
      const { submit, hints, jobs } = await jobsWorld(engine);
      const seen: Promise<unknown>[] = [];
      hints.push = (...sent) => {
        seen.push(...sent.map(({ id }) => jobs.get('default', id)));
        return sent.length;
      };

      const job = await submit();

      expect(await Promise.all(seen)).toMatchObject([{ job_id: job.id, status: 'queued' }]);
    });

    test('is hinted at after its commit, on the queue of its trigger', async () => {
      const { submit, hints } = await jobsWorld(engine);

      const jobs = [
        await submit({ triggerType: 'api' }),
        await submit({ triggerType: 'webhook' }),
        await submit({ triggerType: 'scheduled' }),
      ];

      expect(hints).toEqual(
        ['skill-execution', 'skill-execution', 'scheduled-jobs'].map((queue, i) => ({
          queue,
          id: jobs[i]?.id,
          organizationId: 'default',
          generation: 0,
          delayMs: 0,
        })),
      );
    });

    test('that could not be recorded sends no hint', async () => {
      const { submit, hints, database } = await jobsWorld(engine);
      await database.close();

      await expect(submit()).rejects.toMatchObject({ code: 'service_unavailable' });

      expect(hints).toEqual([]);
    });

    test('of 200 requests at once is 200 jobs, each with its own conversation', async () => {
      const { submit, database, hints } = await jobsWorld(engine);

      const jobs = await Promise.all(
        Array.from({ length: 200 }, (_, i) =>
          submit({ input: `${i}`, ...(i % 2 === 0 ? { skill: other } : {}) }),
        ),
      );

      expect(new Set(jobs.map(({ id }) => id)).size).toBe(200);
      expect(new Set(jobs.map(({ conversation_id }) => conversation_id)).size).toBe(200);
      expect(hints.map(({ id }) => id).toSorted()).toEqual(jobs.map(({ id }) => id).toSorted());
      expect(await sizes(database)).toMatchObject({ jobs: 200, messages: 200, events: 201 });
      await expectConsistent(database);
    });

    test.each([
      ['"a text 😀"', 'a text 😀'],
      ['""', ''],
      ['[1,2]', '[1,2]'],
      ['null', 'null'],
      ['7', '7'],
    ])('of the input %s shows the message %j', async (input, content) => {
      const { submit, messages, jobs } = await jobsWorld(engine);

      const job = await submit({ input });

      expect((await messages(job)).map((message) => message.content)).toEqual([content]);
      expect((await jobs.get('default', job.id)).input).toEqual(JSON.parse(input));
    });
  });

  describe('the same Idempotency-Key', () => {
    const keyed = (key: string, fingerprint = 'same', owner = 'a key') => ({
      idempotency: { owner, key, fingerprint },
    });
    const request = async ({ submit: _, caller, accept }: JobsWorld, more = {}) =>
      accept({
        organizationId: 'default',
        apiKeyId: caller.keyId,
        agentId: 'default',
        userId: 'someone',
        triggerType: 'api',
        skill: { category: 'test', name: 'echo', version: 'v1.0' },
        maxAttempts: 3,
        input: '{}',
        retryOf: null,
        ...keyed('k'),
        ...more,
      });

    test('with the same body is the first answer again, and one job', async () => {
      const world = await jobsWorld(engine);

      const first = await request(world);
      const second = await request(world);

      expect(first.kind).toBe('accepted');
      expect(second).toMatchObject({
        kind: 'replayed',
        job: first.kind === 'accepted' && first.job,
      });
      expect(await sizes(world.database)).toMatchObject({ jobs: 1, messages: 1, events: 2 });
      expect(world.hints).toHaveLength(1);
    });

    test('fifty times at once is one job, and fifty times its answer', async () => {
      const world = await jobsWorld(engine);

      const answers = await Promise.all(Array.from({ length: 50 }, () => request(world)));

      expect(answers.filter(({ kind }) => kind === 'accepted')).toHaveLength(1);
      expect(answers.filter(({ kind }) => kind === 'replayed')).toHaveLength(49);
      const ids = answers.map((answer) => ('job' in answer ? answer.job.id : null));
      expect(new Set(ids).size).toBe(1);
      const shown = answers.map((answer) => ('job' in answer ? answer.job.created_at : null));
      expect(new Set(shown).size).toBe(1);
      expect(await sizes(world.database)).toMatchObject({ jobs: 1, idempotency_keys: 1 });
      expect(world.hints).toHaveLength(1);
      await expectConsistent(world.database);
    });

    test('at once with different bodies is one job; the other body is refused', async () => {
      const world = await jobsWorld(engine);

      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => request(world, keyed('k', i < 10 ? 'one' : 'two'))),
      );

      const kinds = answers.map(({ kind }) => kind).toSorted();
      expect(kinds).toEqual([
        'accepted',
        ...Array(10).fill('key_reused'),
        ...Array(9).fill('replayed'),
      ]);
      expect(await sizes(world.database)).toMatchObject({ jobs: 1 });
    });

    test('on two processes at once is one job', async () => {
      const place = await engine.place();
      const database = await place.open();
      const one = await jobsWorld(engine, { database });
      // SQLite has one process; there the second set of verbs shares the connection.
      const shared = engine.name === 'SQLite' ? database : await place.open();
      const two = await jobsWorld(engine, { database: shared });

      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, i) => request(i % 2 === 0 ? one : two)),
      );

      expect(answers.filter(({ kind }) => kind === 'accepted')).toHaveLength(1);
      expect(answers.filter(({ kind }) => kind === 'replayed')).toHaveLength(39);
      expect(await sizes(database)).toMatchObject({ jobs: 1 });
    });

    test('with another body is refused, and remembers the first', async () => {
      const world = await jobsWorld(engine);
      await request(world);

      expect(await request(world, keyed('k', 'other'))).toEqual({ kind: 'key_reused' });
      expect((await request(world)).kind).toBe('replayed');
      expect(await sizes(world.database)).toMatchObject({ jobs: 1 });
    });

    test('of another owner is another key', async () => {
      const world = await jobsWorld(engine);

      await request(world);

      expect((await request(world, keyed('k', 'same', 'a trigger'))).kind).toBe('accepted');
    });

    test('is remembered for 24 hours, with any outcome of the job, and then free again', async () => {
      const world = await jobsWorld(engine);
      const first = await request(world);
      if (first.kind !== 'accepted') throw new Error(first.kind);
      await world.attempt(first.job.id, completed());

      world.clock.advance(day);
      expect((await request(world)).kind).toBe('replayed');
      expect((await request(world, keyed('k', 'other'))).kind).toBe('key_reused');

      world.clock.advance(1);
      const again = await request(world, keyed('k', 'other'));
      expect(again.kind).toBe('accepted');
      expect((await request(world, keyed('k', 'other'))).kind).toBe('replayed');
      expect(await request(world)).toEqual({ kind: 'key_reused' });
    });

    test('of many requests of two processes, in any order, causes no deadlock', async () => {
      const place = await engine.place();
      const database = await place.open();
      const other = engine.name === 'SQLite' ? database : await place.open();
      const worlds = [
        await jobsWorld(engine, { database }),
        await jobsWorld(engine, { database: other }),
      ];
      const keys = Array.from({ length: 30 }, (_, i) => `key ${i}`);
      let accepted = 0;

      for (let round = 0; round < 6; round += 1) {
        const answers = worlds.flatMap((world, i) =>
          (i === 0 ? keys : keys.toReversed()).map((key) => request(world, keyed(key + round))),
        );
        const kinds = (await Promise.all(answers)).map(({ kind }) => kind);
        accepted += kinds.filter((kind) => kind === 'accepted').length;
        expect(kinds.filter((kind) => kind === 'replayed')).toHaveLength(keys.length);
      }

      expect(accepted).toBe(6 * keys.length);
      expect(await sizes(database)).toMatchObject({ idempotency_keys: 6 * keys.length });
      await expectConsistent(database);
      await database.close();
      await other.close();
      if (engine.name === 'PostgreSQL') expect(await deadlocksIn(place.at)).toBe(0);
    });

    test('is not taken by a request that fails', async () => {
      const world = await jobsWorld(engine);

      await expect(request(world, { input: null as never })).rejects.toThrow();

      expect((await request(world, keyed('k', 'other'))).kind).toBe('accepted');
    });
  });

  describe('a request to run a skill', () => {
    async function judged() {
      const world = await jobsWorld(engine);
      const execution = new Execution(world.context, world);
      const run = async (
        more: { caller?: JobsWorld['caller']; input?: unknown; agent?: string; key?: string } = {},
      ) => {
        const { caller = world.caller, agent = 'default', key } = more;
        const input = 'input' in more ? more.input : {};
        const path = { category: 'test', version: 'v1.0', skillName: 'echo' };
        const target = await execution.findTarget(caller, path, () => ({ agentId: agent }));
        const idempotency = key === undefined ? undefined : { owner: caller.keyId, key };
        return execution.execute(caller, target, input, {
          userId: 'ann',
          triggerType: 'api',
          idempotency,
        });
      };
      return { ...world, run };
    }

    test('is the same request when its body is equal as a JSON value', async () => {
      const { run } = await judged();
      const first = await run({ key: 'k', input: { a: [1, { b: 2, c: 3 }], d: 'é' } });

      const again = await run({ key: 'k', input: { d: 'é', a: [1, { c: 3.0, b: 2 }] } });

      expect(again).toMatchObject({ isReplay: true, job: { id: first.job.id } });
      await expect(run({ key: 'k', input: { a: [] } })).rejects.toMatchObject({
        code: 'idempotency_key_reused',
      });
    });

    test('is another request when it names another agent', async () => {
      const { run, agents } = await judged();
      await agents.create(anyWriter(), { id: 'helper' });
      await run({ key: 'k' });

      await expect(run({ key: 'k', agent: 'helper' })).rejects.toMatchObject({
        code: 'idempotency_key_reused',
      });
    });

    test('of another organization names an agent that does not exist', async () => {
      const { run, agents, callerOf } = await judged();
      await agents.create(anyWriter(), { id: 'helper' });
      const stranger = await callerOf('acme');

      await expect(run({ caller: stranger, agent: 'helper' })).rejects.toMatchObject({
        code: 'not_found',
      });
      expect((await run({ caller: stranger })).job.organization_id).toBe('acme');
    });

    test('without the scope is refused before its input is validated', async () => {
      const { run, callerOf } = await judged();
      const caller = await callerOf('default', ['text']);

      await expect(run({ caller, input: 'no object' })).rejects.toMatchObject({
        code: 'insufficient_scope',
      });
    });

    test.each([[undefined], ['a text'], [[]], [null], [1]])(
      'with the input %j is refused by the schema of the skill, and nothing is queued',
      async (input) => {
        const { run, database, caller } = await judged();

        await expect(run({ caller, input })).rejects.toMatchObject({ code: 'validation_error' });

        expect(await sizes(database)).toMatchObject({ jobs: 0, idempotency_keys: 0 });
      },
    );

    test('at a paused agent is agent_paused, but a repeat of an accepted request gets its response', async () => {
      const { run, agents, clock } = await judged();
      const first = await run({ key: 'k' });
      await agents.update(anyWriter(), 'default', { status: 'paused' });
      clock.advance(2_000);

      await expect(run({ key: 'new' })).rejects.toMatchObject({ code: 'agent_paused' });
      await expect(run()).rejects.toMatchObject({ code: 'agent_paused' });

      expect(await run({ key: 'k' })).toMatchObject({ isReplay: true, job: { id: first.job.id } });
    });

    test('that was refused is not remembered', async () => {
      const { run, agents } = await judged();
      await agents.update(anyWriter(), 'default', { status: 'paused' });
      await expect(run({ key: 'k' })).rejects.toMatchObject({ code: 'agent_paused' });
      await agents.update(anyWriter(), 'default', { status: 'active' });

      expect(await run({ key: 'k', input: { other: true } })).toMatchObject({ isReplay: false });
    });
  });
});
