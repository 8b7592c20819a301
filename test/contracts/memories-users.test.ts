/** Memories of users, and memories that expire, on every database. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { PartChanges } from '../../src/core/memories/part-changes.ts';
import { Profiles } from '../../src/core/memories/profiles.ts';
import { newMemory } from '../../src/core/memories/record.ts';
import { RunMemories } from '../../src/core/memories/run-memory.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { contextOf } from '../support/context.ts';
import { type Engine, engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';
import { expectMemoriesConsistent } from '../support/memories.ts';
import { anyWriter } from '../support/writers.ts';

const own = { organizationId: 'default', agentId: 'support' };
const page = { limit: 50, offset: 0 };

async function world(engine: Engine) {
  const database = await (await engine.emptiedPlace()).open();
  const clock = manualClock();
  const { agents, memories } = composeAgents(contextOf({ database, clock }));
  const existing = await agents.list('default', page);
  if (existing.total === 0) {
    await database.write((tx) => agents.createDefault(tx, 'default', 0));
    await agents.create(anyWriter(), { id: 'support' });
  }
  const log = createLogger('silent');
  const runMemories = new RunMemories(contextOf({ database, clock, log }), memories, agents);
  const runFor = (userId: string | null) =>
    runMemories.begin({
      ...own,
      ...{ userId, jobId: 'job', conversationId: 'conversation', acceptedAt: clock.now() },
      isTrial: false,
    });
  const listed = async (filter: Parameters<typeof memories.list>[1] = {}, at = page) => {
    const { memories: rows, total } = await memories.list(own, filter, at);
    return { contents: rows.map(({ content }) => content), total };
  };
  /** Adds memories: of a user, or the agent's own. */
  const given = async (...all: readonly [content: string, userId: string | null][]) => {
    const made: { id: string }[] = [];
    for (const [content, userId] of all) {
      made.push(await memories.create(own, { content }, userId));
    }
    return made;
  };
  return { database, clock, agents, memories, runFor, listed, given };
}

type World = Awaited<ReturnType<typeof world>>;
type RunMemory = ReturnType<World['runFor']>;

const contents = (recalled: unknown) =>
  (recalled as { content: string }[]).map(({ content }) => content);
const recall = async (memory: RunMemory, wanted = {}) =>
  contents(await memory.ask('recall', wanted));
/** What completes a run. */
const keep = async ({ database, memories }: World, memory: RunMemory, userId: string | null) => {
  const changes = await memory.changes();
  const run = { ...own, userId, acceptedAt: Infinity, ...changes };
  await database.write((tx) => memories.keep(tx, [run]));
};

describe.each(await engines())('on $name', (engine) => {
  test('a run sees the agent’s own memories and its user’s, never another user’s', async () => {
    const { runFor, given, database } = await world(engine);
    await given(
      ['Salaries are paid on the 28th', null],
      ['The salary of Alice is 5,000', 'alice'],
      ['The salary of Bob is 4,000', 'bob'],
    );
    const seen = async (userId: string | null) => {
      const memory = runFor(userId);
      return [
        (await recall(memory)).sort(),
        (await recall(memory, { query: 'salary' })).sort(),
        (await recall(memory, { query: '"salary of"' })).sort(),
        (await recall(memory, { query: 'salary', tag: 'fact' })).sort(),
      ];
    };

    const [shared, alice, bob] = [
      'Salaries are paid on the 28th',
      'The salary of Alice is 5,000',
      'The salary of Bob is 4,000',
    ];
    expect(await seen('alice')).toEqual([
      ...[
        [shared, alice],
        [shared, alice],
      ],
      ...[[alice], [shared, alice]],
    ]);
    expect(await seen('bob')).toEqual([
      ...[
        [shared, bob],
        [shared, bob],
      ],
      ...[[bob], [shared, bob]],
    ]);
    expect(await seen(null)).toEqual([[shared], [shared], [], [shared]]);
    expect(await seen('carol')).toEqual([[shared], [shared], [], [shared]]);
    await expectMemoriesConsistent(database);
  });

  test('a run remembers for its user, or for the agent where it says so', async () => {
    const all = await world(engine);
    const memory = all.runFor('alice');
    const asked = { step: 3, changes: null };

    await memory.ask('remember', { content: 'likes tea' }, asked);
    await memory.ask('remember', { content: 'tea is sold out', whose: 'agent' }, asked);
    expect(await recall(memory, { query: 'tea', whose: 'user' })).toEqual(['likes tea']);
    expect(await recall(memory, { query: 'tea', whose: 'agent' })).toEqual(['tea is sold out']);
    await keep(all, memory, 'alice');

    const { memories } = await all.memories.list(own, { userId: 'alice' }, page);
    expect(memories).toMatchObject([
      {
        content: 'likes tea',
        user_id: 'alice',
        source: { job_id: 'job', conversation_id: 'conversation', step: 3 },
      },
    ]);
    expect(await recall(all.runFor('bob'))).toEqual(['tea is sold out']);
    expect(await recall(all.runFor('alice'), { whose: 'agent' })).toEqual(['tea is sold out']);
    expect(await recall(all.runFor('alice'), { whose: 'user' })).toEqual(['likes tea']);
    await expectMemoriesConsistent(all.database);
  });

  test('a run without a user remembers for the agent, and cannot name a user', async () => {
    const all = await world(engine);
    const memory = all.runFor(null);

    await memory.ask('remember', { content: 'for all' });
    await keep(all, memory, null);

    expect(await recall(all.runFor('alice'))).toEqual(['for all']);
    for (const wrong of [{ whose: 'user' }, { whose: 'alice' }, { user_id: 'alice' }]) {
      const asked = memory.ask('remember', { content: 'x', ...wrong });
      await expect(asked).rejects.toMatchObject({ retryable: false });
    }
  });

  test('a run cannot forget the memory of another user', async () => {
    const all = await world(engine);
    const [shared, ofAlice, ofBob] = await all.given(
      ['shared', null],
      ['of alice', 'alice'],
      ['of bob', 'bob'],
    );
    const memory = all.runFor('alice');

    expect(await memory.ask('forget', ofBob?.id)).toBe(false);
    expect(await memory.ask('forget', ofAlice?.id)).toBe(true);
    expect(await memory.ask('forget', shared?.id)).toBe(true);
    await keep(all, memory, 'alice');

    expect(await all.listed()).toEqual({ contents: ['of bob'], total: 1 });
    await expectMemoriesConsistent(all.database);
  });

  test('a client lists and searches the memories of all, of one user, or the agent’s own', async () => {
    const { given, listed, memories } = await world(engine);
    await given(['green tea', null], ['black tea', 'alice'], ['white tea', 'bob']);
    await memories.create(own, { content: 'red tea', tag: 'odd' }, 'bob');

    const all = ['red tea', 'white tea', 'black tea', 'green tea'];
    expect(await listed()).toEqual({ contents: all, total: 4 });
    expect(await listed({}, { limit: 2, offset: 1 })).toEqual({
      contents: ['white tea', 'black tea'],
      total: 4,
    });
    expect(await listed({ tag: 'fact' })).toEqual({ contents: all.slice(1), total: 3 });
    expect((await listed({ q: 'tea' })).contents.sort()).toEqual(all.toSorted());
    expect(await listed({ q: 'tea', tag: 'odd' })).toEqual({ contents: ['red tea'], total: 1 });
    const ofBob = { contents: ['red tea', 'white tea'], total: 2 };
    expect(await listed({ userId: 'bob' })).toEqual(ofBob);
    expect(await listed({ userId: 'bob', q: 'tea' })).toEqual(ofBob);
    expect(await listed({ userId: null })).toEqual({ contents: ['green tea'], total: 1 });
    expect(await listed({ userId: null, q: 'tea' })).toEqual({ contents: ['green tea'], total: 1 });
    expect(await listed({ userId: 'carol', q: 'tea' })).toEqual({ contents: [], total: 0 });
  });

  test('a client reads, changes and deletes the memory of any user', async () => {
    const { given, listed, memories, database } = await world(engine);
    const [one] = await given(['black tea', 'alice']);
    const id = one?.id ?? '';

    expect(await memories.get(own, id)).toMatchObject({ user_id: 'alice', source: null });
    await memories.update(own, id, { content: 'green coffee', tag: 'drink' });
    expect(await listed({ q: 'coffee', userId: 'alice' })).toMatchObject({ total: 1 });
    expect(await listed({ q: 'coffee', tag: 'drink' })).toMatchObject({ total: 1 });
    expect(await listed({ q: 'black' })).toMatchObject({ total: 0 });
    await expectMemoriesConsistent(database);
    await memories.remove(own, id);

    expect(await listed()).toEqual({ contents: [], total: 0 });
    await expectMemoriesConsistent(database);
  });

  test('the source is the run that wrote the content, until a client rewrites it', async () => {
    const all = await world(engine);
    const { memories } = all;
    const told = all.runFor('alice');
    await told.ask('remember', { content: 'Closed on Mondays', whose: 'agent' });
    await keep(all, told, 'alice');
    const [{ id } = { id: '' }] = (await memories.list(own, {}, page)).memories;
    const changed = async (fields: Parameters<typeof memories.update>[2]) =>
      (await memories.update(own, id, fields)).source;

    const kept = expect.objectContaining({ job_id: 'job' });
    expect(await changed({ tag: 'hours', metadata: { a: 1 } })).toEqual(kept);
    expect(await changed({ content: 'Closed on Mondays', tag: 'fact', metadata: {} })).toEqual(
      kept,
    );
    expect(await changed({ content: 'Closed on Tuesdays' })).toBeNull();
    expect(await changed({ tag: 'hours' })).toBeNull();
    expect((await memories.list(own, {}, page)).memories[0]?.source).toBeNull();
    await changed({ tag: 'fact' });
    // What a client wrote for all is not replaced by what is said in a run for one user.
    const again = all.runFor('alice');
    const answer = await again.ask('remember', {
      content: 'closed on TUESDAYS',
      whose: 'agent',
    });
    expect(answer).not.toHaveProperty('updated');
    // It may still tell of the user.
    expect(await memories.eraseUser('default', 'alice', () => false)).toBe(1);
  });

  describe('what a run remembers again', () => {
    const prefers = 'Ada prefers short answers.';

    test('updates the memory in place, and says so with the old text', async () => {
      const all = await world(engine);
      const { memories, clock, database } = all;
      const before = await memories.create(own, { content: prefers }, 'ada');
      clock.advance(1_000);
      const memory = all.runFor('ada');

      const told = await memory.ask('remember', { content: 'Ada really prefers short answers' });

      const now = new Date(clock.now()).toISOString();
      const { source: _, agent_id: __, ...view } = before;
      const after = { ...view, content: 'Ada really prefers short answers', updated_at: now };
      expect(told).toEqual({ ...after, updated: true, old_content: prefers });
      expect(await memory.ask('recall', {})).toEqual([after]);
      expect(await memory.ask('recall', { query: 'answers' })).toEqual([after]);
      await keep(all, memory, 'ada');
      const listed = await memories.list(own, {}, page);
      expect(listed).toMatchObject({ memories: [after], total: 1 });
      expect(listed.memories[0]?.source).toMatchObject({ job_id: 'job' });
      await expectMemoriesConsistent(database);
    });

    test('replaces a number of the same thing, also one of the same run', async () => {
      const all = await world(engine);
      const memory = all.runFor('alice');
      await memory.ask('remember', { content: "Alice's salary is 5,000" });

      const told = await memory.ask('remember', { content: "Alice's salary is 6,000" });

      expect(told).toMatchObject({ updated: true, old_content: "Alice's salary is 5,000" });
      await keep(all, memory, 'alice');
      expect(await all.listed()).toEqual({ contents: ["Alice's salary is 6,000"], total: 1 });
      await expectMemoriesConsistent(all.database);
    });

    test('stays beside what a client or another user’s run remembered for the agent', async () => {
      const all = await world(engine);
      const told = async (userId: string | null, content: string) => {
        const memory = all.runFor(userId);
        const answer = await memory.ask('remember', { content, whose: 'agent' });
        await keep(all, memory, userId);
        return answer;
      };
      await all.given(['The price is 5', null]);

      expect(await told('alice', 'The price is 6')).not.toHaveProperty('updated');
      expect(await told('bob', 'The price is 7')).not.toHaveProperty('updated');
      expect(await told('alice', 'The price is 8')).toMatchObject({
        old_content: 'The price is 6',
      });
      expect(await told(null, 'The price is 9')).toMatchObject({ old_content: 'The price is 5' });

      const contents = (await all.listed()).contents.sort();
      expect(contents).toEqual(['The price is 7', 'The price is 8', 'The price is 9']);
      expect(await all.memories.eraseUser('default', 'alice', () => false)).toBe(1);
      expect(await all.memories.eraseUser('elsewhere', 'bob', () => false)).toBe(0);
      expect((await all.listed()).contents.sort()).toEqual(['The price is 7', 'The price is 9']);
      await expectMemoriesConsistent(all.database);
    });

    test('stays beside another fact, another owner, another tag and other metadata', async () => {
      const all = await world(engine);
      await all.given([prefers, null], [prefers, 'bob']);
      const memory = all.runFor('ada');
      const asked = [
        { content: prefers },
        { content: prefers, tag: 'preference' },
        { content: prefers, metadata: { customer: 7 } },
        { content: 'Ada prefers long answers.' },
        { content: 'Order 4711 was delivered' },
        { content: 'Order 4712 was delivered' },
      ];

      for (const one of asked) {
        expect(await memory.ask('remember', one)).not.toHaveProperty('updated');
      }
      await keep(all, memory, 'ada');
      expect(await all.listed()).toMatchObject({ total: 8 });
    });

    test('is updated again by a repetition, and as before where that is taken back', async () => {
      const all = await world(engine);
      await all.memories.create(own, { content: prefers }, 'ada');
      const noted = new PartChanges(null);
      const asker = { step: null, changes: noted };
      const first = all.runFor('ada');
      await first.ask('remember', { content: 'Ada prefers very short answers' }, asker);
      await first.ask('remember', { content: 'Ada still prefers short answers' }, asker);
      const made = await first.ask('recall', {});

      const second = all.runFor('ada');
      await second.restore(JSON.parse(JSON.stringify(noted.list)));
      expect(await second.ask('recall', {})).toEqual(made);
      await first.undo(noted.list.slice(1));
      expect(await recall(first)).toEqual(['Ada prefers very short answers']);
      await first.undo(noted.list.slice(0, 1));
      expect(await recall(first)).toEqual([prefers]);
      await keep(all, second, 'ada');
      expect(await all.listed()).toEqual({
        contents: ['Ada still prefers short answers'],
        total: 1,
      });
      await expectMemoriesConsistent(all.database);
    });

    test('is forgotten with what it replaced', async () => {
      const all = await world(engine);
      const [stored] = await all.given([prefers, 'ada']);
      const memory = all.runFor('ada');
      await memory.ask('remember', { content: 'Ada prefers very short answers' });

      expect(await memory.ask('forget', stored?.id)).toBe(true);
      expect(await recall(memory)).toEqual([]);
      await keep(all, memory, 'ada');
      expect(await all.listed()).toEqual({ contents: [], total: 0 });
      await expectMemoriesConsistent(all.database);
    });
  });

  test('a run does with the memory only what its agent may', async () => {
    const { agents, given, runFor } = await world(engine);
    const [known] = await given(['known', null]);
    const asked = (memory: RunMemory, verb: 'remember' | 'recall' | 'forget') =>
      memory.ask(verb, { remember: { content: 'x' }, recall: {}, forget: known?.id }[verb]);

    await agents.update(anyWriter(), 'support', { memory: 'read' });
    const reading = runFor('alice');
    expect(contents(await asked(reading, 'recall'))).toEqual(['known']);
    for (const verb of ['remember', 'forget'] as const) {
      await expect(asked(reading, verb)).rejects.toThrow('this agent may only read its memory');
    }
    await agents.update(anyWriter(), 'support', { memory: 'off' });
    for (const verb of ['remember', 'recall', 'forget'] as const) {
      await expect(asked(runFor('alice'), verb)).rejects.toThrow('the memory of this agent is off');
    }
    // A run goes on as it began.
    expect(contents(await asked(reading, 'recall'))).toEqual(['known']);
    await agents.update(anyWriter(), 'support', { memory: 'read_write' });
    expect(await asked(runFor(null), 'forget')).toBe(true);
  });

  test('where memory is user, a model writes and forgets the memories of its user alone; code writes all', async () => {
    const all = await world(engine);
    const [shared, ofAlice] = await all.given(['Shared', null], ['Of Alice', 'alice']);
    expect(await all.agents.get('default', 'support')).toMatchObject({ memory: 'user' });
    const noted = new PartChanges(null);
    const model = {
      step: 1,
      isModel: true,
      changes: noted,
    };
    const memory = all.runFor('alice');

    expect(contents(await memory.ask('recall', {}, model)).sort()).toEqual(['Of Alice', 'Shared']);
    await memory.ask('remember', { content: 'Tea' }, model);
    const forAll = memory.ask('remember', { content: 'For all', whose: 'agent' }, model);
    await expect(forAll).rejects.toThrow('may remember for the user of this run alone');
    await expect(memory.ask('forget', shared?.id, model)).rejects.toThrow("the agent's own");
    expect(await memory.ask('forget', ofAlice?.id, model)).toBe(true);
    expect(noted.list).toMatchObject([
      { remembered: { content: 'Tea' } },
      { forgotten: ofAlice?.id },
    ]);

    // What code of the same run remembers for the agent is no memory of the user either.
    const byCode = { content: 'By code', whose: 'agent' };
    const { id } = (await memory.ask('remember', byCode)) as { id: string };
    await expect(memory.ask('forget', id, model)).rejects.toThrow("the agent's own");
    expect(await memory.ask('forget', shared?.id)).toBe(true);
    await keep(all, memory, 'alice');
    expect((await all.listed()).contents.sort()).toEqual(['By code', 'Tea']);
    await expectMemoriesConsistent(all.database);
  });

  test('of two runs at once that change a profile none loses its change, and a full one leaves memories', async () => {
    const all = await world(engine);
    await all.agents.update(anyWriter(), 'support', { profile: { max_bytes: 200 } });
    const profiles = new Profiles(contextOf(all), all.agents);
    const ofAlice = { ...own, userId: 'alice' };
    await profiles.put(ofAlice, 'Name: Alice\nCity: Basel', undefined);
    const model = { step: 1, isModel: true, changes: null };
    const [one, other] = [all.runFor('alice'), all.runFor('alice')];
    for (const run of [one, other]) await run.ask('profile', null);

    await one.ask('update_profile', { content: 'Name: Alice\nCity: Bern' }, model);
    const long = `Likes: ${'tea '.repeat(36).trim()}`;
    const lines = ['Name: Alice', 'City: Basel', 'Pet: cat', long];
    await other.ask('update_profile', { content: lines.join('\n') }, model);
    await keep(all, one, 'alice');
    const bern = await profiles.get(ofAlice);
    await keep(all, other, 'alice');

    expect(bern).toMatchObject({ content: 'Name: Alice\nCity: Bern', version: 2 });
    expect(await profiles.get(ofAlice)).toMatchObject({
      content: `Name: Alice\nCity: Bern\nPet: cat\n${long}`,
      version: 3,
      source: { job_id: 'job', conversation_id: 'conversation' },
    });
    const third = all.runFor('alice');
    await third.ask('update_profile', { content: `${lines.join('\n')}` }, model);
    const fourth = all.runFor('alice');
    await fourth.ask('profile', null);
    await fourth.ask('update_profile', { content: `${lines.slice(0, 3).join('\n')}\nDogs` }, model);
    await keep(all, third, 'alice');
    await profiles.put(ofAlice, 'x'.repeat(199), undefined);
    await keep(all, fourth, 'alice');
    expect(await profiles.get(ofAlice)).toMatchObject({ content: 'x'.repeat(199) });
    expect(await all.listed({ userId: 'alice', tag: 'profile' })).toMatchObject({
      contents: ['City: Basel\nDogs'],
    });
    await expectMemoriesConsistent(all.database);
  });

  test('a profile change that is repeated or undone is as the run has it', async () => {
    const all = await world(engine);
    const profiles = new Profiles(contextOf(all), all.agents);
    const ofAlice = { ...own, userId: 'alice' };
    await profiles.put(ofAlice, 'Likes: tea', undefined);
    const noted = new PartChanges(null);
    const first = all.runFor('alice');
    await first.ask('update_profile', { content: 'Likes: coffee' }, { step: 1, changes: noted });
    const later = new PartChanges(null);
    await first.ask('update_profile', { content: 'Likes: water' }, { step: 2, changes: later });
    await first.undo(later.list);
    expect(await first.ask('profile', null)).toBe('Likes: coffee');
    await profiles.put(ofAlice, 'Likes: tea\nPet: cat', undefined);

    const repeated = all.runFor('alice');
    await repeated.restore(JSON.parse(JSON.stringify(noted.list)));
    await keep(all, repeated, 'alice');

    expect(await profiles.get(ofAlice)).toMatchObject({ content: 'Pet: cat\nLikes: coffee' });
    await expect(all.runFor(null).ask('update_profile', { content: 'x' })).rejects.toThrow(
      'for no user',
    );
  });

  test('a profile is erased with its user, and no other user has it', async () => {
    const all = await world(engine);
    const profiles = new Profiles(contextOf(all), all.agents);
    await profiles.put({ ...own, userId: 'alice' }, 'Likes: tea', undefined);
    await profiles.put({ ...own, userId: 'bob' }, 'Likes: beer', undefined);

    expect(await all.runFor('carol').ask('profile', null)).toBe('');
    expect(await all.runFor('bob').ask('profile', null)).toBe('Likes: beer');
    expect(await all.memories.eraseUser('default', 'alice', () => false)).toBe(1);

    expect(await all.runFor('alice').ask('profile', null)).toBe('');
    expect(await all.runFor('bob').ask('profile', null)).toBe('Likes: beer');
    await all.agents.remove(anyWriter(), 'support');
    await all.memories.purge();
    expect(await all.database.read.kysely.selectFrom('profiles').selectAll().execute()).toEqual([]);
  });

  test('where memory is user, a model in a run without a user reads alone, and code writes', async () => {
    const all = await world(engine);
    const [shared] = await all.given(['Shared', null], ['Of Alice', 'alice']);
    const model = { step: 1, isModel: true, changes: null };
    const memory = all.runFor(null);

    expect(contents(await memory.ask('recall', {}, model))).toEqual(['Shared']);
    for (const asked of [{ content: 'x' }, { content: 'x', whose: 'agent' }]) {
      const refused = memory.ask('remember', asked, model);
      await expect(refused).rejects.toThrow('this agent may only read its memory');
    }
    await expect(memory.ask('forget', shared?.id, model)).rejects.toThrow('may only read');
    await memory.ask('remember', { content: 'By code' });
    await keep(all, memory, null);
    expect((await all.listed()).contents.sort()).toEqual(['By code', 'Of Alice', 'Shared']);
  });

  test('the erasure of a user leaves the index whole, also where memories were changed', async () => {
    const w = await world(engine);
    const [changed] = await w.given(['Ada likes tea', 'ada'], ['Ada likes cake', 'ada']);
    await w.given(['Tea for all', null]);
    await w.memories.update(own, changed?.id ?? '', { content: 'Ada likes green tea' });
    const memory = w.runFor('ada');
    await memory.ask('remember', { content: 'Tea for all, in green cups', whose: 'agent' });
    await keep(w, memory, 'ada');

    expect(await w.memories.eraseUser('default', 'ada', () => false)).toBe(3);
    const ofJobs = { organizationId: 'default', jobIds: ['job'] };
    expect(await w.memories.eraseOfJobs(ofJobs, () => false)).toBe(0);
    await w.memories.compactIndex(() => false);
    for (let n = 0; n < 30; n++) await w.given([`Tea number ${n}`, null]);

    expect((await w.listed({ q: 'tea' }, { limit: 100, offset: 0 })).total).toBeGreaterThanOrEqual(
      30,
    );
    if (w.database.read.dialect === 'sqlite') {
      await w.database.write(async (tx) => {
        await sql`insert into memory_index (memory_index) values ('integrity-check')`.execute(
          tx.kysely,
        );
      });
    }
    await expectMemoriesConsistent(w.database);
  });

  test('a run of a deleted agent has nothing of a newer agent with the same id', async () => {
    const all = await world(engine);
    const { agents, memories, clock, runFor, database } = all;
    const old = runFor('alice');
    await agents.remove(anyWriter(), 'support');
    clock.advance(1_000);
    await agents.create(anyWriter(), { id: 'support' });
    await memories.create(own, { content: 'of the new agent' });
    await memories.create(own, { content: 'of alice' }, 'alice');

    for (const verb of ['recall', 'remember'] as const) {
      const asked = old.ask(verb, verb === 'recall' ? {} : { content: 'x' });
      await expect(asked).rejects.toThrow('the agent support of this run was deleted');
    }
    expect(await recall(runFor('alice'))).toHaveLength(2);
    await expectMemoriesConsistent(database);
  });

  test('a deleted agent takes the memories of its users along', async () => {
    const { given, agents, memories, listed, database } = await world(engine);
    await given(['own', null], ['of alice', 'alice']);

    await agents.remove(anyWriter(), 'support');
    await agents.create(anyWriter(), { id: 'support' });

    expect(await listed()).toEqual({ contents: [], total: 0 });
    expect(await listed({ userId: 'alice', q: 'alice' })).toEqual({ contents: [], total: 0 });
    await memories.purge();
    const left = await database.read.kysely.selectFrom('memories').select('id').execute();
    expect(left).toEqual([]);
    const owners = database.read.kysely.selectFrom('memory_owners').select('id');
    expect(await owners.where('removed', '=', 1).execute()).toEqual([]);
    await expectMemoriesConsistent(database);
  });

  describe('a memory that expires', () => {
    async function withExpiring(engine: Engine) {
      const all = await world(engine);
      const { memories, clock } = all;
      const expires_at = clock.now() + 60_000;
      await memories.create(own, { content: 'tea for ever' });
      const brief = await memories.create(own, { content: 'tea today', expires_at });
      const ofAlice = await memories.create(own, { content: 'tea of alice', expires_at }, 'alice');
      return { ...all, brief, ofAlice };
    }

    test('is found until then, and no longer from then on', async () => {
      const { clock, listed, memories, brief, runFor } = await withExpiring(engine);
      expect(await listed({ q: 'tea' })).toMatchObject({ total: 3 });
      expect(brief.expires_at).toBe(new Date(clock.now() + 60_000).toISOString());
      clock.advance(60_000);

      const left = { contents: ['tea for ever'], total: 1 };
      expect(await listed()).toEqual(left);
      expect(await listed({ tag: 'fact' })).toEqual(left);
      expect(await listed({ q: 'tea' })).toEqual(left);
      expect(await listed({ q: '"tea today"' })).toEqual({ contents: [], total: 0 });
      expect(await listed({ userId: 'alice' })).toEqual({ contents: [], total: 0 });
      for (const attempt of [
        () => memories.get(own, brief.id),
        () => memories.update(own, brief.id, { content: 'mine' }),
        () => memories.remove(own, brief.id),
      ]) {
        await expect(attempt()).rejects.toMatchObject({ code: 'not_found' });
      }
      const memory = runFor('alice');
      expect(await recall(memory)).toEqual(['tea for ever']);
      expect(await recall(memory, { query: 'tea' })).toEqual(['tea for ever']);
      expect(await memory.ask('forget', brief.id)).toBe(false);
    });

    // Up to 5,000 memories with a word are read, and 300 of them ranked.
    test.each([400, 5_100])('is in no total, where %i newer ones match, too', async (count) => {
      const { clock, listed, memories, database } = await withExpiring(engine);
      const remembered = Array.from({ length: count }, (_, i) =>
        newMemory({ content: `tea number ${i}` }, { now: clock.now() }),
      );
      const run = {
        ...own,
        userId: null,
        remembered,
        forgotten: [],
        share: 0,
        acceptedAt: Infinity,
      };
      await database.write((tx) => memories.keep(tx, [run]));
      expect(await listed({ q: 'tea' })).toMatchObject({ total: count + 3 });
      clock.advance(60_000);

      expect(await listed({ q: 'tea' })).toMatchObject({ total: count + 1 });
      expect(await listed({ q: 'tea', tag: 'fact' })).toMatchObject({ total: count + 1 });
    });

    test('is deleted in the background, with its entry and its counts', async () => {
      const { clock, memories, database, listed } = await withExpiring(engine);
      expect(await memories.expire()).toBe(0);
      clock.advance(60_000);

      expect(await memories.expire()).toBe(2);

      expect(await listed({ q: 'tea' })).toMatchObject({ total: 1 });
      const rows = await database.read.kysely.selectFrom('memories').select('content').execute();
      expect(contents(rows)).toEqual(['tea for ever']);
      const owners = database.read.kysely.selectFrom('memory_owners').select('next_expiry');
      expect((await owners.execute()).map(({ next_expiry }) => next_expiry)).toEqual([
        ...[null, null, null],
      ]);
      await expectMemoriesConsistent(database);
      expect(await memories.expire()).toBe(0);
    });

    test('stays where its end is taken away or put off', async () => {
      const { clock, memories, brief, ofAlice, listed, database } = await withExpiring(engine);
      await memories.update(own, brief.id, { expires_at: null });
      await memories.update(own, ofAlice.id, { expires_at: clock.now() + 120_000 });
      clock.advance(60_000);

      expect(await memories.expire()).toBe(0);
      expect(await listed({ q: 'tea' })).toMatchObject({ total: 3 });
      clock.advance(60_000);
      expect(await memories.expire()).toBe(1);
      expect(await listed()).toEqual({ contents: ['tea today', 'tea for ever'], total: 2 });
      await expectMemoriesConsistent(database);
    });

    test('may be remembered by a run, with the seconds that it lasts', async () => {
      const all = await world(engine);
      const memory = all.runFor('alice');
      const fields = { content: 'on holiday', ttl_seconds: 3_600 };
      const ends = new Date(all.clock.now() + 3_600_000).toISOString();

      expect(await memory.ask('remember', fields)).toMatchObject({ expires_at: ends });
      await keep(all, memory, 'alice');
      expect(await recall(all.runFor('alice'))).toEqual(['on holiday']);
      all.clock.advance(3_600_000);

      expect(await recall(all.runFor('alice'))).toEqual([]);
      for (const ttl_seconds of [0, 1.5, '60', 315_360_001]) {
        const asked = memory.ask('remember', { content: 'x', ttl_seconds });
        await expect(asked).rejects.toThrow(/ttl_seconds must be an integer from 1 to/);
      }
    });
  });
});
