/** Reservations compared with a reference model of the same calls: any order, over days and months. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import type { UsageOwnerKind } from '../../src/adapters/database/tables.ts';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { ApiKeys } from '../../src/core/api-keys/api-keys.ts';
import { Budgets } from '../../src/core/usage/budgets.ts';
import { charge, reserve } from '../../src/core/usage/reservations.ts';
import { costless, withoutPrice } from '../support/charges.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';
import { propertyRuns } from '../support/soak.ts';

const hourMs = 3_600_000;
const ownersAll = [
  { kind: 'agent', id: 'a' },
  { kind: 'agent', id: 'b' },
  { kind: 'api_key', id: 'a' },
  { kind: 'scheduled_job', id: 's' },
] as const satisfies { kind: UsageOwnerKind; id: string }[];
type Owner = (typeof ownersAll)[number];

interface Limits {
  readonly day: number | null;
  readonly month: number | null;
}

/** A call as the account keeps it; all numbers are tokens. */
interface Call {
  readonly owners: readonly Owner[];
  readonly at: number;
  readonly reserved: number;
  spent: number | null;
}

type Step =
  | {
      readonly kind: 'reserve';
      owners: readonly Owner[];
      prompt: number;
      output: number;
      /** Undefined for a call that needs its whole answer. */
      enough: number | undefined;
    }
  /** Of the calls under way, one; it uses a part of what it reserved, some of it perhaps unreported. */
  | { readonly kind: 'charge'; which: number; part: number; isReported: boolean }
  | { readonly kind: 'wait'; hours: number };

const limits = fc.record({
  day: fc.option(fc.integer({ min: 1, max: 600 })),
  month: fc.option(fc.integer({ min: 1, max: 1_500 })),
});
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('reserve' as const),
        owners: fc.subarray([...ownersAll], { minLength: 1 }),
        prompt: fc.integer({ min: 0, max: 150 }),
        output: fc.integer({ min: 1, max: 150 }),
        enough: fc.option(fc.integer({ min: 1, max: 150 }), { nil: undefined }),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('charge' as const),
        which: fc.nat(20),
        part: fc.double({ min: 0, max: 1, noNaN: true }),
        isReported: fc.boolean(),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('wait' as const), hours: fc.nat(80) }),
    },
  ),
  { maxLength: 60, size: 'max' },
);

const day = (at: number) => new Date(at).toISOString().slice(0, 10);
const month = (at: number) => new Date(at).toISOString().slice(0, 7);

/** What the budgets of these owners have used and hold back at a moment. */
function account(
  calls: readonly Call[],
  budgets: ReadonlyMap<Owner, Limits>,
  owners: readonly Owner[],
  now: number,
) {
  return owners.flatMap((owner) => {
    const { day: ofDay = null, month: ofMonth = null } = budgets.get(owner) ?? {};
    const its = calls.filter((call) => call.owners.includes(owner));
    const sums = (some: Call[]) => ({
      used: some.reduce((sum, { spent }) => sum + (spent ?? 0), 0),
      held: some.reduce((sum, { spent, reserved }) => sum + (spent === null ? reserved : 0), 0),
    });
    const today = { limit: ofDay, ...sums(its.filter(({ at }) => day(at) === day(now))) };
    const all = { limit: ofMonth, ...sums(its.filter(({ at }) => month(at) === month(now))) };
    return [today, all].flatMap(({ limit, ...sum }) => (limit === null ? [] : [{ limit, ...sum }]));
  });
}

/** What has to come of a call that needs its whole answer: the tokens that it may reserve, or why it may not. */
function expected(
  standings: ReturnType<typeof account>,
  { prompt, output }: { prompt: number; output: number },
): number | 'wait' | 'exceeded' {
  const needed = Math.max(1, prompt + Math.min(output, 16));
  if (standings.some(({ used, limit }) => limit - used < needed)) return 'exceeded';
  const left = Math.min(...standings.map(({ limit, used, held }) => limit - used - held));
  if (left >= prompt + output) return prompt + output;
  const isHeld = standings.some(
    ({ limit, used, held }) => limit - used - held < prompt + output && held > 0,
  );
  return isHeld ? 'wait' : left;
}

describe.each(await engines())('on $name', (engine) => {
  test('in any order, calls get what a reference model computes, and no budget is exceeded', async () => {
    const database = await engine.emptied();
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(limits, limits, limits, limits),
        steps,
        fc.constantFrom('2026-11-28T20:00:00.000Z', '2024-02-27T12:00:00.000Z'),
        async (limitsOf, script, start) => {
          runs += 1;
          await play(database, `org-${runs}`, limitsOf, script, start);
        },
      ),
      engine.name === 'SQLite' ? propertyRuns(60, 150) : propertyRuns(12, 25),
    );
  });
});

async function play(
  database: Database,
  organizationId: string,
  limitsOf: readonly Limits[],
  script: readonly Step[],
  start: string,
): Promise<void> {
  const clock = manualClock(start);
  const isThere = { find: async () => {}, lock: async () => {} };
  const limits = new Budgets(contextOf({ database, clock }), {
    agents: isThere,
    scheduledJobs: isThere,
    apiKeys: new ApiKeys(
      contextOf({ database, clock }),
      composeAgents(contextOf({ database, clock })).agents,
    ),
  });
  const budgets = new Map(ownersAll.map((owner, i) => [owner, limitsOf[i] as Limits]));
  for (const [owner, one] of budgets) {
    await limits.put(
      { ...owner, organizationId },
      { tokens_per_day: one.day, tokens_per_month: one.month },
    );
  }
  const calls: Call[] = [];
  const end = async (call: Call, part: number, isReported: boolean) => {
    const spent = Math.floor(call.reserved * part);
    const prompt = Math.floor(spent / 2);
    call.spent = spent;
    await database.write((tx) =>
      charge(tx, [
        {
          organizationId,
          owners: call.owners,
          reservedAt: call.at,
          reserved: call.reserved,
          usage: { prompt, completion: isReported ? spent - prompt : null },
          estimated: isReported ? 0 : spent - prompt,
          ...costless,
        },
      ]),
    );
  };

  for (const step of script) {
    if (step.kind === 'wait') clock.advance(step.hours * hourMs);
    if (step.kind === 'charge') {
      const underWay = calls.filter(({ spent }) => spent === null);
      const call = underWay[step.which % underWay.length];
      if (call !== undefined) await end(call, step.part, step.isReported);
    }
    if (step.kind === 'reserve') {
      const { owners, prompt, output, enough } = step;
      const now = clock.now();
      const due = expected(account(calls, budgets, owners, now), step);

      const answer = await database.write((tx) =>
        reserve(tx, { organizationId, owners, prompt, output, enough, ...withoutPrice }, now),
      );

      const came = answer.kind === 'granted' ? answer.reserved : answer.kind;
      if (enough === undefined) expect(came).toBe(due);
      else {
        // It is refused where the whole answer is, and waits at most where that one would.
        expect(came === 'exceeded').toBe(due === 'exceeded');
        if (came === 'wait') expect(due).toBe('wait');
      }
      if (answer.kind !== 'granted') continue;
      expect(answer.output).toBeLessThanOrEqual(output);
      expect(answer.output).toBeGreaterThanOrEqual(Math.min(output, 16));
      expect(answer.output).toBe(answer.reserved - prompt);
      calls.push({ owners, at: now, reserved: answer.reserved, spent: null });
      for (const { limit, used, held } of account(calls, budgets, owners, now)) {
        expect(used + held).toBeLessThanOrEqual(limit);
      }
    }
  }
  for (const call of calls) if (call.spent === null) await end(call, 1, true);

  const rows = await database.read.kysely
    .selectFrom('token_usage')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .execute();
  for (const row of rows) {
    const its = calls.filter(
      ({ owners, at }) =>
        day(at) === row.day &&
        owners.some(({ kind, id }) => kind === row.owner_kind && id === row.owner_id),
    );
    expect(row.reserved_tokens).toBe(0);
    expect(row.calls).toBe(its.length);
    expect(row.prompt_tokens + row.completion_tokens + row.estimated_tokens).toBe(
      its.reduce((sum, { spent }) => sum + (spent ?? 0), 0),
    );
  }
  const days = calls.flatMap(({ owners, at }) =>
    owners.map((owner) => `${owner.kind} ${owner.id} ${day(at)}`),
  );
  expect(rows).toHaveLength(new Set(days).size);
}
