/** Lists of large entries on every database: each page is bounded in bytes as well as in rows. */
import { describe, expect, test } from 'vitest';
import { pageBytesMax } from '../../src/adapters/database/page-bytes.ts';
import { insertMessages } from '../../src/core/conversations/conversations.store.ts';
import { insertJobEvents, listJobEvents } from '../../src/core/jobs/job-events.store.ts';
import { newId } from '../../src/kernel/ids.ts';
import { Triggers } from '../../src/platform/triggers/triggers.ts';
import { messagesAfter } from '../../src/platform/user-data/user-data.store.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { anyWriter } from '../support/writers.ts';

const kib64 = 65_536;
const page = { limit: 200, offset: 0 };
/** Half again as much as one page holds. */
const entries = (pageBytesMax * 1.5) / kib64;

interface Page {
  readonly ids: readonly string[];
  readonly next: number | null;
  readonly total: number;
}

/** Follows the offsets that cut pages give; how many entries each page had. */
async function expectPages(list: (offset: number) => Promise<Page>, total: number) {
  const whole: string[] = [];
  const sizes: number[] = [];
  for (let offset: number | null = 0; offset !== null; ) {
    const { ids, next, total: counted } = await list(offset);
    expect(counted).toBe(total);
    whole.push(...ids);
    sizes.push(ids.length);
    offset = next;
  }
  expect(new Set(whole).size).toBe(total);
  expect(whole).toHaveLength(total);
  expect(sizes).toHaveLength(2);
  expect(Math.max(...sizes) * kib64).toBeLessThanOrEqual(pageBytesMax);
}

const bytes = 'x'.repeat(kib64);
/** One after the other: all at once, the last of them would wait longer for a connection than a request may. */
const each = async (n: number, make: (i: number) => Promise<unknown>) => {
  for (let i = 0; i < n; i += 1) await make(i);
};

/** A conversation with a first message and `n` large ones. */
async function longConversation(world: JobsWorld, n: number): Promise<string> {
  const job = await world.submit();
  await world.database.write((tx) =>
    insertMessages(
      tx,
      Array.from({ length: n }, () => ({
        id: newId(),
        conversation_id: job.conversation_id,
        job_id: job.id,
        role: 'assistant' as const,
        content: bytes,
        created_at: world.clock.now(),
      })),
    ),
  );
  return job.conversation_id;
}

describe.each(await engines())('on $name', (engine) => {
  test('a page of messages is bounded in bytes and names the next offset', async () => {
    const world = await jobsWorld(engine);
    const id = await longConversation(world, entries);

    await expectPages(async (offset) => {
      const list = await world.conversations.messages({ organization_id: '', id }, 'assistant', {
        limit: 500,
        offset,
      });
      return { ...list, ids: list.messages.map((message) => message.id) };
    }, entries);
  });

  test('what an export of a user reads of messages at a time is bounded in bytes', async () => {
    const { database, ...world } = await jobsWorld(engine);
    const id = await longConversation({ database, ...world }, entries);
    const sizes: number[] = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const read = await messagesAfter(database.read, id, after, page.limit);
      sizes.push(read.reduce((sum, { content }) => sum + content.length, 0));
      after = read.at(-1)?.id;
    }

    expect(Math.max(...sizes)).toBeLessThanOrEqual(pageBytesMax);
    const [first] = await world.messages({ conversation_id: id });
    const bytesOfAll = (first?.content.length ?? 0) + entries * kib64;
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(bytesOfAll);
  });

  test('a message larger than a page is a page of its own', async () => {
    const world = await jobsWorld(engine);
    const { conversation_id } = await world.submit({
      input: JSON.stringify({ text: 'x'.repeat(pageBytesMax + 1) }),
    });

    const of = { organization_id: '', id: conversation_id };
    const { messages, next } = await world.conversations.messages(of, undefined, page);

    expect(messages).toHaveLength(1);
    expect(next).toBeNull();
  });

  test('a page of agents is bounded in bytes and names the next offset', async () => {
    const world = await jobsWorld(engine);
    const { organizationId } = await world.callerOf('of-agents');
    await each(entries - 1, (i) =>
      world.agents.create(anyWriter(organizationId), { id: `agent-${i}`, instructions: bytes }),
    );

    await expectPages(async (offset) => {
      const list = await world.agents.list(organizationId, { ...page, offset });
      return { ...list, ids: list.agents.map(({ id }) => id) };
    }, entries);
  });

  test('a page of triggers is bounded in bytes and names the next offset', async () => {
    const world = await jobsWorld(engine);
    const triggers = new Triggers(contextOf(world), {
      agents: world.agents,
      apiKeys: world.apiKeys,
      skills: world.skills,
      secrets: { seal: (text: string) => text } as never,
      mappings: { check: async () => {} } as never,
    });
    const input = { text: 'x'.repeat(kib64 - 11) };
    const [skill] = world.skills.list('default');
    await each(entries, () =>
      triggers.create(world.caller, {
        agent_id: 'default',
        name: 'large',
        skill_category: skill?.category ?? '',
        skill_name: skill?.name ?? '',
        input,
      }),
    );

    await expectPages(async (offset) => {
      const list = await triggers.list('default', { ...page, offset });
      return { ...list, ids: list.data.map(({ id }) => id) };
    }, entries);
  });

  test.each([
    ['listed', {}],
    ['found', { q: 'word' }],
  ])(
    'a page of memories that are %s is bounded in bytes and names the next offset',
    async (_, filter) => {
      const world = await jobsWorld(engine);
      const owning = { organizationId: 'default', agentId: 'default' };
      const content = `word ${'.'.repeat(kib64 - 5)}`;
      await each(entries, () => world.memories.create(owning, { content }));

      await expectPages(async (offset) => {
        const list = await world.memories.list(owning, filter, { ...page, offset });
        return { ...list, ids: list.memories.map(({ id }) => id) };
      }, entries);
    },
  );

  test('the events of a run are read in parts that are bounded in bytes', async () => {
    const world = await jobsWorld(engine);
    const { id: job_id } = await world.submit();
    const events = Array.from({ length: 20 }, (_, i) => ({
      job_id,
      epoch: 1,
      n: i + 1,
      type: 'log',
      data: JSON.stringify(bytes),
      created_at: 1,
    }));
    await world.database.write((tx) => insertJobEvents(tx, events));

    const first = await listJobEvents(world.database.read, job_id, { epoch: 0, n: 0 }, 500);
    const rest = await listJobEvents(world.database.read, job_id, { epoch: 1, n: 15 }, 500);

    expect(first.events).toHaveLength(15);
    expect(first.isAll).toBe(false);
    expect(rest.events).toHaveLength(5);
    expect(rest.isAll).toBe(true);
  });
});
