/** API keys, agents and the registry on every database (docs/decisions/organizations.md, docs/decisions/api-keys.md, docs/decisions/agents.md, docs/decisions/skills.md). */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { emptyAgent } from '../../src/core/agents/agent-rows.ts';
import { reachableMax } from '../../src/core/agents/called-agents.ts';
import type { KnownSkills } from '../../src/core/agents/covered.ts';
import { clockSkewMs } from '../../src/core/agents/removed-agents.ts';
import { ApiKeys } from '../../src/core/api-keys/api-keys.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { limitOfAgent, limitOfKey } from '../../src/core/limits/limit-names.ts';
import type { SkillFacts } from '../../src/core/skills/fields.ts';
import { type SkillLookup, SkillRegistry } from '../../src/core/skills/registry.ts';
import { recordRemoteSkills } from '../../src/core/skills/remote-skills.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';
import { recordEvents } from '../support/outbox.ts';
import { anyWriter } from '../support/writers.ts';

const unknownId = '0191f3b0-0000-7000-8000-000000000000';
const page = { limit: 50, offset: 0 };

async function eventsIn(database: Database) {
  const rows = await database.read.kysely
    .selectFrom('events')
    .selectAll()
    .where('type', '<>', 'agent.created')
    .orderBy('seq')
    .execute();
  return rows.map(({ type, data }) => ({ type, data: JSON.parse(data) }));
}

describe.each(await engines())('on $name', (engine) => {
  describe('an API key', () => {
    /** Two processes that share a database; on SQLite two sets of verbs in one. */
    async function keys() {
      const clock = manualClock();
      const place = await engine.emptiedPlace();
      const database = await place.open();
      const other = engine.name === 'SQLite' ? database : await place.open();
      const { agents } = composeAgents(contextOf({ database, clock }));
      return {
        clock,
        database,
        apiKeys: new ApiKeys(contextOf({ database, clock }), agents),
        elsewhere: new ApiKeys(contextOf({ database: other, clock }), agents),
      };
    }
    const request = { client_name: 'ann', scopes: ['text', 'web'] };
    /** What verifying says: the client, or the code of the refusal. */
    const verdict = async (apiKeys: ApiKeys, key: string) => {
      try {
        return (await apiKeys.verify(key)).clientName;
      } catch (error) {
        return (error as { code: string }).code;
      }
    };

    test('that another process has created with a limit has it before its first job, and so has an agent', async () => {
      const { database, clock } = await keys();
      const [{ agents: here }, { agents: there }] = [
        composeAgents(contextOf({ database, clock })),
        composeAgents(contextOf({ database, clock })),
      ];
      const keysOf = (agents: typeof here) => new ApiKeys(contextOf({ database, clock }), agents);
      const issued = await keysOf(there).issue({ ...request, max_concurrency: 2 });
      await there.create(anyWriter(), { id: 'narrow', max_concurrency: 3 });
      expect(here.limits.byName.size).toBe(0);

      await keysOf(here).verify(issued.plaintext_key);
      expect(here.limits.byName.get(limitOfKey(issued.id))).toBe(2);
      await there.update(anyWriter(), 'narrow', { max_concurrency: 4 });
      await here.stateOf('default', 'narrow');

      expect(here.limits.byName.get(limitOfAgent('default', 'narrow'))).toBe(4);
    });

    test('is not made where its limit is not recorded', async () => {
      const { database, clock } = await keys();
      const { agents } = composeAgents(contextOf({ database, clock }));
      agents.limits.setWithin = () => Promise.reject(new Error('no limit'));
      const apiKeys = new ApiKeys(contextOf({ database, clock }), agents);

      await expect(apiKeys.issue({ ...request, max_concurrency: 2 })).rejects.toThrow('no limit');

      expect(await apiKeys.list()).toEqual([]);
    });

    test('is issued with its defaults, shown once, and stored as a hash alone', async () => {
      const { apiKeys, database, clock } = await keys();

      const issued = await apiKeys.issue(request);

      expect(issued).toEqual({
        id: expect.any(String),
        organization_id: 'default',
        client_name: 'ann',
        scopes: ['text', 'web'],
        rate_limit: 100,
        enabled: true,
        plaintext_key: expect.stringMatching(/^sk_[\w-]{43}$/),
        created_at: new Date(clock.now()).toISOString(),
      });
      const rows = await database.read.kysely.selectFrom('api_keys').selectAll().execute();
      const digest = createHash('sha256').update(issued.plaintext_key).digest('hex');
      expect(rows[0]?.key_hash).toBe(digest);
      const listed = JSON.stringify(await apiKeys.list());
      expect(JSON.stringify(rows)).not.toContain(issued.plaintext_key);
      expect(listed).not.toContain(digest);
      expect(listed).not.toContain(issued.plaintext_key.slice(0, 12));
    });

    test('is known by its exact text alone', async () => {
      const { apiKeys } = await keys();
      const { plaintext_key: key } = await apiKeys.issue(request);

      expect(await verdict(apiKeys, key)).toBe('ann');
      const others = [
        '',
        ' ',
        `${key} `,
        ` ${key}`,
        key.slice(0, -1),
        key.toUpperCase(),
        `${key}a`,
      ];
      for (const text of [...others, 'sk_', "' or 1=1 --", '😀']) {
        expect(await verdict(apiKeys, text), text).toBe('invalid_api_key');
      }
    });

    test('that is revoked is refused at once here and within a second everywhere', async () => {
      const { apiKeys, elsewhere, clock } = await keys();
      const { id, plaintext_key: key } = await apiKeys.issue(request);
      expect(await verdict(apiKeys, key)).toBe('ann');
      expect(await verdict(elsewhere, key)).toBe('ann');

      expect(await apiKeys.revoke(id)).toEqual({ message: expect.any(String), id });

      expect(await verdict(apiKeys, key)).toBe('invalid_api_key');
      clock.advance(1_000);
      expect(await verdict(elsewhere, key)).toBe('invalid_api_key');
      expect(await apiKeys.callerById(id)).toBeUndefined();
      expect((await apiKeys.list())[0]).toMatchObject({ id, enabled: false });
      expect(await apiKeys.revoke(id)).toMatchObject({ id });
    });

    test('past its expires_at is api_key_expired, to the millisecond; revoked, it is invalid', async () => {
      const { apiKeys, clock } = await keys();
      const expires_at = clock.now() + 2_000;
      const { id, plaintext_key: key } = await apiKeys.issue({ ...request, expires_at });

      clock.advance(1_500);
      expect(await verdict(apiKeys, key)).toBe('ann');
      clock.advance(499);
      expect(await verdict(apiKeys, key)).toBe('ann');
      clock.advance(1);
      expect(await verdict(apiKeys, key)).toBe('api_key_expired');
      expect(await apiKeys.callerById(id)).toBeUndefined();
      await apiKeys.revoke(id);
      expect(await verdict(apiKeys, key)).toBe('invalid_api_key');
    });

    test.each([unknownId, 'no id', ''])('that does not exist cannot be revoked: %j', async (id) => {
      const { apiKeys } = await keys();

      await expect(apiKeys.revoke(id)).rejects.toMatchObject({ code: 'not_found' });
    });

    test('makes its organization with an agent default; fifty at once make it once', async () => {
      const { apiKeys, elsewhere, database, clock } = await keys();
      const { agents } = composeAgents(contextOf({ database, clock }));

      await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          (i % 2 === 0 ? apiKeys : elsewhere).issue({ ...request, organization_id: 'acme' }),
        ),
      );

      expect(await agents.list('acme', page)).toMatchObject({
        total: 1,
        agents: [{ id: 'default', status: 'active' }],
      });
      expect(await apiKeys.list()).toHaveLength(50);
    });
  });

  describe('an agent', () => {
    async function agentsOf(organization = 'default') {
      const clock = manualClock();
      const database = await engine.emptied();
      const { agents } = composeAgents(contextOf({ database, clock }));
      await recordEvents(database, organization);
      await database.write((tx) => agents.createDefault(tx, organization, clock.now()));
      return { clock, database, agents };
    }

    test('is created with the given fields, and defaults for the others', async () => {
      const { agents, clock } = await agentsOf();
      const now = new Date(clock.now()).toISOString();

      const made = await agents.create(anyWriter(), { name: 'Ann', skills: ['web/*'] });
      const named = await agents.create(anyWriter(), { id: 'bob', metadata: { a: [1, '😀'] } });

      expect(made).toEqual({
        id: expect.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/),
        name: 'Ann',
        description: '',
        status: 'active',
        instructions: '',
        model: null,
        variables: {},
        model_settings: null,
        fallback_models: [],
        memory: 'user',
        recall: null,
        profile: null,
        memory_formation: null,
        priority: null,
        max_concurrency: null,
        keep_prompts: false,
        version: 1,
        skills: ['web/*'],
        approvals: [],
        tool_rules: [],
        guards: [],
        agents: [],
        metadata: {},
        created_at: now,
        updated_at: now,
      });
      expect(await agents.get('default', 'bob')).toEqual(named);
      expect(named).toMatchObject({ name: 'bob', metadata: { a: [1, '😀'] } });
    });

    test('has an id that is unique in its organization; twenty at once make one', async () => {
      const { agents } = await agentsOf();

      const made = await Promise.allSettled(
        Array.from({ length: 20 }, () => agents.create(anyWriter(), { id: 'bob' })),
      );

      expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const one of made) {
        if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'conflict' });
      }
      await agents.create(anyWriter('acme'), { id: 'bob' });
    });

    test('that is paused or resumed sends one event', async () => {
      const { agents, database } = await agentsOf();

      await agents.update(anyWriter(), 'default', { status: 'paused' });
      await agents.update(anyWriter(), 'default', { status: 'paused', name: 'Ann' });
      await agents.update(anyWriter(), 'default', {});
      await agents.update(anyWriter(), 'default', { status: 'active' });

      expect(await eventsIn(database)).toEqual([
        {
          type: 'agent.status_changed',
          data: { previous_status: 'active', status: 'paused' },
        },
        {
          type: 'agent.status_changed',
          data: { previous_status: 'paused', status: 'active' },
        },
      ]);
    });

    test('that twenty clients pause or resume at once sends one event each time', async () => {
      const { agents, database } = await agentsOf();
      const changes = ['paused', 'active', 'paused', 'active', 'paused'] as const;

      for (const status of changes) {
        await Promise.all(
          Array.from({ length: 20 }, () => agents.update(anyWriter(), 'default', { status })),
        );
      }

      const told = (await eventsIn(database)).map(({ data }) => data.status);
      expect(told).toEqual(changes);
    });

    test('that is paused here is paused here at once, and within a second elsewhere', async () => {
      const { agents, database, clock } = await agentsOf();
      const { agents: elsewhere } = composeAgents(contextOf({ database, clock }));
      expect(await agents.stateOf('default', 'default')).toEqual({
        status: 'active',
        priority: null,
      });
      expect(await elsewhere.stateOf('default', 'default')).toMatchObject({ status: 'active' });

      const after = { status: 'paused', priority: 'low' } as const;
      await agents.update(anyWriter(), 'default', after);

      expect(await agents.stateOf('default', 'default')).toEqual(after);
      clock.advance(1_000);
      expect(await elsewhere.stateOf('default', 'default')).toEqual(after);
    });

    test('changes only in the given fields; an empty change changes nothing', async () => {
      const { agents, clock } = await agentsOf();
      const before = await agents.create(anyWriter(), { id: 'bob', name: 'Bob', model: 'a/b' });
      clock.advance(1_000);

      expect(await agents.update(anyWriter(), 'bob', {})).toEqual(before);
      expect(await agents.update(anyWriter(), 'bob', { model: null })).toEqual({
        ...before,
        model: null,
        version: 2,
        updated_at: new Date(clock.now()).toISOString(),
      });
    });

    test('keeps the settings of its model until they are replaced as a whole or removed', async () => {
      const { agents } = await agentsOf();
      const given = { temperature: 0.2, effort: null, timeout_ms: 60_000 };

      const made = await agents.create(anyWriter(), { id: 'bob', model_settings: given });
      const changed = { model_settings: { context_tokens: 4_000 } };

      expect(made.model_settings).toEqual({ temperature: 0.2, timeout_ms: 60_000 });
      expect(await agents.update(anyWriter(), 'bob', { name: 'Bob' })).toMatchObject({
        model_settings: made.model_settings,
      });
      expect(await agents.update(anyWriter(), 'bob', changed)).toMatchObject(changed);
      for (const model_settings of [null, {}, { effort: null }]) {
        await agents.update(anyWriter(), 'bob', changed);
        expect(await agents.update(anyWriter(), 'bob', { model_settings })).toMatchObject({
          model_settings: null,
        });
      }
    });

    test('has no settings that its model, or the model of all agents, is known not to take', async () => {
      const { database, clock } = await agentsOf();
      const { agents } = composeAgents(
        contextOf({ database, clock, config: { ...readConfig({}), defaultModel: 'openai/o3' } }),
      );
      const refused = (field: string) => ({
        code: 'validation_error',
        extras: { details: [{ field }] },
      });
      const temperate = { model_settings: { temperature: 0 } };
      const made = await agents.create(anyWriter(), {
        id: 'ann',
        model: 'openai/gpt-4o',
        ...temperate,
      });

      for (const change of [{ model: 'openai/gpt-5' }, { model: null }]) {
        await expect(agents.update(anyWriter(), 'ann', change)).rejects.toMatchObject(
          refused('model_settings.temperature'),
        );
      }
      await expect(agents.create(anyWriter(), temperate)).rejects.toMatchObject(
        refused('model_settings.temperature'),
      );
      await expect(
        agents.update(anyWriter(), 'ann', {
          model_settings: { max_output_tokens: 2_001, context_tokens: 4_000 },
        }),
      ).rejects.toMatchObject(refused('model_settings.max_output_tokens'));
      expect(await agents.get('default', 'ann')).toEqual(made);
    });

    test('of another organization behaves as one that does not exist', async () => {
      const { agents } = await agentsOf();
      await agents.create(anyWriter(), { id: 'bob' });
      const refused = { code: 'not_found', message: 'Agent not found' };

      for (const id of ['bob', 'nobody']) {
        await expect(agents.get('acme', id)).rejects.toMatchObject(refused);
        await expect(agents.update(anyWriter('acme'), id, { name: 'x' })).rejects.toMatchObject(
          refused,
        );
        await expect(agents.remove(anyWriter('acme'), id)).rejects.toMatchObject(refused);
        await expect(async () => agents.stateOf('acme', id)).rejects.toMatchObject(refused);
      }
      expect(await agents.list('acme', page)).toEqual({ agents: [], total: 0, next: null });
      expect((await agents.get('default', 'bob')).name).toBe('bob');
    });

    test('that is deleted is gone at once', async () => {
      const { agents } = await agentsOf();
      await agents.create(anyWriter(), { id: 'bob' });
      expect(await agents.stateOf('default', 'bob')).toMatchObject({ status: 'active' });

      await agents.remove(anyWriter(), 'bob');

      await expect(agents.get('default', 'bob')).rejects.toMatchObject({ code: 'not_found' });
      await expect(async () => agents.stateOf('default', 'bob')).rejects.toMatchObject({
        code: 'not_found',
      });
      await expect(agents.remove(anyWriter(), 'bob')).rejects.toMatchObject({ code: 'not_found' });
    });

    describe('that gives tasks to many', () => {
      const narrow = { organizationId: 'default', scopes: ['agent', 'web'] };

      /** Agents of which each names the next one, and a registry that counts its lists. */
      async function chainOf(length: number) {
        const database = await engine.emptied();
        const clock = manualClock();
        let lists = 0;
        const skills: KnownSkills = {
          definition: () => undefined,
          list: () => {
            lists += 1;
            return [];
          },
        };
        const { agents } = composeAgents(contextOf({ database, clock }), { skills });
        const rows = Array.from({ length }, (_, i) => ({
          ...emptyAgent('default', `agent-${i}`, clock.now()),
          skills: '["web/*"]',
          agents: JSON.stringify(i + 1 < length ? [`agent-${i + 1}`] : []),
        }));
        await database.write((tx) => tx.insert('agents', rows));
        return { agents, lists: () => lists };
      }

      test('has the skills compared once, however many these are', async () => {
        const { agents, lists } = await chainOf(20);

        await agents.update(narrow, 'agent-0', { description: 'x' });

        expect(lists()).toBe(1);
        expect(await agents.missingScopesOf({ ...narrow, scopes: ['web'] }, 'agent-0')).toEqual([
          'agent',
        ]);
      });

      test('reaches at most 1,000, and needs all scopes where an earlier change left more', async () => {
        const { agents } = await chainOf(reachableMax + 2);

        await expect(
          agents.create(anyWriter(), { id: 'one-more', agents: ['agent-0'] }),
        ).rejects.toMatchObject({
          code: 'conflict',
          message: expect.stringContaining(`more than ${reachableMax} agents`),
        });
        expect(await agents.missingScopesOf(narrow, 'agent-0')).toEqual(['*']);
        expect(await agents.missingScopesOf(narrow, 'agent-2')).toEqual([]);
      });
    });

    describe('whose predecessor of the same id is deleted while it is created', () => {
      /** Agents of two processes. The second deletes the agent `bob` before each of the next writes of the first. */
      async function withRemovals(removals: number) {
        const database = await engine.emptied();
        const { agents: others } = composeAgents(contextOf({ database, clock: systemClock }));
        let left = removals;
        const write: Database['write'] = async (unit) => {
          if (left > 0) {
            if (left < removals) {
              // Its predecessor of a moment ago is no reason to wait here.
              await database.write(async (tx) => {
                await tx.kysely.deleteFrom('removed_agents').execute();
              });
              await others.create(anyWriter(), { id: 'bob' });
            }
            left -= 1;
            await others.remove(anyWriter(), 'bob');
          }
          return database.write(unit);
        };
        await others.create(anyWriter(), { id: 'bob' });
        const { agents } = composeAgents(
          contextOf({ database: { ...database, write }, clock: systemClock }),
        );
        return { agents, database };
      }

      test('is created some time after the deletion', async () => {
        const { agents, database } = await withRemovals(1);

        const { created_at } = await agents.create(anyWriter(), { id: 'bob' });

        const { removed_at } = await database.read.kysely
          .selectFrom('removed_agents')
          .select('removed_at')
          .executeTakeFirstOrThrow();
        expect(Date.parse(created_at) - removed_at).toBeGreaterThan(clockSkewMs);
        expect((await agents.get('default', 'bob')).created_at).toBe(created_at);
      });

      test('is refused with 409 conflict after three such deletions', async () => {
        const { agents } = await withRemovals(3);

        await expect(agents.create(anyWriter(), { id: 'bob' })).rejects.toMatchObject({
          code: 'conflict',
          message: 'The agent bob was deleted a moment ago: create it again in a second',
        });
        await expect(agents.get('default', 'bob')).rejects.toMatchObject({ code: 'not_found' });
      });
    });
  });

  describe('the registry', () => {
    const facts = (name: string, more: Partial<SkillFacts> = {}): SkillFacts => ({
      category: 'text',
      name,
      version: 'v1.0',
      displayName: name,
      description: '',
      parameters: { type: 'object' },
      output: {},
      ...more,
    });
    async function registry() {
      const clock = manualClock();
      const database = await engine.emptied();
      return { clock, database, skills: new SkillRegistry(contextOf({ database, clock })) };
    }

    test('keeps the id of a skill over restarts, changes and absences', async () => {
      const { skills, database, clock } = await registry();
      await skills.register([facts('a'), facts('b')]);
      const { id } = skills.active('default', 'text', 'v1.0', 'a');

      clock.advance(1_000);
      await skills.register([facts('b')]);
      expect(skills.findActive('default', 'text', 'v1.0', 'a')).toBeUndefined();
      expect(skills.definition('default', 'text', 'v1.0', 'a')).toBeUndefined();
      clock.advance(1_000);
      const restarted = new SkillRegistry(contextOf({ database, clock }));
      await restarted.register([facts('a', { description: 'new' }), facts('b')]);

      expect(restarted.active('default', 'text', 'v1.0', 'a')).toMatchObject({
        id,
        description: 'new',
      });
    });

    test('lists active skills by category, name and version as numbers', async () => {
      const { skills } = await registry();
      const versions = ['v1.10', 'v1.9', 'v10.0', 'v2.0'];
      await skills.register([
        ...versions.map((version) => facts('b', { version })),
        facts('a'),
        facts('z', { category: 'data' }),
      ]);

      const names = (category?: string) =>
        skills
          .list('default', category)
          .map((skill) => `${skill.category}/${skill.name}/${skill.version}`);

      expect(names('text')).toEqual([
        'text/a/v1.0',
        'text/b/v1.9',
        'text/b/v1.10',
        'text/b/v2.0',
        'text/b/v10.0',
      ]);
      expect(names()[0]).toBe('data/z/v1.0');
      expect(names('tex')).toEqual([]);
    });

    test('does not find a deprecated version, but lets its accepted jobs finish', async () => {
      const { skills, clock } = await registry();
      await skills.register([facts('a')]);
      clock.advance(1_000);

      const changed = await skills.setDeprecated('text', 'v1.0', 'a', true);

      expect(changed.isActive).toBe(false);
      expect(() => skills.active('default', 'text', 'v1.0', 'a')).toThrow(
        expect.objectContaining({ code: 'skill_not_found' }),
      );
      expect(skills.definition('default', 'text', 'v1.0', 'a')).toBeDefined();
      clock.advance(1_000);
      await skills.register([facts('a')]);
      expect(skills.findActive('default', 'text', 'v1.0', 'a')).toBeUndefined();
      await skills.setDeprecated('text', 'v1.0', 'a', false);
      expect(skills.active('default', 'text', 'v1.0', 'a').isActive).toBe(true);
    });

    test('has a skill of named organizations for these alone', async () => {
      const { skills, database, clock } = await registry();
      await skills.register([facts('of-all', { category: 'mcp-tickets' })]);
      const owner = { id: 'the-source', category: 'mcp-tickets' };
      const changes: (readonly string[] | null)[] = [];
      skills.onChange(({ organizations }) => changes.push(organizations && [...organizations]));
      const record = async (organizations: readonly string[] | null) => {
        clock.advance(1_000);
        const skill = { facts: facts('create', { category: owner.category }), organizations };
        await database.write((tx) => recordRemoteSkills(tx, clock, owner, [skill]));
        await skills.refresh();
      };
      const [acme, globex] = ['acme', 'globex'].map(
        (organization) => [organization, 'mcp-tickets', 'v1.0', 'create'] as const,
      ) as [SkillLookup, SkillLookup];
      const unknown = ['globex', 'mcp-tickets', 'v1.0', 'nothing'] as const;
      const messageOf = (asked: SkillLookup) =>
        skills.notFound(...asked).message.replace(asked[3], '');

      await record(['acme']);

      const { id } = skills.active(...acme);
      expect([skills.definition(...acme)?.id, skills.byId('acme', id).id]).toEqual([id, id]);
      expect(skills.list('acme', 'mcp-tickets')).toHaveLength(2);
      expect(skills.list('globex').map(({ name }) => name)).toEqual(['of-all']);
      expect(skills.findActive(...globex)).toBeUndefined();
      expect(skills.definition(...globex)).toBeUndefined();
      expect(() => skills.registered(...globex)).toThrow('No registered skill matches');
      expect(() => skills.byId('globex', id)).toThrow('No version of a skill has this id');
      expect(messageOf(globex)).toBe(messageOf(unknown));
      expect(['acme', 'globex'].map((id) => skills.audienceOf(id))).toEqual(['acme', '']);
      expect(skills.registeredAnywhere('mcp-tickets', 'v1.0', 'create').id).toBe(id);

      await record(['acme', 'globex']);
      expect(skills.active(...globex).id).toBe(id);
      await record(null);
      expect(skills.active('initech', 'mcp-tickets', 'v1.0', 'create').id).toBe(id);
      await record(['globex']);
      expect(skills.findActive(...acme)).toBeUndefined();
      expect(changes).toEqual([['acme'], ['acme', 'globex'], null, null]);
    });

    test('registers the same skills from several processes that start at the same moment', async () => {
      const { database, clock } = await registry();
      const many = Array.from({ length: 20 }, (_, i) => facts(`skill-${i}`));
      const registries = [1, 2, 3].map(() => new SkillRegistry(contextOf({ database, clock })));

      await Promise.all(registries.map((one) => one.register(many)));

      const ids = registries.map((one) => one.list('default').map(({ id }) => id));
      expect(ids[0]).toHaveLength(20);
      expect(ids[1]).toEqual(ids[0]);
      expect(ids[2]).toEqual(ids[0]);
    });
  });
});
