/**
 * What the pipeline of `src/adapters/database/pipeline.ts` saves, against the two public ways of node-postgres: its option
 * `pipeline`, and one query after the other. `node bench/pipeline.ts`; see docs/decisions/postgres-pipeline.md.
 */
import pg from 'pg';
import { runTogether } from '../src/adapters/database/pipeline.ts';
import { startPostgres } from '../test/support/postgres.ts';

const rounds = 9;
const transactions = 1_000;
const statements = [
  { text: 'begin', givesRows: false },
  { text: 'select n from t where id = $1', givesRows: true },
  { text: 'update t set n = n + 1 where id = $1', givesRows: false },
  { text: 'select id, n from t where id = $1', givesRows: true },
  { text: 'commit', givesRows: false },
].map((one) => ({ ...one, name: one.text }));

const valuesOf = (text: string, id: number) => (text.includes('$1') ? [id] : []);

type Run = (client: pg.Client, id: number) => Promise<unknown>;

const ways: Record<string, { readonly options: object; readonly run: Run }> = {
  'own pipeline': {
    options: {},
    run: (client, id) =>
      runTogether(
        client,
        statements.map((one) => ({ ...one, values: valuesOf(one.text, id).map(String) })),
      ),
  },
  'option pipeline': {
    options: { pipeline: true },
    run: (client, id) =>
      Promise.all(
        statements.map(({ name, text }) =>
          client.query({ name, text, values: valuesOf(text, id) }),
        ),
      ),
  },
  'one by one': {
    options: {},
    async run(client, id) {
      for (const { name, text } of statements) {
        await client.query({ name, text, values: valuesOf(text, id) });
      }
    },
  },
};

const server = await startPostgres();
const connectionString = await server.createDatabase();
const opened = await Promise.all(
  Object.entries(ways).map(async ([name, { options, run }]) => {
    const client = new pg.Client({ connectionString, ...options });
    await client.connect();
    await client.query('set synchronous_commit = off');
    return { name, run, client, ms: [] as number[], cpuMs: [] as number[] };
  }),
);
await opened[0]?.client.query(
  `create table t as select g as id, 0 as n from generate_series(1, ${transactions}) g`,
);
await opened[0]?.client.query('create unique index on t (id)');
// The first round warms up.
for (let round = 0; round <= rounds; round++) {
  for (const { run, client, ms, cpuMs } of opened) {
    const began = performance.now();
    const cpu = process.cpuUsage();
    for (let id = 1; id <= transactions; id++) await run(client, id);
    const { user, system } = process.cpuUsage(cpu);
    if (round === 0) continue;
    ms.push((performance.now() - began) / transactions);
    cpuMs.push((user + system) / 1_000 / transactions);
  }
}
const median = (all: readonly number[]) => all.toSorted((a, b) => a - b)[all.length >> 1] ?? 0;
for (const { name, client, ms, cpuMs } of opened) {
  console.log(
    `${name}: ${median(ms).toFixed(3)} ms a transaction, ${median(cpuMs).toFixed(3)} ms of processor time`,
  );
  await client.end();
}
await server.close();
