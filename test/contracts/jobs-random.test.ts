/**
 * Random commands on jobs, in any order and concurrently: what is recorded agrees with
 * itself at every moment, no accepted job is lost, each ends once, and what has ended stays so.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RunOutcome } from '../../src/core/executors/run.ts';
import type { JobEvent } from '../../src/core/jobs/feed.ts';
import { PlatformError } from '../../src/kernel/errors.ts';
import { expectConsistent } from '../support/consistency.ts';
import { type Engine, engines } from '../support/databases.ts';
import { deadlocksIn } from '../support/deadlocks.ts';
import {
  completed,
  failed,
  jobsWorld,
  leaseMs,
  type Worker,
  waitEndsOf,
} from '../support/jobs-world.ts';
import type { ScriptedRun } from '../support/scripted-pool.ts';
import { propertyRuns } from '../support/soak.ts';
import { waitFor } from '../support/wait-for.ts';
import { anyWriter } from '../support/writers.ts';

const outcomes: readonly RunOutcome[] = [
  completed(),
  completed('a text'),
  failed(),
  failed({ retryable: false }),
  { kind: 'timeout', message: 'too late' },
  { kind: 'lost', message: 'it died' },
  { kind: 'displaced', suspect: true },
  { kind: 'displaced', suspect: false },
  { kind: 'aborted' },
];
const skills = ['echo', 'other', 'single'];
const triggers = ['api', 'scheduled', 'webhook'] as const;

const pick = fc.nat(1_000);
const command = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('accept' as const),
      skill: fc.nat(2),
      trigger: fc.nat(2),
      acme: fc.boolean(),
      key: fc.option(fc.record({ key: fc.constantFrom('a', 'b', 'c'), body: fc.nat(1) })),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('begin' as const), pick, worker: fc.nat(1) }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('end' as const), pick, outcome: fc.nat(8) }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('wait' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('end a wait' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('say' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('cancel' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('retry' as const), pick }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      ms: fc.constantFrom(10, 900, 2_000, leaseMs - 1, leaseMs, 60_000),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('renew' as const), worker: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('hand back' as const), worker: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), worker: fc.nat(1) }) },
);
type Command = typeof command extends fc.Arbitrary<infer C> ? C : never;

/** What a client may be told; anything else that is thrown is a fault. */
const refusals = ['job_not_cancellable', 'job_not_retryable'];
const unlessRefused = (error: unknown) => {
  if (!(error instanceof PlatformError && refusals.includes(error.code))) throw error;
};

/** Has a run ask for a wait; resolves when the wait is on record, or refused. */
async function askForWait(run: ScriptedRun, nth: number): Promise<void> {
  let isAnswered = false;
  const answered = () => {
    isAnswered = true;
  };
  run.ask('wait', { kind: 'sleep', name: 'nap', nth, ms: 2_000 }).then(answered, answered);
  await waitFor(() => isAnswered || run.suspensions > 0, { describe: 'the wait is on record' });
}

/** A world in which commands happen, and what was seen of it. */
async function stage(engine: Engine) {
  const world = await jobsWorld(engine);
  const stranger = await world.callerOf('acme');
  const workers: Worker[] = [world.worker('one'), world.worker('two')];
  const ids: string[] = [];
  const running: { run: ScriptedRun; ended: Promise<void> }[] = [];
  const firstAnswers = new Map<string, { id: string; body: number }>();
  const ends = new Map<string, string>();
  const heard = new Map<string, JobEvent[]>();
  const listening: Promise<void>[] = [];
  let processes = 2;

  function listen(id: string): void {
    const events: JobEvent[] = [];
    heard.set(id, events);
    listening.push(
      (async () => {
        for await (const event of world.stream(id)) events.push(event);
      })(),
    );
  }

  async function accept({ skill, trigger, acme, key }: Command & { do: 'accept' }): Promise<void> {
    const caller = acme ? stranger : world.caller;
    const acceptance = await world.accept({
      organizationId: caller.organizationId,
      apiKeyId: caller.keyId,
      agentId: 'default',
      userId: 'someone',
      triggerType: triggers[trigger] ?? 'api',
      skill: { category: 'test', name: skills[skill] ?? '', version: 'v1.0' },
      maxAttempts: 1 + skill,
      input: '{}',
      retryOf: null,
      ...(key === null
        ? {}
        : { idempotency: { owner: caller.keyId, key: key.key, fingerprint: `${key.body}` } }),
    });
    const name = key && `${caller.keyId} ${key.key}`;
    const first = name === null ? undefined : firstAnswers.get(name);
    if (acceptance.kind === 'accepted') {
      expect(first, 'a key is accepted once').toBeUndefined();
      const { id } = acceptance.job;
      if (name !== null) firstAnswers.set(name, { id, body: key?.body ?? 0 });
      ids.push(id);
      if (!acme && ids.length % 3 === 0) listen(id);
    } else if (acceptance.kind === 'replayed' && first !== undefined) {
      expect(acceptance.job.id).toBe(first.id);
      expect(key?.body).toBe(first.body);
    }
  }

  async function begin(id: string, { pool, perform }: Worker): Promise<void> {
    const ended = perform(id);
    const run = await pool.begun(id, ended);
    if (run !== null) running.push({ run, ended });
  }

  const waitEnds = waitEndsOf();

  async function act(one: Command): Promise<void> {
    const id = 'pick' in one ? ids[one.pick % Math.max(1, ids.length)] : undefined;
    const worker = 'worker' in one ? (workers[one.worker] as Worker) : undefined;
    switch (one.do) {
      case 'accept':
        return accept(one);
      case 'begin':
        if (id !== undefined && worker !== undefined) await begin(id, worker);
        return;
      case 'end': {
        const [taken] = running.splice(one.pick % Math.max(1, running.length), 1);
        if (taken === undefined) return;
        taken.run.end(outcomes[one.outcome] ?? completed());
        return taken.ended;
      }
      case 'wait': {
        const [taken] = running.splice(one.pick % Math.max(1, running.length), 1);
        if (taken === undefined) return;
        await askForWait(taken.run, one.pick);
        taken.run.end({ kind: 'waiting' });
        return taken.ended;
      }
      case 'end a wait': {
        if (id === undefined) return;
        const end = { job_id: id, n: 1, result: { value: 1 } };
        await world.database.write((tx) => waitEnds.endWaits(tx, [end], world.clock.now()));
        return;
      }
      case 'say':
        running[one.pick % Math.max(1, running.length)]?.run.report({
          type: 'progress',
          fraction: 1,
        });
        return;
      case 'cancel': {
        if (id === undefined) return;
        const { organization_id } = await world.row(id);
        await world.jobs.cancel(organization_id, id).catch(unlessRefused);
        return;
      }
      case 'retry': {
        if (id === undefined) return;
        const { organization_id } = await world.row(id);
        const caller = organization_id === 'acme' ? stranger : world.caller;
        const retried = await world.jobs.retry(caller, id).catch(unlessRefused);
        if (retried !== undefined) ids.push(retried.job.id);
        return;
      }
      case 'advance':
        return world.clock.advance(one.ms);
      case 'sweep':
        return world.recovery.sweep();
      case 'renew':
        return worker?.running.renewLeases();
      case 'hand back':
        return worker?.running.handBack();
      case 'crash':
        workers[one.worker] = world.worker(`process ${++processes}`);
        return;
    }
  }

  const rowsOf = () => world.database.read.kysely.selectFrom('jobs').selectAll().execute();

  /** All rows; what had ended before is as it was. */
  async function expectEndsKept(): Promise<Map<string, string>> {
    const rows = await rowsOf();
    expect(rows.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    for (const { cancel_requested_at: _, ...row } of rows) {
      if (row.finished_at === null) continue;
      const end = JSON.stringify(row);
      expect(end, `the end of ${row.id}`).toBe(ends.get(row.id) ?? end);
      ends.set(row.id, end);
    }
    return ends;
  }

  /** Lets everything come to its end, as a platform does that is left alone. */
  async function finish(): Promise<void> {
    const last = world.worker('last');
    await Promise.all(
      running.splice(0).map(({ run, ended }) => {
        run.end(completed());
        return ended;
      }),
    );
    for (let round = 0; round < 10; round++) {
      world.clock.advance(3_600_000);
      world.hints.length = 0;
      await world.recovery.sweep();
      const hinted = new Set(world.hints.map(({ organizationId }) => organizationId));
      const due = (await rowsOf()).filter(
        ({ organization_id, status, due_at }) =>
          hinted.has(organization_id) &&
          (status === 'queued' || status === 'waiting') &&
          Number(due_at) <= world.clock.now(),
      );
      await Promise.all(due.map(({ id }) => last.attempt(id, completed())));
    }
    await Promise.all(listening);
  }

  return { world, ids, heard, act, expectEndsKept, finish };
}

describe.each(await engines())('on $name', (engine) => {
  const runs = engine.name === 'SQLite' ? propertyRuns(40, 100) : propertyRuns(10, 20);

  test('any commands, several at a time', { timeout: 120_000 }, async () => {
    const groups = fc.array(fc.array(command, { minLength: 1, maxLength: 8 }), {
      minLength: 5,
      maxLength: 25,
    });
    await fc.assert(
      fc.asyncProperty(groups, async (all) => {
        const { world, ids, heard, act, expectEndsKept, finish } = await stage(engine);

        for (const group of all) {
          await Promise.all(group.map(act));
          await expectConsistent(world.database);
          await expectEndsKept();
        }
        await finish();

        await expectConsistent(world.database);
        const ends = await expectEndsKept();
        expect(ends.size, 'every accepted job has ended').toBe(ids.length);
        for (const [id, events] of heard) {
          const recorded: JobEvent[] = [];
          for await (const event of world.stream(id)) recorded.push(event);
          const states = (told: readonly JobEvent[]) =>
            told.filter(({ type }) => type === 'status');
          expect(states(events), `live and recorded, of ${id}`).toEqual(states(recorded));
        }
        await world.database.close();
      }),
      { ...runs, endOnFailure: true },
    );
  });

  test('many jobs of many kinds, accepted, run and cancelled concurrently', async () => {
    const place = await engine.place();
    const world = await jobsWorld(engine, { database: await place.open() });
    await Promise.all(['x', 'y', 'z'].map((id) => world.agents.create(anyWriter(), { id })));
    const workers = [world, world.worker('two'), world.worker('three')];
    const agents = ['x', 'z', 'y', 'default'];

    await Promise.all(
      Array.from({ length: 400 }, async (_, i) => {
        const job = await world.submit({
          agentId: agents[i % 4] ?? 'default',
          skill: { category: 'test', name: skills[(i * 7) % 3] ?? '', version: 'v1.0' },
          triggerType: triggers[(i * 5) % 3] ?? 'api',
        });
        if (i % 10 === 0) {
          await world.jobs.cancel('default', job.id).catch(unlessRefused);
          return;
        }
        const outcome = i % 7 === 0 ? failed({ retryable: false }) : completed();
        await Promise.all(
          workers.map((worker) =>
            worker.attempt(job.id, outcome, async (run) => {
              run.report({ type: 'progress', fraction: 0.5 });
              if (i % 5 === 0) await worker.running.renewLeases();
            }),
          ),
        );
      }),
    );

    await expectConsistent(world.database);
    const page = { limit: 1, offset: 0 };
    expect((await world.jobs.list('default', {}, page)).total).toBe(400);
    expect((await world.jobs.list('default', { status: 'queued' }, page)).total).toBe(0);
    expect((await world.jobs.list('default', { status: 'active' }, page)).total).toBe(0);
    await world.database.close();
    if (engine.name === 'PostgreSQL') expect(await deadlocksIn(place.at)).toBe(0);
  });
});
