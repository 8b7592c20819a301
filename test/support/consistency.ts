import { expect } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { attemptEndN } from '../../src/core/jobs/feed.ts';
import { messageText } from '../../src/core/jobs/message-text.ts';
import { expectMemoriesConsistent } from './memories.ts';

/**
 * Holds what is recorded of all jobs, and of what their runs remembered, against itself: what has to
 * be true at every moment. Events are looked for since `eventsSince`, where retention has deleted older ones,
 * and where a webhook has wanted them since before the job.
 */
export async function expectConsistent(database: Database, eventsSince = 0): Promise<void> {
  await expectMemoriesConsistent(database);
  const db = database.read.kysely;
  const jobs = await db.selectFrom('jobs').selectAll().execute();
  const conversations = await db.selectFrom('conversations').selectAll().execute();
  const messages = await db.selectFrom('messages').selectAll().orderBy('id').execute();
  const events = await db.selectFrom('events').selectAll().orderBy('seq').execute();
  const webhooks = await db.selectFrom('webhooks').selectAll().where('active', '=', 1).execute();
  const said = await db.selectFrom('job_events').selectAll().execute();
  const runs = await db.selectFrom('scheduled_runs').select('job_id').execute();
  const scheduled = new Set(runs.map(({ job_id }) => job_id));
  const steps = await db.selectFrom('job_steps').select('job_id').execute();
  const thought = new Set(steps.map(({ job_id }) => job_id));

  const kindOf = (row: Record<string, unknown>, columns: readonly string[]) =>
    columns.map((column) => row[column]).join(' ');
  const jobKind = ['organization_id', 'agent_id', 'skill_category', 'skill_name', 'skill_version'];
  const sums = (rows: readonly Record<string, unknown>[], columns: readonly string[]) => {
    const found = new Map<string, number>();
    for (const row of rows) {
      const kind = kindOf(row, columns);
      found.set(kind, (found.get(kind) ?? 0) + Number(row['count'] ?? 1));
    }
    return Object.fromEntries([...found].filter(([, n]) => n !== 0).sort());
  };
  const jobColumns = [...jobKind, 'trigger_type', 'status'];
  const jobCounts = await db.selectFrom('job_counts').selectAll().execute();
  expect(sums(jobCounts, jobColumns), 'counts of jobs').toEqual(sums(jobs, jobColumns));
  const conversationColumns = ['organization_id', 'agent_id', 'trigger_type', 'status'];
  const conversationCounts = await db.selectFrom('conversation_counts').selectAll().execute();
  expect(sums(conversationCounts, conversationColumns), 'counts of conversations').toEqual(
    sums(conversations, conversationColumns),
  );

  const byId = new Map(conversations.map((one) => [one.id, one]));
  const dataOf = events.map((event) => ({ event, data: JSON.parse(event.data) }));
  for (const job of jobs) {
    const about = `job ${job.id}, ${job.status}`;
    const isFinal = ['completed', 'failed', 'cancelled'].includes(job.status);
    const conversation = byId.get(job.conversation_id);
    expect(conversation?.status, about).toBe(
      isFinal ? (job.status === 'completed' ? 'completed' : 'failed') : 'active',
    );
    expect(conversation?.organization_id, about).toBe(job.organization_id);

    expect(job.attempt, about).toBeGreaterThanOrEqual(0);
    expect(job.attempt, about).toBeLessThanOrEqual(job.max_attempts);
    expect(job.epoch, about).toBeGreaterThanOrEqual(job.attempt);
    expect(job.finished_at !== null, about).toBe(isFinal);
    expect(job.output !== null, about).toBe(job.status === 'completed');
    expect(job.due_at === null, about).toBe(isFinal);
    if (job.status === 'queued') expect(job.due_at, about).toBe(job.run_at);
    if (job.status === 'active') expect(job.started_at, about).not.toBeNull();
    if (job.status === 'failed' || job.status === 'cancelled') {
      expect(job.error, about).not.toBeNull();
    }

    const own = messages.filter(({ job_id }) => job_id === job.id);
    const spoken = own.map(({ role, content }) => ({ role, content }));
    expect(spoken[0], about).toEqual({ role: 'user', content: messageText(job.input) });
    if (!isFinal) expect(spoken, about).toHaveLength(1);
    // A run that thinks has other messages too, and its last message may differ from its output.
    if (job.status === 'completed' && !thought.has(job.id)) {
      expect(spoken.at(-1), about).toEqual({
        role: 'assistant',
        content: messageText(job.output ?? ''),
      });
    }

    // Every claim ends once: in the job's end, in a row that says so, or not yet.
    const ends = said.filter(({ job_id, n }) => job_id === job.id && n === attemptEndN);
    const isOpen = job.status === 'active';
    expect(isOpen ? [job.epoch - 1] : [job.epoch, job.epoch - 1], about).toContain(ends.length);

    if (job.created_at < eventsSince) continue;
    const types = dataOf
      .filter(
        ({ event, data }) =>
          data.job_id === job.id ||
          (event.type === 'conversation.created' && data.conversation_id === job.conversation_id),
      )
      .map(({ event }) => event.type);
    const kinds = scheduled.has(job.id) ? ['skill', 'scheduled_job'] : ['skill'];
    const hasEvent = job.status === 'completed' || job.status === 'failed';
    const ending = hasEvent ? kinds.map((kind) => `${kind}.${job.status}`) : [];
    const expected = ['conversation.created', ...ending];
    const wanted = new Set(
      webhooks
        .filter(({ organization_id, agent_id, created_at }) => {
          const isOfAgent = organization_id === job.organization_id && agent_id === job.agent_id;
          return isOfAgent && created_at < job.created_at;
        })
        .flatMap(({ events }) => JSON.parse(events) as string[]),
    );
    const isUnwanted = (type: string) => !types.includes(type) && !wanted.has(type);
    expect(types, about).toEqual(expected.filter((type) => !isUnwanted(type)));
  }
}
