/**
 * The bare ceiling of a cluster: the least that can call itself the same job. `ROLES=api` takes
 * `POST /api/util/v1.0/echo` with Fastify and AJV, records a job, its conversation and the user's
 * message in PostgreSQL, many in one statement and one commit, answers 202 after it and adds hints
 * to BullMQ; `ROLES=worker` takes hints and records the echo and the assistant's message the same
 * way. No keys, limits, claims, leases, executors, events, counts or recovery. What we cost is
 * measured against it, so it is tuned as far as its shape allows.
 */
import { randomUUIDv7 } from 'node:crypto';
import { Queue, Worker } from 'bullmq';
import fastify from 'fastify';
import pg from 'pg';
import { type Job, takeEchoes, tellCompleted } from './ceiling-echo.ts';

const queueName = 'skill-execution';
const workerConcurrency = 100;
const connection = { url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379' };
const pool = new pg.Pool({
  connectionString: process.env['DATABASE_URL'] ?? 'postgres://127.0.0.1:5432/postgres',
  // While the commit of one batch is under way the next one gathers.
  max: 1,
  // A statement is planned once, while the tables are empty: scanning them would look cheap then,
  // and soon cost three times what the rest of the statement does.
  options: '-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off',
});
const server = fastify();
const isApi = process.env['ROLES'] === 'api';

/** A write of one item that shares statement and commit with those that arrive until it begins. */
function batched<T>(write: (items: readonly T[]) => Promise<unknown>): (item: T) => Promise<void> {
  let waiting: T[] = [];
  let next: Promise<void> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  async function writeNext(): Promise<void> {
    await last;
    await new Promise((resolve) => setImmediate(resolve));
    const items = waiting;
    waiting = [];
    next = undefined;
    last = write(items);
    await last;
  }
  return (item) => {
    waiting.push(item);
    next ??= writeNext();
    return next;
  };
}

function array(values: readonly (string | number)[]): string {
  return `{${values.join(',')}}`;
}

async function serveApi(): Promise<void> {
  // Pages with room for the new version of a row spare the indexes its update.
  await pool.query(`
    CREATE TABLE jobs (
      id uuid PRIMARY KEY, conversation_id uuid, status text, input text, output text,
      created_at bigint, finished_at bigint
    ) WITH (fillfactor = 50);
    CREATE TABLE conversations (id uuid PRIMARY KEY, status text, created_at bigint)
      WITH (fillfactor = 50);
    CREATE TABLE messages (
      conversation_id uuid, id uuid, role text, content text, created_at bigint,
      PRIMARY KEY (conversation_id, id)
    );
  `);
  const queue = new Queue(queueName, {
    connection,
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  });

  const accept = batched(async (jobs: readonly Job[]) => {
    await pool.query({
      name: 'accept',
      text: `
        WITH new AS (
          SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::bigint[])
            AS t (id, conversation_id, message_id, input, created_at)
        ), conversation AS (
          INSERT INTO conversations SELECT conversation_id, 'active', created_at FROM new
        ), message AS (
          INSERT INTO messages SELECT conversation_id, message_id, 'user', input, created_at FROM new
        )
        INSERT INTO jobs SELECT id, conversation_id, 'queued', input, NULL, created_at, NULL FROM new`,
      values: [
        array(jobs.map((job) => job.id)),
        array(jobs.map((job) => job.conversationId)),
        array(jobs.map(() => randomUUIDv7())),
        jobs.map((job) => job.input),
        array(jobs.map((job) => job.createdAt)),
      ],
    });
    void queue.addBulk(jobs.map(({ id }) => ({ name: 'job', data: null, opts: { jobId: id } })));
  });

  takeEchoes(server, accept);
}

function work(): void {
  let completed = 0;
  const complete = batched(async (ids: readonly string[]) => {
    await pool.query({
      name: 'complete',
      text: `
        WITH done AS (
          UPDATE jobs SET status = 'completed', output = input, finished_at = $3
          FROM unnest($1::uuid[], $2::uuid[]) AS t (id, message_id) WHERE jobs.id = t.id
          RETURNING t.message_id, jobs.conversation_id, jobs.output
        ), conversation AS (
          UPDATE conversations SET status = 'completed' FROM done
          WHERE conversations.id = done.conversation_id
        )
        INSERT INTO messages SELECT conversation_id, message_id, 'assistant', output, $3 FROM done`,
      values: [array(ids), array(ids.map(() => randomUUIDv7())), Date.now()],
    });
    completed += ids.length;
  });
  new Worker(queueName, ({ id }) => complete(id as string), {
    connection,
    concurrency: workerConcurrency,
  });
  tellCompleted(server, () => completed);
}

if (isApi) await serveApi();
else work();
server.get('/health', () => ({ status: 'ok' }));
await server.listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 3000) });
