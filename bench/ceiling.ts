/**
 * The bare ceiling: the least that can call itself the same job. Fastify and AJV take
 * `POST /api/util/v1.0/echo`, SQLite (WAL, synchronous=FULL, group commit) records a job, its
 * conversation and the user's message, then the echo and the assistant's message. One process; no
 * keys, limits, leases, executors, lists or recovery. What we cost is measured against it.
 */
import { randomUUIDv7 } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fastify from 'fastify';
import { type Job, takeEchoes, tellCompleted } from './ceiling-echo.ts';

const dataDir = process.env['DATA_DIR'] ?? './data/ceiling';
mkdirSync(dataDir, { recursive: true });
const database = new DatabaseSync(join(dataDir, 'ceiling.db'));
database.exec(`
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE jobs (
    id TEXT PRIMARY KEY, conversation_id TEXT, status TEXT, input TEXT, output TEXT,
    created_at INTEGER, finished_at INTEGER
  ) WITHOUT ROWID;
  CREATE TABLE conversations (id TEXT PRIMARY KEY, status TEXT, created_at INTEGER) WITHOUT ROWID;
  CREATE TABLE messages (
    conversation_id TEXT, id TEXT, role TEXT, content TEXT, created_at INTEGER,
    PRIMARY KEY (conversation_id, id)
  ) WITHOUT ROWID;
`);
const insertJob = database.prepare("INSERT INTO jobs VALUES (?, ?, 'queued', ?, NULL, ?, NULL)");
const insertConversation = database.prepare("INSERT INTO conversations VALUES (?, 'active', ?)");
const insertMessage = database.prepare('INSERT INTO messages VALUES (?, ?, ?, ?, ?)');
const completeJob = database.prepare(
  "UPDATE jobs SET status = 'completed', output = ?, finished_at = ? WHERE id = ?",
);

let writes: (() => () => void)[] = [];
let scheduled = false;
let completed = 0;

/** Runs `write` in the next shared transaction and what it returns after the commit. */
function inNextCommit(write: () => () => void): void {
  writes.push(write);
  if (scheduled) return;
  scheduled = true;
  setImmediate(() => {
    const batch = writes;
    writes = [];
    scheduled = false;
    database.exec('BEGIN IMMEDIATE');
    const hooks = batch.map((run) => run());
    database.exec('COMMIT');
    for (const hook of hooks) hook();
  });
}

function accept(job: Job): Promise<void> {
  return new Promise((resolve) => {
    inNextCommit(() => {
      insertJob.run(job.id, job.conversationId, job.input, job.createdAt);
      insertConversation.run(job.conversationId, job.createdAt);
      const messageId = randomUUIDv7();
      insertMessage.run(job.conversationId, messageId, 'user', job.input, job.createdAt);
      return () => {
        resolve();
        complete(job);
      };
    });
  });
}

function complete(job: Job): void {
  const { text } = JSON.parse(job.input) as { text: string };
  const output = JSON.stringify({ text });
  const now = Date.now();
  inNextCommit(() => {
    completeJob.run(output, now, job.id);
    insertMessage.run(job.conversationId, randomUUIDv7(), 'assistant', output, now);
    return () => {
      completed += 1;
      job.onCompleted?.();
    };
  });
}

const server = fastify();
takeEchoes(server, accept);
server.get('/health', () => ({ status: 'ok' }));
tellCompleted(server, () => completed);

await server.listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 3000) });
