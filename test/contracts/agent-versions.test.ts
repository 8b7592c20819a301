import { describe, expect, test } from 'vitest';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';
import { anyWriter } from '../support/writers.ts';

const page = { limit: 50, offset: 0 };
const bob = ['default', 'bob'] as const;

describe.each(await engines())('versions of an agent on $name', (engine) => {
  async function world() {
    const clock = manualClock();
    const database = await engine.emptied();
    const { agents, agentVersions } = composeAgents(contextOf({ database, clock }));
    await database.write((tx) => agents.createDefault(tx, 'default', clock.now()));
    return { clock, database, agents, versions: agentVersions };
  }

  test('an agent begins with version 1, also one without changes', async () => {
    const { agents, versions, clock } = await world();
    const made = await agents.create(anyWriter(), { id: 'bob', instructions: 'Be kind.' });
    clock.advance(1_000);

    expect(made.version).toBe(1);
    for (const [id, instructions] of [
      ['bob', 'Be kind.'],
      ['default', ''],
    ] as const) {
      expect(await versions.list('default', id, page)).toEqual({
        total: 1,
        versions: [
          {
            version: 1,
            changed: [],
            restored_from: null,
            is_current: true,
            created_at: made.created_at,
          },
        ],
      });
      expect(await versions.get('default', id, { n: 1 })).toMatchObject({
        fields: { instructions, model: null, model_settings: null, skills: [] },
        compared_to: null,
        differences: [],
      });
    }
  });

  test('each change of what decides how it works makes one, and other changes make none', async () => {
    const { agents, versions, clock } = await world();
    await agents.create(anyWriter(), { id: 'bob', name: 'Bob' });
    const changes = [
      { instructions: 'Be kind.' },
      { model: 'openai/a' },
      { model_settings: { temperature: 0.5, timeout_ms: 1_000 } },
      { fallback_models: ['openai/b'] },
      { skills: ['web/*'] },
      { approvals: ['web/*'], agents: ['default'] },
      { memory: 'read', recall: { limit: 3 }, profile: { max_bytes: 200 } },
    ] as const;

    for (const [i, change] of changes.entries()) {
      clock.advance(1_000);
      expect(await agents.update(anyWriter(), 'bob', change)).toMatchObject({
        ...change,
        version: i + 2,
      });
    }
    const same = { model_settings: { timeout_ms: 1_000, temperature: 0.5 }, name: 'Robert' };
    expect(await agents.update(anyWriter(), 'bob', { ...changes[0], ...same })).toMatchObject({
      version: 8,
    });
    expect(
      await agents.update(anyWriter(), 'bob', { status: 'paused', metadata: { a: 1 } }),
    ).toMatchObject({
      version: 8,
    });

    const { versions: all, total } = await versions.list(...bob, page);
    expect(total).toBe(8);
    expect(all.map(({ version, changed }) => [version, changed])).toEqual([
      [8, ['memory', 'recall', 'profile']],
      [7, ['approvals', 'agents']],
      [6, ['skills']],
      [5, ['fallback_models']],
      [4, ['model_settings']],
      [3, ['model']],
      [2, ['instructions']],
      [1, []],
    ]);
    expect(await versions.list(...bob, { limit: 2, offset: 4 })).toMatchObject({
      total: 8,
      versions: [{ version: 4 }, { version: 3 }],
    });
  });

  test('a version tells what differs from the one before it, or from another one', async () => {
    const { agents, versions } = await world();
    await agents.create(anyWriter(), { id: 'bob', instructions: 'One.' });
    await agents.update(anyWriter(), 'bob', { instructions: 'Two.' });
    await agents.update(anyWriter(), 'bob', { model: 'openai/a' });

    const model = { field: 'model', before: null, after: 'openai/a' };
    expect(await versions.get(...bob, { n: 3 })).toMatchObject({
      is_current: true,
      fields: { instructions: 'Two.', model: 'openai/a' },
      compared_to: 2,
      differences: [model],
    });
    expect(await versions.get(...bob, { n: 3, compare: 1 })).toMatchObject({
      compared_to: 1,
      differences: [{ field: 'instructions', before: 'One.', after: 'Two.' }, model],
    });
    expect(await versions.get(...bob, { n: 1, compare: 2 })).toMatchObject({
      differences: [{ field: 'instructions', before: 'Two.', after: 'One.' }],
    });
    for (const asked of [{ n: 4 }, { n: 1, compare: 9 }]) {
      await expect(versions.get(...bob, asked)).rejects.toMatchObject({ code: 'not_found' });
    }
  });

  test('a version is restored as a new one', async () => {
    const { agents, versions } = await world();
    const first = { instructions: 'One.', model_settings: { effort: 'low' as const } };
    await agents.create(anyWriter(), { id: 'bob', name: 'Bob', ...first });
    await agents.update(anyWriter(), 'bob', {
      instructions: 'Two.',
      model_settings: null,
      name: 'Robert',
    });

    expect(await versions.restore(anyWriter(), 'bob', 1)).toMatchObject({
      ...first,
      version: 3,
      name: 'Robert',
    });
    expect(await versions.get(...bob, { n: 3, compare: 1 })).toMatchObject({
      restored_from: 1,
      changed: ['instructions', 'model_settings'],
      differences: [],
    });
    expect(await versions.restore(anyWriter(), 'bob', 1)).toMatchObject({ version: 3 });
    await expect(versions.restore(anyWriter(), 'bob', 9)).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  test('a version that names a deleted agent is not restored', async () => {
    const { agents, versions } = await world();
    await agents.create(anyWriter(), { id: 'ann' });
    await agents.create(anyWriter(), { id: 'bob', agents: ['ann'] });
    await agents.update(anyWriter(), 'bob', { agents: [] });
    await agents.remove(anyWriter(), 'ann');

    await expect(versions.restore(anyWriter(), 'bob', 1)).rejects.toMatchObject({
      code: 'validation_error',
    });
    expect(await agents.get(...bob)).toMatchObject({ version: 2, agents: [] });
  });

  test('twenty changes at a time have twenty numbers', async () => {
    const { agents, versions } = await world();
    await agents.create(anyWriter(), { id: 'bob' });

    const changed = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        agents.update(anyWriter(), 'bob', { instructions: `${i}` }),
      ),
    );

    const numbers = changed.map(({ version }) => version).toSorted((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: 20 }, (_, i) => i + 2));
    expect((await versions.list(...bob, page)).total).toBe(21);
  });

  test('the newest thousand are kept', async () => {
    const { agents, versions, database } = await world();
    await agents.create(anyWriter(), { id: 'bob' });
    await agents.update(anyWriter(), 'bob', { instructions: 'a' });
    // As if it had been changed a thousand times.
    await database.write((tx) =>
      tx.kysely.updateTable('agents').set({ version: 1_001 }).where('id', '=', 'bob').execute(),
    );

    await agents.update(anyWriter(), 'bob', { instructions: 'b' });

    const { versions: left } = await versions.list(...bob, page);
    expect(left.map(({ version }) => version)).toEqual([1_002, 1_001]);
    expect(await versions.get(...bob, { n: 1_001 })).toMatchObject({
      fields: { instructions: 'a' },
      compared_to: null,
    });
  });

  test('they are deleted with the agent', async () => {
    const { agents, versions } = await world();
    await agents.create(anyWriter(), { id: 'bob' });
    await agents.update(anyWriter(), 'bob', { instructions: 'a' });
    await agents.remove(anyWriter(), 'bob');
    await agents.create(anyWriter(), { id: 'bob' });

    expect(await versions.list(...bob, page)).toMatchObject({
      total: 1,
      versions: [{ version: 1, changed: [] }],
    });
  });
});
