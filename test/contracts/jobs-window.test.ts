/** The cost of a list of jobs between two timestamps, with any number of jobs. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { type JobFilters, listJobs } from '../../src/core/jobs/job-lists.store.ts';
import { idFloor } from '../../src/kernel/ids.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { plansOf, recording, rowsOf } from '../support/query-plans.ts';

const stepMs = 1_000;
const common = 51_000;
/** What one list may look at: two walks past 10,000 jobs, a page, and the counts. */
const rowsMax = 25_000;

/**
 * Jobs a second apart, newest last: three of the agent `rare`, of which one failed, thousands of the
 * agent `busy`, one more of `rare`. When each of `rare` was accepted.
 */
async function manyJobs({ database, submit, attempt }: JobsWorld): Promise<number[]> {
  const makeOne = async (agentId: string, outcome: Parameters<typeof attempt>[1]) => {
    const { id } = await submit({ agentId });
    await attempt(id, outcome);
    const jobs = database.read.kysely.selectFrom('jobs').selectAll();
    return jobs.where('id', '=', id).executeTakeFirstOrThrow();
  };
  const rare = await makeOne('rare', completed());
  const bad = await makeOne('rare', failed({ retryable: false }));
  const busy = await makeOne('busy', completed());
  const start = busy.created_at - (common + 100) * stepMs;
  const at = (row: typeof busy, i: number) => {
    const created_at = start + i * stepMs;
    return { ...row, created_at, id: `${idFloor(created_at).slice(0, 24)}${row.id.slice(24)}` };
  };
  const rows = Array.from({ length: common }, (_, i) => at(busy, i + 3));
  const rares = [at(rare, 0), at(bad, 1), at(rare, 2), at(rare, common + 3)];
  await database.write(async (tx) => {
    await tx.kysely.deleteFrom('jobs').execute();
    await tx.insert('jobs', rares);
    const count = (agentId: string, status: 'completed' | 'failed', count: number) =>
      tx.kysely
        .updateTable('job_counts')
        .set({ count })
        .where('agent_id', '=', agentId)
        .where('status', '=', status)
        .execute();
    await count('busy', 'completed', common);
    await count('rare', 'completed', 3);
    await count('rare', 'failed', 1);
  });
  // A transaction has a time limit, so each of these is short.
  for (let i = 0; i < rows.length; i += 1_000) {
    await database.write((tx) => tx.insert('jobs', rows.slice(i, i + 1_000)));
  }
  return rares.map(({ created_at }) => created_at);
}

describe.each(await engines())('on $name', (engine) => {
  test('a window of many jobs is counted up to 10,000, and read by an index', async () => {
    const database = await engine.fresh();
    const world = await jobsWorld(engine, { database });
    const isSqlite = engine.name === 'SQLite';
    const [first, bad, third, last] = (await manyJobs(world)) as [number, number, number, number];
    // As autovacuum does, soon after so many rows; all of them are its sample, so that plans do not vary.
    if (!isSqlite) {
      await sql`alter table jobs alter agent_id set statistics 1000`.execute(database.read.kysely);
      await sql`analyze jobs`.execute(database.read.kysely);
    }
    const costs: string[] = [];
    const list = async (filters: JobFilters, offset = 0, limit = 50) => {
      const { handle, asked } = recording(database);
      const found = await listJobs(handle, 'default', filters, { limit, offset });
      const about = JSON.stringify(filters);
      expect(asked.length, about).toBeGreaterThan(1);
      expect(asked.length, about).toBeLessThanOrEqual(6);
      let rows = 0;
      for (const query of asked) {
        if (!isSqlite) rows += await rowsOf(database, query);
        for (const plan of isSqlite ? await plansOf(database, 'jobs', query) : []) {
          costs.push(`${about}: ${plan}`);
          expect(plan, about).toMatch(/^SEARCH jobs USING (COVERING )?INDEX jobs_|PRIMARY KEY/);
        }
      }
      expect(rows, about).toBeLessThan(rowsMax);
      return { total: found.total, moments: found.jobs.map((job) => job.created_at) };
    };

    // All of them are in it: how many there are is known.
    const early = { created_after: first - 3_600_000, created_before: last + 3_600_000 };
    expect((await list(early)).total).toBe(common + 4);
    expect(await list({ ...early, agent_id: 'rare', status: 'completed' })).toEqual({
      total: 3,
      moments: [last, third, first],
    });

    // One is not.
    const newest = (from: number, n: number) =>
      Array.from({ length: n }, (_, i) => last - (from + i) * stepMs);
    const most = { created_after: first };
    expect(await list(most)).toEqual({ total: 10_000, moments: newest(0, 50) });
    expect(await list(most, 9_990)).toEqual({ total: 10_000, moments: newest(9_990, 10) });
    expect(await list(most, 10_000)).toEqual({ total: 10_000, moments: [] });
    const older = { created_before: last, created_after: first };
    expect(await list(older, 0, 2)).toEqual({ total: 10_000, moments: newest(1, 2) });
    const busy = await list({ ...most, agent_id: 'busy' }, 0, 2);
    expect(busy).toEqual({ total: 10_000, moments: newest(1, 2) });

    // What is rare lies beyond what SQLite walks past, unless it has an index of it.
    expect(await list({ ...most, agent_id: 'rare' })).toEqual(
      isSqlite ? { total: 1, moments: [last] } : { total: 3, moments: [last, third, bad] },
    );
    expect(await list({ ...most, status: 'failed' })).toEqual({ total: 1, moments: [bad] });
    const rareBad = { ...most, status: 'failed', agent_id: 'rare' } as const;
    expect(await list(rareBad)).toEqual({ total: 1, moments: [bad] });
    expect(await list({ ...most, status: 'active' })).toEqual({ total: 0, moments: [] });
    expect(await list({ ...most, agent_id: 'nobody' })).toEqual({ total: 0, moments: [] });

    // A narrow window is counted to its end.
    const narrow = { created_after: first, created_before: first + 10 * stepMs };
    expect(await list({ ...narrow, agent_id: 'rare' })).toEqual({
      total: 2,
      moments: [third, bad],
    });
    expect((await list(narrow)).total).toBe(9);

    // With the counts of a thousand processes it finds the same.
    const counts = await database.read.kysely.selectFrom('job_counts').selectAll().execute();
    const writers = Array.from({ length: 1_001 }, (_, i) => `writer ${i}`);
    await database.write((tx) =>
      tx.insert(
        'job_counts',
        counts.flatMap((row) => writers.map((writer) => ({ ...row, writer, count: 0 }))),
      ),
    );
    for (const [filters, total] of [
      [{ ...most, agent_id: 'busy' }, 10_000],
      [{ ...most, agent_id: 'rare' }, isSqlite ? 1 : 3],
      [{ ...narrow, agent_id: 'rare' }, 2],
    ] as const) {
      const page = { limit: 3, offset: 0 };
      const found = await listJobs(database.read, 'default', filters, page);
      expect(found.total, JSON.stringify(filters)).toBe(total);
      expect(found.jobs).toHaveLength(Math.min(3, total));
    }

    // Where SQLite walks between two moments, the walk has both ends.
    const walks = costs.filter((cost) => cost.startsWith(`${JSON.stringify(narrow)}: `));
    if (isSqlite) {
      expect(new Set(walks.map((walk) => walk.replace(/^.*: /, '')))).toEqual(
        new Set([
          'SEARCH jobs USING INDEX jobs_newest (organization_id=?)',
          'SEARCH jobs USING INDEX jobs_newest (organization_id=? AND id>? AND id<?)',
        ]),
      );
    }
  });
});
