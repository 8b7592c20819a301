/** Jobs of one key: the latest runs, or the first, or one once it is calm (docs/decisions/jobs.md). */
import { CompiledQuery, sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Database, Transaction } from '../../src/adapters/database/database.ts';
import type { Statement } from '../../src/adapters/database/statement.ts';
import { Batches } from '../../src/core/jobs/batches/batches.ts';
import { Execution } from '../../src/core/jobs/execute.ts';
import { deleteOldJobKeys } from '../../src/core/jobs/job-keys/job-keys.store.ts';
import type { JobKey } from '../../src/core/jobs/job-keys/job-keys.ts';
import { deleteExpired } from '../../src/core/jobs/retention.ts';
import { newId } from '../../src/kernel/ids.ts';
import { lockKeysOf } from '../../src/platform/user-data/user-data.store.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { plansOf, recording, rowsOf } from '../support/query-plans.ts';

const minute = 60_000;
const day = 24 * 60 * minute;
const replace: JobKey = { key: 'orders', mode: 'replace' };
const skip: JobKey = { key: 'orders', mode: 'skip' };
const debounce: JobKey = {
  ...{ key: 'orders', mode: 'debounce' },
  ...{ debounceMs: minute, debounceTotalMs: 3 * minute },
};

/** Accepts a debounced request, as an execution does. */
const calm = (world: JobsWorld, n: number, more = {}) =>
  world.accept(
    world.request({ jobKey: debounce, timing: { delayMs: minute }, input: `{"n":${n}}`, ...more }),
  );
/** Requests so often that the job is never due; 2.7 minutes pass. */
async function keepCalm(world: JobsWorld) {
  const first = await calm(world, 1);
  for (const n of [2, 3, 4]) {
    world.clock.advance(54_000);
    if (n < 4) await calm(world, n);
  }
  return first as { job: { id: string } };
}
const replaced = { code: 'replaced', message: 'A later job of its key has taken its place' };
const byKey = (world: JobsWorld) =>
  world.database.read.kysely.selectFrom('jobs').selectAll().orderBy('id').execute();

type Asked = [statement: Statement<unknown, unknown>, params: unknown];

/** The same database, and the statements with an answer that were run in its transactions; some that run at once count as one. */
function observed(on: Database) {
  const asked: Asked[] = [];
  let rounds = 0;
  let isOpen = false;
  const run = (statement: unknown, params: unknown) => {
    asked.push([statement, params] as Asked);
    if (!isOpen) rounds += 1;
    isOpen = true;
    queueMicrotask(() => {
      isOpen = false;
    });
  };
  const write: Database['write'] = (unit) =>
    on.write((tx) =>
      unit({
        ...tx,
        all(statement, params) {
          run(statement, params);
          return tx.all(statement, params);
        },
        first(statement, params) {
          run(statement, params);
          return tx.first(statement, params);
        },
      }),
    );
  return { database: { ...on, write }, asked, rounds: () => rounds };
}

/** Accepts so many requests with the mode skip and keys of their own at once, as a batch does. */
async function acceptSkipped(world: JobsWorld, keys: readonly string[]) {
  const { database, asked, rounds } = observed(world.database);
  const { acceptor } = world.jobsOn(database).parts;
  const requests = keys.map((key) => world.request({ jobKey: { ...skip, key } }));
  const accepted = await database.write((tx) => acceptor.acceptWithin(tx, requests));
  return { accepted, asked, rounds: rounds() };
}

describe.each(await engines())('on $name', (engine) => {
  describe('replace', () => {
    test('cancels the earlier job that has not begun, which names the later one', async () => {
      const world = await jobsWorld(engine);
      const { request, accept, row, database, events } = world;
      const first = await world.submit({ jobKey: replace });

      const second = await accept(request({ jobKey: replace, input: '{"n":2}' }));

      expect(second).toMatchObject({ kind: 'accepted', replaces: first.id });
      const job = (second as { job: { id: string } }).job;
      const ended = await row(first.id);
      expect(ended).toMatchObject({ status: 'cancelled', replaced_by: job.id, due_at: null });
      expect(JSON.parse(ended.error ?? '')).toEqual(replaced);
      expect(await row(job.id)).toMatchObject({ status: 'queued', job_key: 'orders' });
      const types = (await events(first)).map(({ type }) => type);
      expect(types).toEqual(['conversation.created']);
      const stream: unknown[] = [];
      for await (const { type, data } of world.stream(first.id)) stream.push([type, data]);
      expect(stream.at(-1)).toEqual([
        'status',
        expect.objectContaining({ status: 'cancelled', error: replaced }),
      ]);
      await expectConsistent(database);
    });

    test('of a job that is due gives its turn to the later job', async () => {
      const world = await jobsWorld(engine);
      const { clock, submit, row, attempt, hints, database } = world;
      const first = await submit({ jobKey: replace });
      const { due_at } = await row(first.id);
      clock.advance(minute);

      const second = await submit({ jobKey: replace });

      expect(await row(second.id)).toMatchObject({ run_at: due_at, due_at });
      expect(hints.at(-1)).toMatchObject({ id: second.id, delayMs: 0 });
      expect(await attempt(second.id, completed())).toBe(true);
      await expectConsistent(database);
    });

    test('lets a job go on that has begun, and one that waits for its next attempt', async () => {
      const world = await jobsWorld(engine);
      const { submit, begin, attempt, row, database } = world;
      const active = await submit({ jobKey: replace });
      const { run, ended } = await begin(active.id);
      const second = await submit({ jobKey: replace });
      expect((await row(active.id)).status).toBe('active');
      run.end(completed());
      await ended;
      await attempt(second.id, failed());

      const third = await submit({ jobKey: replace });

      expect(await row(second.id)).toMatchObject({ status: 'queued', replaced_by: null });
      expect((await row(third.id)).status).toBe('queued');
      await expectConsistent(database);
    });

    test('cancels one that was claimed, of which the code has not begun', async () => {
      const world = await jobsWorld(engine);
      const { submit, admission, database, settle, row } = world;
      const first = await submit({ jobKey: replace });
      const [claimed] = await database.write((tx) => admission.claim(tx, [first.id]));
      if (!claimed) throw new Error('It was not claimed.');
      await settle({ job: claimed, outcome: { kind: 'unbegun' }, messages: [] });

      const second = await submit({ jobKey: replace });

      expect(await row(first.id)).toMatchObject({ status: 'cancelled', replaced_by: second.id });
      await expectConsistent(database);
    });

    test('ends a claimed job, of which the code has not begun, once its claim ends', async () => {
      const world = await jobsWorld(engine);
      const { submit, admission, database, settle, row } = world;
      const first = await submit({ jobKey: replace });
      const [claimed] = await database.write((tx) => admission.claim(tx, [first.id]));
      if (!claimed) throw new Error('It was not claimed.');
      const second = await submit({ jobKey: replace });
      expect(await row(first.id)).toMatchObject({ status: 'active', replaced_by: null });

      const outcome = { kind: 'deferred', afterMs: minute } as const;
      expect(await settle({ job: claimed, outcome, messages: [] })).toBe('cancelled');

      const ended = await row(first.id);
      expect(ended).toMatchObject({ status: 'cancelled', replaced_by: second.id });
      expect(JSON.parse(ended.error ?? '')).toEqual(replaced);
      expect((await row(second.id)).status).toBe('queued');
      await expectConsistent(database);
    });

    test('lets a job go on that has begun and was handed back, whatever became of later claims', async () => {
      const world = await jobsWorld(engine);
      const { submit, attempt, worker, row, database } = world;
      const first = await submit({ jobKey: replace });
      await attempt(first.id, { kind: 'aborted' });
      await worker('without', { canRun: () => false }).perform(first.id);

      const second = await submit({ jobKey: replace });

      expect(await row(first.id)).toMatchObject({ status: 'queued', replaced_by: null });
      expect(await row(second.id)).toMatchObject({ status: 'queued' });
      await expectConsistent(database);
    });

    test('is for one organization, one skill with its version, and one key', async () => {
      const world = await jobsWorld(engine);
      const { submit, callerOf, database } = world;
      const acme = await callerOf('acme');
      await submit({ jobKey: replace });
      await submit({ jobKey: { ...replace, key: 'Orders' } });
      await submit({
        jobKey: replace,
        skill: { category: 'test', name: 'other', version: 'v1.0' },
      });
      await submit({ jobKey: replace, skill: { category: 'test', name: 'echo', version: 'v1.1' } });
      await submit({ jobKey: replace, organizationId: 'acme', apiKeyId: acme.keyId });
      await submit();

      expect((await byKey(world)).map(({ status }) => status)).toEqual(Array(6).fill('queued'));
      await expectConsistent(database);
    });

    test('of requests in two processes and in one transaction leaves one job', async () => {
      const world = await jobsWorld(engine);
      const { database, acceptor, request, jobsOn } = world;
      const others = jobsOn(database).parts.acceptor;
      const sent = Array.from({ length: 20 }, (_, n) =>
        (n % 2 === 0 ? acceptor : others).accept(
          request({ jobKey: replace, input: JSON.stringify({ n }) }),
        ),
      );
      await Promise.all(sent);

      const jobs = await byKey(world);
      const queued = jobs.filter(({ status }) => status === 'queued');
      expect(queued).toHaveLength(1);
      expect(jobs).toHaveLength(20);
      const ids = new Set(jobs.map(({ id }) => id));
      for (const { status, replaced_by } of jobs) {
        expect(ids.has(replaced_by ?? '')).toBe(status === 'cancelled');
      }
      await expectConsistent(database);
    });
  });

  describe('skip', () => {
    test('is refused beside the job of another user, whose answer is not theirs, and takes no Idempotency-Key', async () => {
      const world = await jobsWorld(engine);
      const { submit, accept, request, row } = world;
      const ofAda = { userId: 'ada', isForUser: true };
      const first = await submit({ jobKey: skip, ...ofAda });
      const idempotency = { owner: 'key', key: 'one', fingerprint: 'f' };

      for (const other of [{ userId: 'bob', isForUser: true }, { userId: 'ada' }]) {
        const refused = await accept(request({ jobKey: skip, idempotency, ...other }));
        expect(refused).toEqual({ kind: 'other_users_key' });
      }

      const again = await accept(request({ jobKey: skip, idempotency, ...ofAda }));
      expect(again).toMatchObject({ kind: 'skipped', job: { id: first.id } });
      expect(await byKey(world)).toHaveLength(1);
      expect((await row(first.id)).status).toBe('queued');
    });

    test('of a user is answered with the job of none', async () => {
      const { submit, accept, request } = await jobsWorld(engine);
      const first = await submit({ jobKey: skip });

      const ofAda = { userId: 'ada', isForUser: true };
      expect(await accept(request({ jobKey: skip, ...ofAda }))).toMatchObject({
        ...{ kind: 'skipped', job: { id: first.id } },
      });
    });

    test('answers with the job that has not ended, also once it has begun', async () => {
      const world = await jobsWorld(engine);
      const { submit, accept, request, begin, database } = world;
      const first = await submit({ jobKey: skip });
      const again = await accept(request({ jobKey: skip, input: '{"n":2}' }));
      expect(again).toMatchObject({ kind: 'skipped', job: { id: first.id, status: 'queued' } });
      const { run, ended } = await begin(first.id);
      const active = await accept(request({ jobKey: skip }));
      expect(active).toMatchObject({ kind: 'skipped', job: { id: first.id, status: 'active' } });
      run.end(completed());
      await ended;

      expect(await accept(request({ jobKey: skip }))).toMatchObject({ kind: 'accepted' });

      expect(await byKey(world)).toHaveLength(2);
      await expectConsistent(database);
    });

    test('accepts a request where the job has expired, also before the sweep has ended it', async () => {
      const world = await jobsWorld(engine);
      const { submit, accept, request, clock } = world;
      await submit({ jobKey: skip, timing: { expiresInMs: minute } });

      clock.advance(minute);

      expect(await accept(request({ jobKey: skip }))).toMatchObject({ kind: 'accepted' });
    });

    test('of requests in two processes makes one job, also where each begins at once', async () => {
      const world = await jobsWorld(engine, { freeSlots: () => 10 });
      const { database, acceptor, request, jobsOn } = world;
      const others = jobsOn(database).parts.acceptor;
      const sent = Array.from({ length: 20 }, (_, n) =>
        (n % 2 === 0 ? acceptor : others).accept(request({ jobKey: skip })),
      );
      const kinds = (await Promise.all(sent)).map(({ kind }) => kind);

      expect(kinds.filter((kind) => kind === 'accepted')).toHaveLength(1);
      expect(await byKey(world)).toHaveLength(1);
      await expectConsistent(database);
    });

    test('holds while an older job of the key goes on beside which another mode has let one begin', async () => {
      const world = await jobsWorld(engine);
      const { submit, accept, request, begin, attempt, database } = world;
      const first = await submit({ jobKey: replace });
      const { run, ended } = await begin(first.id);
      const second = await submit({ jobKey: replace });
      const skipped = () => accept(request({ jobKey: skip }));
      expect(await skipped()).toMatchObject({ kind: 'skipped', job: { id: second.id } });
      await attempt(second.id, completed());

      expect(await skipped()).toMatchObject({ kind: 'skipped', job: { id: first.id } });

      // The others know the newest job alone, which has ended.
      expect(await accept(request({ jobKey: debounce }))).toMatchObject({ kind: 'accepted' });
      expect(await accept(request({ jobKey: replace }))).toHaveProperty('replaces');
      run.end(completed());
      await ended;
      await expectConsistent(database);
    });

    test('holds an older job that goes on where the row of the key was deleted', async () => {
      const world = await jobsWorld(engine);
      const { submit, begin, database } = world;
      const first = await submit({ jobKey: replace });
      const { run, ended } = await begin(first.id);
      await submit({ jobKey: { ...replace, key: 'other' } });
      await database.write((tx) => tx.kysely.deleteFrom('job_keys').execute());

      const { accepted } = await acceptSkipped(world, ['orders', 'other', 'fresh']);

      expect(accepted.map(({ kind }) => kind)).toEqual(['skipped', 'skipped', 'accepted']);
      expect(accepted[0]).toMatchObject({ job: { id: first.id } });
      run.end(completed());
      await ended;
    });

    test('of many keys takes as many statements as of one', async () => {
      const world = await jobsWorld(engine);
      const names = (n: number, of: string) => Array.from({ length: n }, (_, i) => `${of}${i}`);

      const one = await acceptSkipped(world, names(1, 'a'));
      const many = await acceptSkipped(world, names(100, 'b'));

      expect(many.rounds).toBe(one.rounds);
      expect(await byKey(world)).toHaveLength(101);
    });

    test('reads few jobs, however many of other keys have not ended', async () => {
      const world = await jobsWorld(engine);
      const row = await world.row((await world.submit({ jobKey: skip })).id);
      const copies = Array.from({ length: 900 }, (_, i) => ({
        ...row,
        id: newId(),
        job_key: `other-${i}`,
      }));
      await world.database.write((tx) => tx.insert('jobs', copies));

      const { asked } = await acceptSkipped(world, ['fresh', 'new']);

      const { kysely } = world.database.read;
      const dialect = world.database.read.dialect;
      const queries = asked
        .map(([statement, params]) => {
          const compiled = statement.compiledFor(kysely, dialect);
          return CompiledQuery.raw(compiled.text, compiled.bind(params));
        })
        .filter(({ sql }) => sql.includes('order by id desc'));
      expect(queries).not.toEqual([]);
      for (const query of queries) {
        if (engine.name === 'PostgreSQL') {
          expect(await rowsOf(world.database, query)).toBeLessThan(10);
        } else {
          const plans = await plansOf(world.database, 'jobs', query);
          expect(plans.join()).toContain('USING INDEX jobs_open_of_key');
          expect(plans.filter((plan) => plan.startsWith('SCAN'))).toEqual([]);
        }
      }
    });

    test('with an Idempotency-Key the repeat gets the job that it was answered with', async () => {
      const world = await jobsWorld(engine);
      const { submit, accept, request, caller, attempt } = world;
      const first = await submit({ jobKey: skip });
      const idempotency = { owner: caller.keyId, key: 'one', fingerprint: 'same' };
      const send = () => accept(request({ jobKey: skip, idempotency }));
      expect(await send()).toMatchObject({ kind: 'skipped', job: { id: first.id } });
      await attempt(first.id, completed());

      expect(await send()).toMatchObject({ kind: 'replayed', job: { id: first.id } });
      expect(await byKey(world)).toHaveLength(1);
    });
  });

  describe('debounce', () => {
    test('moves the job and replaces its input, up to the maximum since the first request', async () => {
      const world = await jobsWorld(engine);
      const { clock, row, messages, attempt, pool, database } = world;
      const first = await calm(world, 1);
      expect(first.kind).toBe('accepted');
      const { id } = (first as { job: { id: string } }).job;
      const beganAt = clock.now();
      for (const [n, runAt] of [
        [2, 1.5],
        [3, 2],
        [4, 2.5],
        [5, 3],
        [6, 3],
      ] as const) {
        clock.advance(minute / 2);
        const moved = await calm(world, n, { priority: 0 });
        expect(moved).toMatchObject({ kind: 'debounced', job: { id } });
        const job = await row(id);
        expect(job).toMatchObject({ input: `{"n":${n}}`, priority: 0, status: 'queued' });
        expect([job.run_at, job.due_at]).toEqual(Array(2).fill(beganAt + runAt * minute));
      }
      const [message] = await messages(await row(id));
      expect(message?.content).toBe('{"n":6}');
      clock.advance(minute / 2);

      expect(await attempt(id, completed())).toBe(true);
      expect(pool.runs.map(({ request }) => request.input)).toEqual(['{"n":6}']);
      expect(await byKey(world)).toHaveLength(1);
      await expectConsistent(database);
    });

    test('goes on after a restart, and begins anew after its job has begun', async () => {
      const world = await jobsWorld(engine);
      const { clock, jobsOn, database, request, row, attempt } = world;
      const first = await keepCalm(world);
      const restarted = jobsOn(database).parts.acceptor;
      const sent = request({ jobKey: debounce, timing: { delayMs: minute }, input: '{"n":2}' });
      expect(await restarted.accept(sent)).toMatchObject({ kind: 'debounced' });
      expect((await row(first.job.id)).run_at).toBe(clock.now() + 18_000);
      clock.advance(18_000);
      await attempt(first.job.id, failed());

      const second = await calm(world, 3);

      expect(second).toMatchObject({ kind: 'accepted' });
      expect(second).not.toHaveProperty('replaces');
      const { id } = (second as { job: { id: string } }).job;
      expect((await row(id)).run_at).toBe(clock.now() + minute);
      await expectConsistent(database);
    });

    test('takes the place of a job of another user, and keeps the first moment', async () => {
      const world = await jobsWorld(engine);
      const { clock, row, database } = world;
      const first = (await calm(world, 1)) as { job: { id: string } };
      clock.advance(2.5 * minute);

      const second = await calm(world, 2, { userId: 'another user' });

      expect(second).toMatchObject({ kind: 'accepted', replaces: first.job.id });
      const { id } = (second as { job: { id: string } }).job;
      expect((await row(id)).run_at).toBe(clock.now() + minute / 2);
      await expectConsistent(database);
    });

    test('counts the maximum from its own first request, not from one of another mode', async () => {
      const world = await jobsWorld(engine);
      const { clock, submit, row } = world;
      const { id } = await submit({ jobKey: replace, timing: { delayMs: day } });
      for (const minutes of [10, 0.5]) {
        clock.advance(minutes * minute);

        expect(await calm(world, minutes)).toMatchObject({ kind: 'debounced', job: { id } });

        expect((await row(id)).run_at).toBe(clock.now() + minute);
      }
    });

    test('leaves a job that is due its turn and its places, however often requests come', async () => {
      const world = await jobsWorld(engine);
      const { clock, row, database } = world;
      const first = (await calm(world, 1)) as { job: { id: string } };
      clock.advance(3 * minute);
      const { run_at, due_at } = await row(first.job.id);
      await database.write((tx) =>
        tx.kysely
          .updateTable('jobs')
          .set({ held_by: 'a gate', gated: 1 })
          .where('id', '=', first.job.id)
          .execute(),
      );

      clock.advance(minute);
      expect(await calm(world, 2)).toMatchObject({ kind: 'debounced', job: { id: first.job.id } });

      expect(await row(first.job.id)).toMatchObject({
        ...{ run_at, due_at, held_by: 'a gate' },
        input: '{"n":2}',
      });
    });

    test('announces a moment that is near', async () => {
      const world = await jobsWorld(engine);
      const { clock, hints } = world;
      await keepCalm(world);
      await calm(world, 5);
      clock.advance(17_400);

      const moved = (await calm(world, 2)) as { job: { id: string } };

      expect(hints.at(-1)).toMatchObject({ id: moved.job.id, delayMs: 600 });
    });
  });

  test('a request that continues a conversation has no key', async () => {
    const world = await jobsWorld(engine);
    const { context, skills, agents, conversations, acceptor, files, caller } = world;
    const execution = new Execution(context, { skills, agents, conversations, acceptor, files });
    const path = { category: 'test', version: 'v1.0', skillName: 'echo' };
    const { skill, ...target } = await execution.findTarget(caller, path, () => ({}));
    const continuing = {
      ...target,
      skill: { ...skill, continuesConversations: true },
      conversationId: 'one',
    };
    const options = { userId: 'ada', triggerType: 'api', jobKey: replace } as const;

    await expect(execution.execute(caller, continuing, {}, options)).rejects.toThrow(
      'x-conversation-id must not be sent together with x-job-key',
    );
  });

  test('an item of a batch has a key, each of a skill once', async () => {
    const world = await jobsWorld(engine);
    const { context, skills, agents, conversations, acceptor, files, caller, submit, row } = world;
    const execution = new Execution(context, { skills, agents, conversations, acceptor, files });
    const batches = new Batches(context, { execution, acceptor });
    const [taken, kept] = [
      await submit({ jobKey: { ...replace, key: 'a' } }),
      await submit({ jobKey: { ...replace, key: 'b' } }),
    ];
    await submit({ jobKey: { ...replace, key: 'e' }, userId: 'ada', isForUser: true });
    const item = (fields: object) => ({ skill: 'test/v1.0/echo', input: {}, ...fields });
    const items = [
      item({ job_key: 'a' }),
      item({ job_key: 'b', job_key_mode: 'skip' }),
      item({ job_key: 'a' }),
      item({ job_key_mode: 'skip' }),
      item({ job_key: 'c', job_key_mode: 'debounce' }),
      item({ job_key: 'd', job_key_mode: 'debounce', debounce_seconds: 5 }),
      item({ job_key: 'e', job_key_mode: 'skip', user_id: 'bob' }),
    ];

    const refused = (issue: string) =>
      expect.objectContaining({
        error: 'validation_error',
        message: expect.stringContaining(issue),
      });
    const request = { items, isAtomic: false, idempotencyKey: undefined };
    const { batch } = await batches.create(caller, request);

    expect(batch).toMatchObject({ accepted: 2, refused: 4 });
    expect(batch.items).toEqual([
      { job_id: expect.any(String), job_key_result: 'replaced' },
      { job_id: kept.id, job_key_result: 'skipped' },
      refused('job_key is that of items.0, too'),
      refused('job_key is required'),
      refused('debounce_seconds is required'),
      { job_id: expect.any(String) },
      { error: 'conflict', message: expect.stringContaining("another user's") },
    ]);
    expect((await row(taken.id)).status).toBe('cancelled');
    const atomic = batches.create(caller, { ...request, items: items.slice(-1), isAtomic: true });
    await expect(atomic).rejects.toMatchObject({ code: 'conflict' });
  });

  test.runIf(engine.name === 'PostgreSQL')(
    'an erasure locks keys in the order of the acceptance, whatever the language of the database',
    async () => {
      const { submit, database } = await jobsWorld(engine);
      const small = await submit({ jobKey: { ...replace, key: 'a' } });
      const capital = await submit({ jobKey: { ...replace, key: 'B' } });

      const locked = await database.write(async (tx) => {
        const column = sql`alter table job_keys alter column job_key type text collate "en-x-icu"`;
        await column.execute(tx.kysely);
        const { handle, asked } = recording({ read: tx } as unknown as Database);
        await lockKeysOf(handle as Transaction, [small.id, capital.id]);
        const query = asked.at(-1);
        return query && (await tx.kysely.executeQuery<{ job_id: string }>(query)).rows;
      });

      expect(locked?.map(({ job_id }) => job_id)).toEqual([capital.id, small.id]);
    },
  );

  test('a job without a key has no row of keys, and rows of ended jobs are deleted after a day', async () => {
    const world = await jobsWorld(engine);
    const { database, clock, submit, attempt } = world;
    await submit();
    const ended = await submit({ jobKey: replace });
    await submit({ jobKey: { ...replace, key: 'kept' }, timing: { delayMs: 9 * day } });
    await attempt(ended.id, completed());
    const keys = () => database.read.kysely.selectFrom('job_keys').select('job_key').execute();
    expect(await keys()).toHaveLength(2);

    clock.advance(day + 1);
    const parts = {
      database,
      clock,
      writer: 'first',
      readTo: null,
      removeOfJobs: async () => {},
    };
    await deleteExpired(parts, 30);

    expect(await keys()).toEqual([{ job_key: 'kept' }]);
  });

  test('the deletion of old keys goes on behind those of unended jobs that it has read', async () => {
    const { database, clock, submit, attempt } = await jobsWorld(engine);
    await submit({ jobKey: { ...replace, key: 'kept' }, timing: { delayMs: 9 * day } });
    clock.advance(minute);
    for (const key of ['a', 'b']) {
      const { id } = await submit({ jobKey: { ...replace, key } });
      await attempt(id, completed());
    }
    const [after, before] = [clock.now(), clock.now() + 1];
    const deleteOne = (from: number) =>
      database.write((tx) => deleteOldJobKeys(tx, { from, before }, 1));

    expect(await deleteOne(0)).toEqual({ deleted: 1, from: after });
    expect(await deleteOne(after)).toEqual({ deleted: 1, from: after });
    expect(await deleteOne(after)).toEqual({ deleted: 0, from: after });
  });
});
