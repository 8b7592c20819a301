/**
 * What the three writes of a job cost in batches: `node bench/batches.ts [--sqlite] [--seconds n]`.
 * Accept, claim and settle run in this process against a private PostgreSQL that keeps what it has
 * acknowledged (fsync and synchronous_commit on), or against SQLite; nothing else of the platform
 * runs. Beside them, a bare ceiling: one INSERT for each table at accept, one UPDATE at completion.
 */
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { Batch } from '../src/adapters/database/batch.ts';
import type { Database } from '../src/adapters/database/database.ts';
import { openPostgres } from '../src/adapters/database/postgres.ts';
import { openSqlite } from '../src/adapters/database/sqlite.ts';
import { jobCounts } from '../src/core/jobs/jobs.store.ts';
import { claimJobs } from '../src/core/jobs/turns/admission.store.ts';
import { newId } from '../src/kernel/ids.ts';
import { createLogger } from '../src/kernel/log.ts';
import { jobsWorld } from '../test/support/jobs-world.ts';
import { startPostgres } from '../test/support/postgres.ts';

const { values: options } = parseArgs({
  options: {
    sqlite: { type: 'boolean', default: false },
    bare: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '3' },
    sizes: { type: 'string', default: '1,10,50' },
    keys: { type: 'boolean', default: false },
  },
});
const seconds = Number(options.seconds);
const sizes = options.sizes.split(',').map(Number);
const stages = ['accept', 'claim', 'settle'] as const;

const input = JSON.stringify({ text: 'The quick brown fox jumps over the lazy dog.' });
const server = options.sqlite ? undefined : await startPostgres({ durable: true });
const directory = mkdtempSync(join(tmpdir(), 'batches-'));
try {
  if (server !== undefined && options.bare) await bare(await server.createDatabase());
  else {
    const database =
      server === undefined
        ? await openSqlite(directory, createLogger('silent'))
        : await openPostgres(await server.createDatabase(), createLogger('warn'));
    await product(database);
    await database.close();
  }
} finally {
  await server?.close();
  rmSync(directory, { recursive: true, force: true });
}

async function product(database: Database): Promise<void> {
  const world = await jobsWorld({ name: 'bench' } as never, { database });
  const clock = { now: () => Date.now() };
  const claims = new Batch<string, Awaited<ReturnType<typeof claimJobs>>[number]>(
    database,
    async (tx, ids) => {
      const now = clock.now();
      const claimed = await claimJobs(tx, ids, {
        by: 1,
        now: now + 1e12,
        leaseUntil: now + 30_000,
      });
      await jobCounts.change(
        tx,
        'first',
        claimed.map((kind) => ({ kind, from: 'queued', to: 'active' })),
      );
      const byId = new Map(claimed.map((job) => [job.id, job]));
      return ids.map((id) => {
        const job = byId.get(id);
        if (job === undefined) throw new Error('There was nothing to claim.');
        return job;
      });
    },
  );
  for (const size of sizes) {
    let key = 0;
    await measure(`${database.read.dialect}, batches of ${size}`, size, async (lap) => {
      const jobs = await lap('accept', () =>
        Promise.all(
          Array.from({ length: size }, () =>
            world.submit({
              input,
              ...(options.keys
                ? { idempotency: { owner: 'o', key: `${size}-${key++}`, fingerprint: 'f' } }
                : {}),
            }),
          ),
        ),
      );
      world.hints.length = 0;
      const claimed = await lap('claim', () => Promise.all(jobs.map(({ id }) => claims.add(id))));
      const ended = await lap('settle', () =>
        Promise.all(
          claimed.map((job) =>
            world.settle({ job, outcome: { kind: 'completed', output: input }, messages: [] }),
          ),
        ),
      );
      world.observed.length = 0;
      if (ended.some((status) => status !== 'completed')) throw new Error(`It ended as ${ended}.`);
    });
  }
}

/** The least that is the same work. */
async function bare(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`
    create table jobs (id text primary key, conversation_id text, status text, input text, output text,
      created_at bigint, finished_at bigint);
    create table conversations (id text primary key, status text, created_at bigint);
    create table messages (conversation_id text, id text, role text, content text, created_at bigint,
      primary key (conversation_id, id));`);
  for (const size of sizes) {
    await measure(`bare, batches of ${size}`, size, async (lap) => {
      const ids = Array.from({ length: size }, newId);
      const conversations = Array.from({ length: size }, newId);
      const messages = Array.from({ length: size }, newId);
      const now = Date.now();
      await lap('accept', () =>
        client.query({
          name: 'accept',
          text: `with j as (insert into jobs select id, c, 'queued', i, null, $5, null
              from unnest($1::text[], $2::text[], $4::text[]) as t (id, c, i)),
            c as (insert into conversations select c, 'active', $5 from unnest($2::text[]) as t (c))
            insert into messages select c, m, 'user', i, $5
              from unnest($2::text[], $3::text[], $4::text[]) as t (c, m, i)`,
          values: [ids, conversations, messages, ids.map(() => input), now],
        }),
      );
      await lap('claim', async () => {});
      await lap('settle', () =>
        client.query({
          name: 'settle',
          text: `with m as (insert into messages select c, m, 'assistant', o, $5
              from unnest($2::text[], $3::text[], $4::text[]) as t (c, m, o)),
            c as (update conversations set status = 'completed' where id = any ($2))
            update jobs set status = 'completed', output = o, finished_at = $5
              from unnest($1::text[], $4::text[]) as t (i, o) where id = i`,
          values: [
            ids,
            conversations,
            Array.from({ length: size }, newId),
            ids.map(() => input),
            now,
          ],
        }),
      );
    });
  }
  await client.end();
}

type Stage = (typeof stages)[number];
type Lap = <T>(stage: Stage, run: () => Promise<T>) => Promise<T>;

async function measure(
  name: string,
  size: number,
  round: (lap: Lap) => Promise<void>,
): Promise<void> {
  const spent = Object.fromEntries(
    stages.map((stage) => [stage, { wall: 0, node: 0, server: 0 }]),
  ) as Record<Stage, { wall: number; node: number; server: number }>;
  // The stages' own shares of Node are told apart by wall; PostgreSQL's by its processes' clocks.
  const lap: Lap = async (stage, run) => {
    const wall = performance.now();
    const cpu = process.cpuUsage();
    const value = await run();
    const used = process.cpuUsage(cpu);
    spent[stage].wall += performance.now() - wall;
    spent[stage].node += used.user + used.system;
    return value;
  };
  for (const end = performance.now() + 1_500; performance.now() < end; ) await round(lap);
  for (const stage of stages) spent[stage] = { wall: 0, node: 0, server: 0 };
  const serverBefore = serverMicroseconds();
  let jobs = 0;
  const begun = performance.now();
  while (performance.now() - begun < seconds * 1000) {
    await round(lap);
    jobs += size;
  }
  const rate = jobs / ((performance.now() - begun) / 1000);
  const servers = (serverMicroseconds() - serverBefore) / jobs;
  const node = stages.reduce((sum, stage) => sum + spent[stage].node, 0) / jobs;
  const each = stages
    .map(
      (stage) =>
        `${stage} ${((spent[stage].wall * size) / jobs).toFixed(2)} ms ${Math.round(spent[stage].node / jobs)} µs`,
    )
    .join(', ');
  console.log(
    `${name.padEnd(28)} ${Math.round(node + servers)} µs a job: Node ${Math.round(node)}, server ${Math.round(servers)}; ${Math.round(rate)} jobs/s (${each})`,
  );
}

/** CPU of all processes of the private server. */
function serverMicroseconds(): number {
  if (server === undefined) return 0;
  let total = 0;
  const postmaster = Number(
    readFileSync(join(server.socketDirectory, 'data', 'postmaster.pid'), 'utf8').split('\n')[0],
  );
  for (const path of globSync('/proc/[0-9]*/stat')) {
    try {
      const stat = readFileSync(path, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (Number(fields[1]) !== postmaster) continue;
      const [ns] = readFileSync(path.replace(/stat$/, 'schedstat'), 'utf8').split(' ');
      total += Number(ns) / 1000;
    } catch {
      // It has ended meanwhile.
    }
  }
  return total;
}
