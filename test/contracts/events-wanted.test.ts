/** An event is recorded if a webhook wants it; a webhook misses none that is committed after its answer. */
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import type { EventType, NewEvent } from '../../src/core/events/events.ts';
import { appendEvents } from '../../src/core/events/outbox.ts';
import { engines } from '../support/databases.ts';
import { waitFor } from '../support/wait-for.ts';
import { type WebhooksWorld, webhooksWorld } from '../support/webhooks-world.ts';
import { anyWriter } from '../support/writers.ts';

const named = (code: string, agentId = 'default'): NewEvent => ({
  type: 'agent.error',
  organizationId: 'default',
  agentId,
  data: { code, message: '', job_id: null },
});

const append = (database: Database, ...events: NewEvent[]) =>
  database.write((tx) => appendEvents(tx, events, 0));

/** The names of the recorded events, in their order. */
async function recorded({ read }: Database): Promise<string[]> {
  const rows = await read.kysely.selectFrom('events').select('data').orderBy('seq').execute();
  return rows.map(({ data }) => JSON.parse(data).code as string);
}

const errors: readonly EventType[] = ['skill.failed', 'agent.error'];

/** What makes a webhook want `agent.error`; each makes its webhook first. */
const ways = [
  [
    'created',
    async ({ webhooks }: WebhooksWorld) => {
      const fields = { agent_id: 'default', url: 'https://receiver.example/', events: errors };
      return () => webhooks.create(anyWriter(), fields);
    },
  ],
  [
    'activated',
    async ({ webhook, webhooks }: WebhooksWorld) => {
      const id = await webhook({ events: errors });
      await webhooks.update(anyWriter(), id, { active: false });
      return () => webhooks.update(anyWriter(), id, { active: true });
    },
  ],
  [
    'given another type',
    async ({ webhook, webhooks }: WebhooksWorld) => {
      const id = await webhook({ events: ['skill.failed'] });
      return () => webhooks.update(anyWriter(), id, { events: errors });
    },
  ],
] as const;

describe.each(await engines())('on $name', (engine) => {
  test('an event is recorded where an active webhook of its agent wants its type', async () => {
    const { webhook, webhooks, agents, database } = await webhooksWorld(engine);
    await agents.create(anyWriter(), { id: 'another' });
    await agents.create(anyWriter(), { id: 'third' });
    await webhook({ events: ['skill.failed'] });
    await webhook({ events: errors }, 'other');
    await webhook({ events: errors, agent_id: 'another' });
    const inactive = await webhook({ events: errors });
    await webhooks.update(anyWriter(), inactive, { active: false });
    const removed = await webhook({ events: errors });
    await webhooks.remove('default', removed);

    await append(database);
    await append(database, named('a'), named('b', 'another'), named('c'), named('d', 'another'));
    expect(await recorded(database)).toEqual(['b', 'd']);

    await webhooks.update(anyWriter(), inactive, { active: true });
    await append(database, named('e'), named('f', 'another'), named('g', 'third'), named('h'));
    expect(await recorded(database)).toEqual(['b', 'd', 'e', 'f', 'h']);
  });

  test('the events of one transaction keep their order, whichever agents they are of', async () => {
    const { webhook, agents, database } = await webhooksWorld(engine);
    const ids = Array.from({ length: 20 }, (_, i) => `agent-${i}`);
    for (const id of ids) {
      await agents.create(anyWriter(), { id });
      await webhook({ events: errors, agent_id: id });
    }
    const events = Array.from({ length: 200 }, (_, i) => named(`${i}`, ids[(i * 7) % 20]));

    await append(database, ...events);

    expect(await recorded(database)).toEqual(events.map((_, i) => `${i}`));
  });

  test.each(ways)(
    'a webhook that is %s meanwhile gets every event from its answer on',
    async (_, prepare) => {
      const world = await webhooksWorld(engine);
      const { database } = world;
      const change = await prepare(world);
      const owed: string[] = [];
      let isAnswered = false;
      let isDone = false;
      const writing = Array.from({ length: 8 }, async (_, writer) => {
        for (let n = 0; !isDone; n++) {
          const name = `${writer} ${n}`;
          await database.write(async (tx) => {
            await appendEvents(tx, [named(name)], 0);
            if (isAnswered) tx.afterCommit(() => void owed.push(name));
          });
        }
      });

      await change();
      isAnswered = true;
      await waitFor(() => owed.length > 50, { describe: 'more than 50 events are owed' });
      isDone = true;
      await Promise.all(writing);

      expect(await recorded(database)).toEqual(expect.arrayContaining(owed));
    },
  );
});

const postgres = (await engines()).filter(({ name }) => name === 'PostgreSQL');

describe.each(postgres)('on $name, where transactions overlap', (engine) => {
  /** A transaction that has appended, and commits when it is told to. */
  async function appending(database: Database, name: string) {
    const appended = Promise.withResolvers<void>();
    const commit = Promise.withResolvers<void>();
    onTestFinished(() => commit.resolve());
    const committed = database.write(async (tx) => {
      await appendEvents(tx, [named(name)], 0);
      // The event is sent with the next statement that has an answer.
      await sql`select`.execute(tx.kysely);
      appended.resolve();
      await commit.promise;
    });
    await appended.promise;
    return () => {
      commit.resolve();
      return committed;
    };
  }

  const isWanted = async ({ read }: Database) => {
    const rows = await read.kysely
      .selectFrom('webhooks')
      .select('id')
      .where('active', '=', 1)
      .where('events', 'like', '%agent.error%')
      .execute();
    return rows.length > 0;
  };

  test.each(ways)(
    'one that is %s answers when those that did not see it have ended',
    async (_, prepare) => {
      const world = await webhooksWorld(engine);
      const { database } = world;
      const change = await prepare(world);
      const commitEarly = await appending(database, 'early');
      let isAnswered = false;

      const answered = change().finally(() => {
        isAnswered = true;
      });
      await waitFor(() => isWanted(database), { describe: 'the webhook is committed' });
      // Each begins before the one before it ends, so that one is always open. The answer may wait for the first
      // ones, which may have begun before it looked for open transactions.
      const late: string[] = [];
      let commitLast = async () => {};
      const overlap = async () => {
        late.push(`late ${late.length}`);
        const commit = await appending(database, late.at(-1) ?? '');
        await commitLast();
        commitLast = commit;
      };
      await overlap();
      for (let i = 0; i < 20; i++) await recorded(database);
      expect(isAnswered).toBe(false);
      await commitEarly();
      while (!isAnswered) await overlap();
      await answered;
      await commitLast();

      expect(await recorded(database)).toEqual(late);
    },
  );

  test('one that waits too long is refused, and removed', async () => {
    const { webhooks, database } = await webhooksWorld(engine);
    const commit = await appending(database, 'early');
    const fields = { agent_id: 'default', url: 'https://receiver.example/', events: errors };
    const created = webhooks.create(anyWriter(), fields);
    await waitFor(() => isWanted(database), { describe: 'the webhook is committed' });

    const later = performance.now() + 16_000;
    const now = vi.spyOn(performance, 'now').mockImplementation(() => later);
    await expect(created).rejects.toMatchObject({ code: 'service_unavailable' });
    now.mockRestore();
    await commit();

    expect(await webhooks.list('default')).toEqual([]);
  });
});
