/** The last calls of triggers on every database: how many are kept, for how long, and what a flood costs. */
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { newId } from '../../src/kernel/ids.ts';
import { deleteCallsOf } from '../../src/platform/triggers/calls.store.ts';
import { type EndedCall, TriggerCalls } from '../../src/platform/triggers/calls.ts';
import { deleteTrigger, insertTrigger } from '../../src/platform/triggers/triggers.store.ts';
import { serviceUnavailable } from '../support/broken-database.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';

const dayMs = 86_400_000;
const all = { limit: 200, offset: 0 };

describe.each(await engines())('on $name', (engine) => {
  /** Two processes that share a database; on SQLite two sets of verbs in one. */
  async function world() {
    const clock = manualClock();
    const place = await engine.emptiedPlace();
    const database = await place.open();
    const other = engine.name === 'SQLite' ? database : await place.open();
    let broken: Error | null = null;
    const breakable: Database = {
      ...database,
      read: database.read,
      write: (unit) => (broken === null ? database.write(unit) : Promise.reject(broken)),
    };
    const calls = new TriggerCalls(contextOf({ database: breakable, clock }));
    return {
      clock,
      database,
      calls,
      elsewhere: new TriggerCalls(contextOf({ database: other, clock })),
      breakWith(error: Error | null) {
        broken = error;
      },
      /** A new trigger's id. */
      async trigger(): Promise<string> {
        const id = newId();
        const row = {
          ...{ organization_id: 'default', api_key_id: 'key', agent_id: 'default', name: 'Pushes' },
          ...{ skill_category: 'test', skill_name: 'echo', skill_version: 'v1.0', input: '{}' },
          ...{
            mapping: null,
            event_name: null,
            event_key_mapping: null,
            job_key: null,
            priority: null,
            rate_limit: 60,
            signing_secret: null,
            secret_sealed: 0,
            active: 1,
            token_hash: id,
          },
          ...{ created_at: clock.now(), updated_at: clock.now() },
        };
        await database.write((tx) => insertTrigger(tx, { id, ...row }));
        return id;
      },
      call(triggerId: string, more: Partial<EndedCall> = {}): string {
        const id = newId();
        calls.record({ ...ended(id, triggerId, clock.now()), ...more });
        return id;
      },
      rows: () => database.read.kysely.selectFrom('trigger_calls').selectAll().execute(),
    };
  }

  const ended = (id: string, triggerId: string, receivedAt: number): EndedCall => ({
    id,
    triggerId,
    receivedAt,
    durationMs: 3,
    status: 202,
    error: null,
    message: null,
    jobId: null,
    eventId: null,
    isReplay: false,
    bodyBytes: 2,
  });

  test('are there once they were written, and are written once', async () => {
    const { calls, call, trigger, rows } = await world();
    const id = await trigger();
    const ids = [call(id), call(id, { bodyBytes: null, isReplay: true })];

    expect((await calls.list(id, all)).total).toBe(0);
    await calls.flush();
    await calls.flush();

    const { data: found, total } = await calls.list(id, all);
    expect(total).toBe(2);
    expect(found.map((one) => one.id)).toEqual(ids.toReversed());
    expect(found[0]).toMatchObject({ body_bytes: null, replayed: true });
    expect(await rows()).toHaveLength(2);
  });

  test('of each trigger the last 200 are kept, however they came', async () => {
    const { calls, call, elsewhere, trigger, clock, rows } = await world();
    const [busy, quiet] = [await trigger(), await trigger()];
    const early = call(quiet);
    let last: string[] = [];
    for (let i = 0; i < 3; i++) {
      last = Array.from({ length: 150 }, () => call(busy));
      await calls.flush();
    }
    const flood = Array.from({ length: 1_000 }, () => newId());
    for (const id of flood) elsewhere.record(ended(id, busy, clock.now()));
    last = [call(busy)];
    await Promise.all([calls.flush(), elsewhere.flush()]);

    const { data: found, total } = await calls.list(busy, all);

    expect(total).toBe(200);
    expect(found.map((one) => one.id)).toEqual([...flood.slice(-199), ...last].toReversed());
    expect((await calls.list(quiet, all)).data.map((one) => one.id)).toEqual([early]);
    expect(await rows()).toHaveLength(201);
  });

  test('a flood of many triggers costs its own calls, and not those of others', async () => {
    const { calls, call, trigger, rows } = await world();
    const quiet = await trigger();
    const busy: string[] = [];
    for (let i = 0; i < 30; i++) busy.push(await trigger());
    const early = call(quiet);
    for (let i = 0; i < 300; i++) for (const id of busy) call(id);
    const late = call(quiet);

    await calls.flush();

    expect(await rows()).toHaveLength(5_000);
    const { data: found } = await calls.list(quiet, all);
    expect(found.map((one) => one.id)).toEqual([late]);
    expect(early).not.toBe(late);
    for (const id of busy) {
      expect((await calls.list(id, all)).total).toBeGreaterThan(100);
    }
  });

  test('while the database is away they wait for it, within the bound', async () => {
    const { calls, call, trigger, breakWith } = await world();
    const id = await trigger();
    const before = Array.from({ length: 150 }, () => call(id));
    breakWith(serviceUnavailable());
    await expect(calls.flush()).rejects.toMatchObject({ code: 'service_unavailable' });
    const after = Array.from({ length: 100 }, () => call(id));
    await expect(calls.flush()).rejects.toMatchObject({ code: 'service_unavailable' });
    breakWith(null);

    await calls.flush();

    const { data: found } = await calls.list(id, all);
    expect(found.map((one) => one.id)).toEqual([...before.slice(-100), ...after].toReversed());
  });

  test('a call that cannot be written for another reason does not stop the following ones', async () => {
    const { calls, call, trigger, breakWith } = await world();
    const id = await trigger();
    call(id);
    breakWith(new Error('no such luck'));
    await expect(calls.flush()).rejects.toThrow('no such luck');
    breakWith(null);
    const next = call(id);

    await calls.flush();

    expect((await calls.list(id, all)).data.map((one) => one.id)).toEqual([next]);
  });

  test('calls of a trigger that was deleted meanwhile are not written', async () => {
    const { calls, call, trigger, database, rows } = await world();
    const [gone, there] = [await trigger(), await trigger()];
    call(gone);
    const kept = call(there);

    await Promise.all([
      database.write(async (tx) => {
        await deleteTrigger(tx, 'default', gone);
        await deleteCallsOf(tx, gone);
      }),
      calls.flush(),
    ]);
    call(gone);
    await calls.flush();

    expect((await rows()).map(({ id }) => id)).toEqual([kept]);
  });

  test('after 7 days they are not shown, and then deleted', async () => {
    const { calls, call, elsewhere, trigger, clock, rows } = await world();
    const id = await trigger();
    for (let i = 0; i < 120; i++) call(id);
    await calls.flush();
    clock.advance(6 * dayMs);
    const young = call(id);
    await calls.flush();
    expect((await calls.list(id, all)).total).toBe(121);
    expect(await calls.deleteOld()).toBe(0);
    clock.advance(dayMs + 1);

    expect((await calls.list(id, all)).data.map((one) => one.id)).toEqual([young]);
    await Promise.all([calls.deleteOld(), elsewhere.deleteOld()]);

    expect((await rows()).map((row) => row.id)).toEqual([young]);
  });

  test('a message is cut, and characters that a database cannot store are replaced', async () => {
    const { calls, call, trigger } = await world();
    const id = await trigger();
    call(id, { message: `a\0b\ud800${'🔑'.repeat(400)}` });

    await calls.flush();

    const [one] = (await calls.list(id, all)).data;
    expect(one?.message).toMatch(/^a\ufffdb\ufffd🔑/);
    expect(one?.message?.length).toBeLessThanOrEqual(500);
    expect(one?.message?.isWellFormed()).toBe(true);
  });
});
