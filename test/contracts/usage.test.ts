/** The token ledger on every database: reservations, charges, budgets and what is shown of them. */
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Database, Transaction } from '../../src/adapters/database/database.ts';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { ApiKeys } from '../../src/core/api-keys/api-keys.ts';
import { Budgets, renameUsageOfUser } from '../../src/core/usage/budgets.ts';
import { keyOf, type OwnerLookups } from '../../src/core/usage/owners.ts';
import {
  type Charge,
  charge,
  type ReservationRequest,
  reserve,
  type UsageOwner,
} from '../../src/core/usage/reservations.ts';
import { deleteBudget, setAsideUsage } from '../../src/core/usage/usage.store.ts';
import { deleteOldUsage, UsageLedger } from '../../src/core/usage/usage.ts';
import { notFound } from '../../src/kernel/errors.ts';
import { costless, withoutPrice } from '../support/charges.ts';
import { contextOf } from '../support/context.ts';
import { type Engine, engines } from '../support/databases.ts';
import { deadlocksIn } from '../support/deadlocks.ts';
import { manualClock } from '../support/manual-clock.ts';
import { waitFor } from '../support/wait-for.ts';

const organizationId = 'default';
const support = { kind: 'agent', id: 'support' } as const;
const key = { kind: 'api_key', id: 'the-key' } as const;
const nightly = { kind: 'scheduled_job', id: 'nightly' } as const;
const named = { ...support, organizationId };
const page = { limit: 50, offset: 0 };
const noTokens = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, estimated_tokens: 0 };

const postgres = (await engines()).find(({ name }) => name === 'PostgreSQL');

async function world(engine: Engine) {
  return worldOn(await engine.emptied());
}

function worldOn(database: Database) {
  const clock = manualClock('2026-11-21T12:00:00.000Z');
  const gone = new Set<string>();
  const answer = async (_organization: string, id: string) => {
    if (gone.has(id)) throw notFound('Owner');
  };
  const owners: OwnerLookups = {
    agents: { find: answer, lock: (_tx, organization, id) => answer(organization, id) },
    scheduledJobs: { find: answer, lock: (_tx, organization, id) => answer(organization, id) },
    apiKeys: new ApiKeys(
      contextOf({ database, clock }),
      composeAgents(contextOf({ database, clock })).agents,
    ),
  };
  const budgets = new Budgets(contextOf({ database, clock }), owners);
  const usage = new UsageLedger(contextOf({ database, clock }));
  const wanted = (fields: Partial<ReservationRequest> = {}): ReservationRequest => ({
    organizationId,
    owners: [support],
    prompt: 100,
    output: 100,
    ...withoutPrice,
    ...fields,
  });
  return {
    database,
    clock,
    gone,
    budgets,
    usage,
    reserve: (fields: Partial<ReservationRequest> = {}) =>
      database.write((tx) => reserve(tx, wanted(fields), clock.now())),
    /** Charges calls; what `fields` leave out is a call of `support` that used all that it reserved. */
    charge: (...charges: Partial<Charge>[]) =>
      database.write((tx) =>
        charge(
          tx,
          charges.map((fields) => ({
            organizationId,
            owners: [support],
            reservedAt: clock.now(),
            reserved: 200,
            usage: { prompt: 100, completion: 100 },
            estimated: 0,
            ...costless,
            ...fields,
          })),
        ),
      ),
    rows: () =>
      database.read.kysely
        .selectFrom('token_usage')
        .selectAll()
        .orderBy('owner_kind')
        .orderBy('owner_id')
        .orderBy('day')
        .execute(),
  };
}

describe.each(await engines())('on $name', (engine) => {
  test('a new agent starts without usage, and the days of the deleted one are kept', async () => {
    const { database, usage, reserve, charge } = await world(engine);
    for (const used of [200, 400]) {
      await reserve();
      await charge({});

      await database.write((tx) => setAsideUsage(tx, organizationId, support.id));

      const { today } = await usage.ofOwner(named, {});
      const { data } = await usage.list({}, {}, page);
      expect(today).toMatchObject({ used: 0, reserved: 0 });
      expect(data).toMatchObject([
        { owner_kind: 'deleted_agent', owner_id: support.id, total_tokens: used },
      ]);
    }
  });

  test('a call is counted for each of its owners as it begins, also without a budget', async () => {
    const { reserve, rows } = await world(engine);

    expect(await reserve({ owners: [nightly, key, support] })).toEqual({
      kind: 'granted',
      output: 100,
      reserved: 200,
      reservedCost: 0,
    });

    const row = { organization_id: 'default', day: '2026-11-21', calls: 1, reserved_tokens: 200 };
    expect(await rows()).toMatchObject([
      { ...row, owner_kind: 'agent', owner_id: 'support' },
      { ...row, owner_kind: 'api_key', owner_id: 'the-key' },
      { ...row, owner_kind: 'scheduled_job', owner_id: 'nightly' },
    ]);
  });

  test('an ended call is charged its usage, and reserves nothing more', async () => {
    const { reserve, charge, rows } = await world(engine);
    await reserve({ owners: [support, key] });

    await charge({ owners: [key, support], usage: { prompt: 90, completion: 25 } });

    const row = {
      prompt_tokens: 90,
      completion_tokens: 25,
      estimated_tokens: 0,
      reserved_tokens: 0,
      calls: 1,
      unreported_calls: 0,
    };
    expect(await rows()).toMatchObject([row, row]);
  });

  test('a call is charged on the day on which it began', async () => {
    const { clock, reserve, charge, rows } = await world(engine);
    const reservedAt = clock.now();
    await reserve();
    clock.advance(24 * 3_600_000);

    await charge({ reservedAt });

    expect(await rows()).toMatchObject([
      { day: '2026-11-21', prompt_tokens: 100, completion_tokens: 100, reserved_tokens: 0 },
    ]);
  });

  test('many calls are charged at once, each where it belongs', async () => {
    const { clock, reserve, charge, rows } = await world(engine);
    const first = clock.now();
    for (let i = 0; i < 3; i++) await reserve({ owners: [support, key] });
    clock.advance(24 * 3_600_000);
    await reserve({ owners: [support] });

    await charge(
      { owners: [support, key], reservedAt: first, usage: { prompt: 1, completion: 10 } },
      { owners: [support] },
      { owners: [key, support], reservedAt: first, usage: { prompt: 2, completion: 20 } },
      {
        owners: [support, key],
        reservedAt: first,
        usage: { prompt: 4, completion: null },
        estimated: 40,
      },
    );

    const early = { prompt_tokens: 7, completion_tokens: 30, estimated_tokens: 40, calls: 3 };
    const settled = { reserved_tokens: 0, unreported_calls: 1 };
    expect(await rows()).toMatchObject([
      { owner_id: 'support', day: '2026-11-21', ...early, ...settled },
      { owner_id: 'support', day: '2026-11-22', prompt_tokens: 100, calls: 1 },
      { owner_id: 'the-key', day: '2026-11-21', ...early, ...settled },
    ]);
  });

  describe('a budget', () => {
    test('that is used up refuses the call, which leaves no trace', async () => {
      const { budgets, reserve, charge, rows } = await world(engine);
      await budgets.put(named, { tokens_per_day: 200 });
      await reserve();
      await charge({});
      const before = await rows();

      expect(await reserve({ owners: [nightly, support] })).toEqual({
        kind: 'exceeded',
        message: 'The agent support has used 200 of its 200 tokens for 2026-11-21 (UTC)',
      });
      expect(await rows()).toEqual(before);
    });

    test('that calls under way hold back lets the call wait, which leaves no trace', async () => {
      const { budgets, reserve, charge, rows } = await world(engine);
      await budgets.put(named, { tokens_per_day: 399 });
      await reserve();
      const before = await rows();

      expect(await reserve({ owners: [support, key] })).toMatchObject({ kind: 'wait' });
      expect(await rows()).toEqual(before);

      await charge({});
      expect(await reserve({ owners: [support, key] })).toEqual({
        kind: 'granted',
        output: 99,
        reserved: 199,
        reservedCost: 0,
      });
      expect((await rows()).map((row) => row.reserved_tokens)).toEqual([199, 199]);
    });

    test('of a day starts again with each day, in UTC', async () => {
      const { budgets, clock, reserve, charge } = await world(engine);
      await budgets.put(named, { tokens_per_day: 200 });
      await reserve();
      await charge({});

      clock.advance(12 * 3_600_000 - 1);
      expect(await reserve()).toMatchObject({ kind: 'exceeded' });
      clock.advance(1);
      expect(await reserve()).toMatchObject({ kind: 'granted' });
    });

    test('of a month counts all of its days and none of another', async () => {
      const { budgets, clock, reserve, charge } = await world(engine);
      await budgets.put(named, { tokens_per_month: 400 });
      for (const day of ['2026-10-31', '2026-11-01', '2026-11-30']) {
        clock.jumpTo(Date.parse(day));
        expect(await reserve()).toMatchObject({ kind: 'granted', reserved: 200 });
        await charge({});
      }

      expect(await reserve()).toMatchObject({
        kind: 'exceeded',
        message: 'The agent support has used 400 of its 400 tokens for 2026-11 (UTC)',
      });
      clock.jumpTo(Date.parse('2026-12-01'));
      expect(await reserve()).toMatchObject({ kind: 'granted' });
    });

    test('of any owner limits the call, the scarcest most', async () => {
      const { budgets, reserve } = await world(engine);
      await budgets.put(named, { tokens_per_day: 1_000, tokens_per_month: 180 });
      await budgets.put({ ...key, organizationId }, { tokens_per_day: 150 });
      await budgets.put({ ...nightly, organizationId }, { tokens_per_day: 160 });

      expect(await reserve({ owners: [nightly, support, key] })).toMatchObject({ reserved: 150 });
    });

    test('limits neither another owner nor one of the same id elsewhere', async () => {
      const { budgets, reserve } = await world(engine);
      await budgets.put(named, { tokens_per_day: 1 });

      const others: Partial<ReservationRequest>[] = [
        { owners: [{ kind: 'scheduled_job', id: 'support' }] },
        { owners: [{ kind: 'agent', id: 'other' }] },
        { organizationId: 'other' },
        { owners: [] },
      ];
      for (const other of others) expect(await reserve(other)).toMatchObject({ kind: 'granted' });
      expect(await reserve()).toMatchObject({ kind: 'exceeded' });
    });

    test('counts estimated and reported tokens alike', async () => {
      const { budgets, reserve, charge } = await world(engine);
      await budgets.put(named, { tokens_per_day: 400 });
      await reserve();

      await charge({ usage: { prompt: null, completion: null }, estimated: 170 });

      expect(await reserve({ output: 300 })).toMatchObject({ reserved: 230 });
    });

    test('that is set, changed or deleted while calls are under way counts from the next one on', async () => {
      const { budgets, reserve } = await world(engine);
      await reserve();

      await budgets.put(named, { tokens_per_day: 300 });
      expect(await reserve()).toMatchObject({ kind: 'wait' });
      await budgets.put(named, { tokens_per_day: 400 });
      expect(await reserve()).toMatchObject({ kind: 'granted' });
      await budgets.put(named, { tokens_per_day: 1 });
      expect(await reserve()).toMatchObject({ kind: 'exceeded' });
      await budgets.put(named, {});
      expect(await reserve()).toMatchObject({ kind: 'granted' });
      await budgets.put(named, { tokens_per_month: 1 });
      await budgets.remove(named);
      expect(await reserve()).toMatchObject({ kind: 'granted' });
    });

    test('is reserved as in the example of docs/usage.md', async () => {
      const { budgets, usage, reserve, charge } = await world(engine);
      await budgets.put(named, { tokens_per_day: 1_000 });
      const wanted = { prompt: 200, output: 300 };
      const now = async () => {
        const { used, reserved, left } = (await usage.ofOwner(named, {})).today;
        return [used, reserved, left];
      };

      expect(await reserve(wanted)).toMatchObject({ kind: 'granted', output: 300 });
      expect(await reserve(wanted)).toMatchObject({ kind: 'granted', output: 300 });
      expect(await now()).toEqual([0, 1_000, 0]);
      expect(await reserve(wanted)).toMatchObject({ kind: 'wait' });
      await charge({ reserved: 500, usage: { prompt: 210, completion: 90 } });
      expect(await reserve(wanted)).toMatchObject({ kind: 'wait' });
      expect(await now()).toEqual([300, 500, 200]);
      await charge({ reserved: 500, usage: { prompt: null, completion: null }, estimated: 500 });
      expect(await reserve(wanted)).toMatchObject({ kind: 'exceeded' });
      expect(await now()).toEqual([800, 0, 200]);
      const fourth = await reserve({ prompt: 100, output: 300 });
      expect(fourth).toMatchObject({ kind: 'granted', output: 100 });
      expect(await now()).toEqual([800, 200, 0]);
    });

    test('in money is reserved and charged as one in tokens is, beside it', async () => {
      const { budgets, usage, reserve, charge } = await world(engine);
      await budgets.put(named, { tokens_per_day: 10_000, usd_per_day: 0.001, usd_per_month: 5 });
      // 100 × 1,000 and 100 × 4,000 nano-dollars.
      const usd = 1_000_000_000;
      const rates = { input: usd, cache_read: usd, cache_write: usd };
      const price = { ...rates, output: 4 * usd, reasoning: 4 * usd };
      const now = async () => {
        const { used_usd, reserved_usd, left_usd } = (await usage.ofOwner(named, {})).today;
        return [used_usd, reserved_usd, left_usd];
      };
      const whole = { kind: 'granted', output: 100, reserved: 200, reservedCost: 500_000 };

      expect(await reserve({ price })).toEqual(whole);
      expect(await reserve({ price })).toEqual(whole);
      expect(await now()).toEqual([0, 0.001, 0]);
      expect(await reserve({ price })).toMatchObject({ kind: 'wait' });
      const spent = { reservedCost: 500_000, cost: 140_000, estimatedCost: 0 };
      await charge(spent, { ...spent, cost: null, estimatedCost: 260_001, isPriced: true });
      expect(await now()).toEqual([0.000400001, 0, 0.000599999]);
      await reserve({ price });
      const short = await reserve({ price, owners: [key, support] });
      expect(short).toMatchObject({ kind: 'wait' });
      await charge({ ...spent, cost: 400_000 });
      expect(await reserve({ price })).toMatchObject({
        kind: 'granted',
        output: 24,
        reservedCost: 196_000,
      });
      expect(await reserve({ price: null })).toMatchObject({
        kind: 'unpriced',
        message: expect.stringContaining('the price of the model a/model is not known'),
      });
      const { limits, month } = await usage.ofOwner(named, {});
      expect(limits).toMatchObject({
        tokens_per_day: 10_000,
        usd_per_day: 0.001,
        usd_per_month: 5,
      });
      expect(month).toMatchObject({ used_usd: 0.000800001, reserved_usd: 0.000196, limit_usd: 5 });
    });

    test('is deleted with its owner, and the usage is kept', async () => {
      const { database, budgets, reserve, charge, rows } = await world(engine);
      await budgets.put(named, { tokens_per_day: 1 });
      await budgets.put({ ...nightly, organizationId }, { tokens_per_day: 1 });
      await budgets.put({ ...key, organizationId }, { tokens_per_day: 500 });
      await reserve({ owners: [key] });
      await charge({ owners: [key] });

      await database.write((tx) => deleteBudget(tx, organizationId, keyOf(support)));

      expect(await budgets.get(named)).toMatchObject({ tokens_per_day: null, updated_at: null });
      expect(await budgets.get({ ...key, organizationId })).toMatchObject({ tokens_per_day: 500 });
      expect(await budgets.get({ ...nightly, organizationId })).toMatchObject({
        tokens_per_day: 1,
      });
      expect(await rows()).toHaveLength(1);
    });

    test('is not set for an owner that is deleted meanwhile', async () => {
      const { database, budgets, gone } = await world(engine);

      const put = budgets.put(named, { tokens_per_day: 1 });
      gone.add('support');

      await expect(put).rejects.toMatchObject({ code: 'not_found' });
      const rows = await database.read.kysely.selectFrom('token_budgets').selectAll().execute();
      expect(rows).toEqual([]);
    });
  });

  describe('calls that begin at once', () => {
    /** Owners in many orders, all of them with the same key. */
    const ownersOf = (i: number): UsageOwner[] => {
      const owners = [support, { kind: 'agent', id: `a-${i % 5}` } as const, key, nightly];
      const from = i % owners.length;
      const rotated = [...owners.slice(from), ...owners.slice(0, from)];
      return i % 2 === 0 ? rotated : rotated.toReversed();
    };

    test('never get more than is left, from any number of processes', async () => {
      const place = await engine.place();
      const first = worldOn(await place.open());
      // SQLite is for one process.
      const second = engine.name === 'SQLite' ? first : worldOn(await place.open());
      await first.budgets.put({ ...key, organizationId }, { tokens_per_day: 2_050 });

      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, i) =>
          (i % 2 === 0 ? first : second).reserve({ owners: ownersOf(i) }),
        ),
      );

      const granted = answers.filter(({ kind }) => kind === 'granted');
      expect(granted).toHaveLength(10);
      expect(answers.filter(({ kind }) => kind === 'wait')).toHaveLength(50);
      const held = (await first.rows()).filter(({ owner_id }) => owner_id === 'the-key');
      expect(held).toMatchObject([{ reserved_tokens: 2_000, calls: 10 }]);
      await first.database.close();
      await second.database.close();
      if (engine.name === 'PostgreSQL') expect(await deadlocksIn(place.at)).toBe(0);
    });

    test('and calls that end meanwhile leave sums that are exact, and wait for each other in no circle', async () => {
      const place = await engine.place();
      const { database, budgets, clock, rows } = worldOn(await place.open());
      await budgets.put({ ...key, organizationId }, { tokens_per_day: 1e15 });
      await budgets.put(named, { tokens_per_month: 1e15 });
      const call = (i: number) =>
        ({
          organizationId,
          owners: ownersOf(i),
          reservedAt: clock.now(),
          reserved: 200,
          usage: { prompt: 10, completion: 5 },
          estimated: 0,
          ...costless,
        }) satisfies Charge;
      const wanted = (i: number) => ({
        organizationId,
        owners: ownersOf(i),
        prompt: 100,
        output: 100,
        ...withoutPrice,
      });
      await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          database.write((tx) => reserve(tx, wanted(i), clock.now())),
        ),
      );

      await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          database.write(async (tx) => {
            await charge(tx, [call(i)]);
            if (i % 2 === 0) await reserve(tx, wanted(i), clock.now());
          }),
        ),
      );

      const [ofKey] = (await rows()).filter(({ owner_id }) => owner_id === 'the-key');
      expect(ofKey).toMatchObject({
        prompt_tokens: 400,
        completion_tokens: 200,
        reserved_tokens: 4_000,
        calls: 60,
      });
      await database.close();
      if (engine.name === 'PostgreSQL') expect(await deadlocksIn(place.at)).toBe(0);
    });
  });

  describe('what is shown', () => {
    test('is the usage of today, of this month and of the requested days, newest first', async () => {
      const { budgets, usage, clock, reserve, charge } = await world(engine);
      await budgets.put(named, { tokens_per_day: 1_000, tokens_per_month: 450 });
      for (const day of ['2026-09-30', '2026-10-31', '2026-11-02', '2026-11-05']) {
        clock.jumpTo(Date.parse(day));
        await reserve({ prompt: 10, output: 100 });
        await charge({ reserved: 110, usage: { prompt: 9, completion: 50 } });
      }
      await reserve({ prompt: 10, output: 100 });

      const day = {
        prompt_tokens: 9,
        completion_tokens: 50,
        total_tokens: 59,
        estimated_tokens: 0,
        calls: 1,
        unreported_calls: 0,
      };
      expect(await usage.ofOwner(named, {})).toMatchObject({
        agent_id: 'support',
        from: '2026-10-07',
        to: '2026-11-05',
        limits: { tokens_per_day: 1_000, tokens_per_month: 450 },
        today: { used: 59, reserved: 110, limit: 1_000, left: 831 },
        month: { used: 118, reserved: 110, limit: 450, left: 222 },
        days: [
          { day: '2026-11-05', ...day, calls: 2 },
          { day: '2026-11-02', ...day },
          { day: '2026-10-31', ...day },
        ],
      });
      const { days } = await usage.ofOwner(named, { from: '2026-09-30', to: '2026-10-31' });
      expect(days.map((one) => one.day)).toEqual(['2026-10-31', '2026-09-30']);
    });

    test('has no limits without a budget, and no days without calls', async () => {
      const { usage } = await world(engine);
      const nothing = { used: 0, reserved: 0, limit: null, left: null };

      expect(await usage.ofOwner({ ...key, organizationId }, {})).toMatchObject({
        api_key_id: 'the-key',
        from: '2026-10-23',
        to: '2026-11-21',
        limits: { tokens_per_day: null, tokens_per_month: null },
        today: nothing,
        month: nothing,
        days: [],
      });
    });

    test('never has negative tokens left', async () => {
      const { budgets, usage, reserve, charge } = await world(engine);
      await reserve();
      await charge({});
      await budgets.put(named, { tokens_per_day: 150 });

      const { today } = await usage.ofOwner(named, {});
      expect(today).toMatchObject({ used: 200, reserved: 0, limit: 150, left: 0 });
    });

    const unknown = { prompt: null, completion: null };
    test.each([
      ['one that reported all', [{ prompt: 3, completion: 4 }], [3, 4, 7]],
      ['one that used nothing', [{ prompt: 0, completion: 0 }], [0, 0, 0]],
      ['one that reported nothing', [unknown], [null, null, null]],
      ['two that reported nothing', [unknown, unknown], [null, null, null]],
      ['one that did not report its answer', [{ prompt: 3, completion: null }], [3, null, 3]],
      ['one that reported all and one nothing', [{ prompt: 3, completion: 4 }, unknown], [3, 4, 7]],
    ] as const)('of %s is what is known, null where that is nothing', async (_, usages, sums) => {
      const { usage, reserve, charge } = await world(engine);
      for (const one of usages) {
        await reserve();
        await charge({ usage: one, estimated: one.completion === null ? 20 : 0 });
      }

      const { days, today } = await usage.ofOwner(named, {});
      const [prompt_tokens, completion_tokens, total_tokens] = sums;
      const unreported = usages.filter(({ completion }) => completion === null).length;
      expect(days).toMatchObject([
        {
          day: '2026-11-21',
          prompt_tokens,
          completion_tokens,
          total_tokens,
          estimated_tokens: unreported * 20,
          calls: usages.length,
          unreported_calls: unreported,
        },
      ]);
      expect(today.used).toBe((total_tokens ?? 0) + unreported * 20);
    });

    test.each([
      ['priced calls is their sum', [{ cost: 5 }, { cost: 7 }], 12e-9, false],
      ['a call without a price is unknown', [{ cost: null, isPriced: false }], null, true],
      [
        'calls with and without a price is partial',
        [{ cost: 5 }, { cost: null, isPriced: false }],
        5e-9,
        true,
      ],
      [
        'a call that was not fully reported is partial',
        [{ cost: 5, usage: { prompt: 1, completion: null } }],
        5e-9,
        true,
      ],
    ] as const)('as the cost of %s', async (_, charges, cost_usd, cost_is_partial) => {
      const { usage, reserve, charge } = await world(engine);
      for (const one of charges) {
        await reserve();
        await charge(one);
      }

      const { days } = await usage.ofOwner(named, {});
      expect(days).toMatchObject([{ cost_usd, cost_is_partial }]);
    });

    test('counts calls of users and skills when they have ended', async () => {
      const { usage, reserve, charge } = await world(engine);
      const counted = [
        { kind: 'user', id: 'ada' },
        { kind: 'skill', id: 'text/v1.0/summarize' },
      ] as const;
      await reserve();
      expect((await usage.list({ owner_kind: 'user' }, {}, page)).data).toEqual([]);
      await charge({ counted, cost: 3 });

      for (const { kind, id } of counted) {
        const { data } = await usage.list({ owner_kind: kind, owner_id: id }, {}, page);
        expect(data).toMatchObject([
          { owner_kind: kind, owner_id: id, calls: 1, total_tokens: 200, cost_usd: 3e-9 },
        ]);
      }
    });

    test('of an erased user is counted for another id, beside what is counted there', async () => {
      const { database, usage, reserve, charge } = await world(engine);
      const of = (id: string) => ({ counted: [{ kind: 'user', id }] as const, cost: 3 });
      for (const id of ['ada', 'ada', 'erased', 'bob']) {
        await reserve();
        await charge(of(id));
      }

      const rename = (tx: Transaction) => renameUsageOfUser(tx, organizationId, 'ada', 'erased');
      await database.write(rename);
      await database.write(rename);

      const { data } = await usage.list({ owner_kind: 'user' }, {}, page);
      expect(data).toMatchObject([
        { owner_id: 'bob', calls: 1, total_tokens: 200 },
        { owner_id: 'erased', calls: 3, total_tokens: 600, cost_usd: 9e-9 },
      ]);
    });

    test('of active calls beside one without a report is not zero', async () => {
      const { usage, reserve, charge } = await world(engine);
      await reserve();
      await reserve();
      await charge({ usage: unknown, estimated: 5 });

      const { days } = await usage.ofOwner(named, {});
      expect(days).toMatchObject([{ total_tokens: null, calls: 2, unreported_calls: 1 }]);
    });

    test('to the administrator is every owner’s, a page at a time, with its limits', async () => {
      const { budgets, usage, clock, reserve } = await world(engine);
      await budgets.put(named, { tokens_per_day: 5_000 });
      await reserve({ owners: [support, key] });
      await reserve({ organizationId: 'another' });
      clock.advance(24 * 3_600_000);
      await reserve();

      const row = { organization_id: 'default', calls: 1, unreported_calls: 0, ...noTokens };
      const unlimited = { tokens_per_day: null, tokens_per_month: null };
      const limited = { tokens_per_day: 5_000, tokens_per_month: null };
      const agent = { owner_kind: 'agent', owner_id: 'support' };
      const all = [
        { ...row, ...agent, day: '2026-11-22', ...limited },
        { ...row, ...agent, organization_id: 'another', day: '2026-11-21', ...unlimited },
        { ...row, ...agent, day: '2026-11-21', ...limited },
        { ...row, owner_kind: 'api_key', owner_id: 'the-key', day: '2026-11-21', ...unlimited },
      ];
      expect(await usage.list({}, {}, page)).toMatchObject({ data: all, total: 4 });
      const second = await usage.list({}, {}, { limit: 2, offset: 1 });
      expect(second).toMatchObject({ data: all.slice(1, 3), total: 4 });
      const ofDay = await usage.list({}, { from: '2026-11-22' }, page);
      expect(ofDay).toMatchObject({ data: all.slice(0, 1), total: 1 });
      const ofKind = await usage.list({ owner_kind: 'api_key' }, {}, page);
      expect(ofKind).toMatchObject({ data: all.slice(3), total: 1 });
      const elsewhere = await usage.list({ organization_id: 'another' }, {}, page);
      expect(elsewhere).toMatchObject({ data: all.slice(1, 2), total: 1 });
    });
  });

  test('any number of old days is deleted', async () => {
    const { database, clock, reserve, rows } = await world(engine);
    clock.jumpTo(Date.parse('2025-10-16'));
    const many = Array.from(
      { length: 1_500 },
      (_, i) => ({ kind: 'agent', id: `a-${i}` }) as const,
    );
    await reserve({ owners: many });
    clock.jumpTo(Date.parse('2025-10-17'));
    await reserve();
    clock.jumpTo(Date.parse('2026-11-21T12:00:00.000Z'));
    await reserve();

    expect(await deleteOldUsage({ database, clock })).toBe(1_500);
    expect((await rows()).map(({ day }) => day)).toEqual(['2025-10-17', '2026-11-21']);
    clock.advance(24 * 3_600_000);
    expect(await deleteOldUsage({ database, clock })).toBe(1);
  });
});

describe.skipIf(!postgres)('a call that begins while another one’s is being recorded', () => {
  /** What becomes of it, by what `meanwhile` does; the other one reserves 200 tokens of `support`. */
  async function secondOf(
    { database, clock }: ReturnType<typeof worldOn>,
    second: { now: number },
    meanwhile: () => Promise<unknown> = async () => {},
  ) {
    const wanted = { organizationId, owners: [support], prompt: 100, output: 100, ...withoutPrice };
    const begun = Promise.withResolvers<void>();
    const commit = Promise.withResolvers<void>();
    onTestFinished(() => commit.resolve());
    const first = database.write(async (tx) => {
      const answer = await reserve(tx, wanted, clock.now());
      begun.resolve();
      await commit.promise;
      return answer;
    });
    await begun.promise;
    await meanwhile();
    let isAnswered = false;
    const answer = database
      .write((tx) => reserve(tx, wanted, second.now))
      .finally(() => {
        isAnswered = true;
      });
    await waitFor(async () => isAnswered || (await isAnyoneBlocked(database)), {
      describe: 'the second call waits for the first',
    });
    commit.resolve();
    expect(await first).toMatchObject({ kind: 'granted' });
    return answer;
  }

  test('sees what that reserves', async () => {
    const there = await world(postgres!);
    await there.budgets.put(named, { tokens_per_day: 300 });

    expect(await secondOf(there, { now: there.clock.now() })).toMatchObject({ kind: 'wait' });
  });

  test('sees what that reserves from its month, also on the next day', async () => {
    const there = await world(postgres!);
    await there.budgets.put(named, { tokens_per_month: 300 });

    const tomorrow = there.clock.now() + 24 * 3_600_000;
    expect(await secondOf(there, { now: tomorrow })).toMatchObject({ kind: 'wait' });
  });

  test('sees what that reserves, also when the budget is set only now', async () => {
    const there = await world(postgres!);

    const answer = await secondOf(there, { now: there.clock.now() }, () =>
      there.budgets.put(named, { tokens_per_day: 300 }),
    );
    expect(answer).toMatchObject({ kind: 'wait' });
  });
});

/** Whether a session of the database waits for what another one has locked. */
async function isAnyoneBlocked({ read }: Database): Promise<boolean> {
  const { rows } = await sql`
    select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(read.kysely);
  return rows.length > 0;
}
