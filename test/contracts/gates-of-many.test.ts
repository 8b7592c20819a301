/** Gates at which thousands of jobs wait: what a place costs that becomes free, and whose it is. */
import { CompiledQuery, sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Statement } from '../../src/adapters/database/statement.ts';
import { lockGates } from '../../src/core/jobs/gates/gate-locks.ts';
import { findNextOrganization } from '../../src/core/jobs/gates/places.store.ts';
import { limitOfOrganization } from '../../src/core/limits/limit-names.ts';
import { engines } from '../support/databases.ts';
import { completed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';

const gate = limitOfOrganization('default');

describe.each(await engines())('on $name', (engine) => {
  async function worldWith(places: number) {
    const world = await jobsWorld(engine);
    const gates = world.settler.parts.places;
    await gates.setPlaces(gate, places);
    return { world, gates };
  }
  const accept = async (world: JobsWorld, count: number, fields = {}) => {
    const accepted = await world.database.write((tx) =>
      world.acceptor.acceptWithin(
        tx,
        Array.from({ length: count }, () => world.request(fields)),
      ),
    );
    return accepted.map((one) => (one as { job: { id: string } }).job.id);
  };
  const held = async ({ database }: JobsWorld) => {
    const { kysely } = database.read;
    const rows = await kysely.selectFrom('jobs').select('id').where('held_by', '=', gate).execute();
    return new Set(rows.map(({ id }) => id));
  };

  test('where one organization waits alone, each of its jobs counts as a turn, and one of eight is of a lower priority', async () => {
    const { world, gates } = await worldWith(0);
    const low = await accept(world, 40, { priority: 2 });
    const normal = await accept(world, 80, { priority: 1 });

    await gates.setPlaces(gate, 1);
    await gates.setPlaces(gate, 64);

    const waiting = await held(world);
    const gone = (ids: readonly string[]) => ids.filter((id) => !waiting.has(id));
    expect(gone(low).length).toBeGreaterThanOrEqual(3);
    expect(gone(low).length).toBeLessThanOrEqual(8);
    expect(gone(low)).toEqual(low.slice(0, gone(low).length));
    expect(gone(normal)).toEqual(normal.slice(0, 64 - gone(low).length));
    const turn = world.database.read.kysely.selectFrom('gates').select('turn');
    expect(Number((await turn.executeTakeFirstOrThrow()).turn)).toBe(64);
  });

  describe.runIf(engine.name === 'PostgreSQL')('of PostgreSQL', () => {
    test('a job that has its places begins while another transaction has its gate locked', async () => {
      const { world } = await worldWith(1);
      const [id = ''] = await accept(world, 2);
      const [locked, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const locking = world.database.write(async (tx) => {
        await lockGates(tx, [gate]);
        await sql`select 1`.execute(tx.kysely);
        locked.resolve();
        await mayCommit.promise;
      });
      await locked.promise;

      const { run, ended } = await world.begin(id);

      expect(await world.row(id)).toMatchObject({ status: 'active', held_by: null });
      mayCommit.resolve();
      await locking;
      run.end(completed());
      await ended;
    });

    test('the organization whose turn is next is found without reading all that wait, also before PostgreSQL has statistics', async () => {
      const { world } = await worldWith(1);
      await accept(world, 1_000);
      const plan = await world.database.write(async ({ kysely }) => {
        // What a table without statistics gives, however soon they are gathered.
        await sql`delete from pg_statistic where starelid = 'jobs'::regclass`.execute(kysely);
        await sql`set local plan_cache_mode = force_generic_plan`.execute(kysely);
        return explain(kysely, findNextOrganization, { gate, after: '' });
      });

      expect(plan.match(/Scan using jobs_held/g)).toHaveLength(2);
      expect(plan).not.toMatch(/Sort Key: jobs|Bitmap|Seq Scan/);
    });
  });
});

type Kysely = JobsWorld['database']['read']['kysely'];

/** The plan of a statement as PostgreSQL keeps it for all values. */
async function explain<P>(
  kysely: Kysely,
  find: (db: never, params: P) => unknown,
  params: P,
): Promise<string> {
  const plans: string[] = [];
  const explaining = {
    async first(declared: Statement<unknown, unknown>, given: unknown) {
      const query = declared.compiledFor(kysely, 'postgres');
      const values = query
        .bind(given)
        .map((value) => (typeof value === 'string' ? `'${value}'` : value));
      await kysely.executeQuery(CompiledQuery.raw(`prepare explained as ${query.text}`));
      const explained = CompiledQuery.raw(`explain execute explained (${values.join(', ')})`);
      const { rows } = await kysely.executeQuery<Record<string, string>>(explained);
      plans.push(...rows.flatMap((row) => Object.values(row)));
    },
  };
  await find(explaining as never, params);
  return plans.join('\n');
}
