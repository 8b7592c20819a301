import fc from 'fast-check';
import { expect, test } from 'vitest';
import { InputSchema } from '../../core/skills/input-schema.ts';
import type { Skill } from '../../core/skills/registry.ts';
import { agentOfTool, agentTool } from './agent-tools.ts';
import { inputOf, type SkillTool, toolsOf } from './tools.ts';

/** A skill named `category/version/name`. */
function skill(key: string, more: Partial<Skill> = {}): Skill {
  const [category = '', version = '', name = ''] = key.split('/');
  const parameters = { type: 'object' };
  return {
    ...{ id: key, category, version, name, displayName: name, description: name, parameters },
    ...{ output: {}, requiredScopes: [category], timeoutMs: 1_000, maxAttempts: 1, mcp: null },
    ...{
      continuesConversations: false,
      taskField: null,
      timeoutField: null,
      answerField: null,
      examples: [],
    },
    ...{
      config: {},
      hasConfig: false,
      limits: [],
      concurrency: [],
      rate: [],
      slowsDown: false,
      isActive: true,
      createdAt: 0,
      updatedAt: 0,
      remoteSourceId: null,
      organizations: null,
    },
    input: new InputSchema(parameters, false),
    ...more,
  };
}
const listedNames = (...skills: Skill[]) => toolsOf(skills).listed.map(({ listed }) => listed.name);
const toolOf = (one: Skill): SkillTool => toolsOf([one]).listed[0] as SkillTool;

test('the newest version has the short name; each version has the long one, listed where there are several', () => {
  const skills = [skill('text/v1.9/count'), skill('text/v1.10/count'), skill('data/v1.0/sum')];
  const both = ['text__count', 'text__count__v1_10', 'text__count__v1_9'];
  expect(listedNames(...skills)).toEqual(['data__sum', ...both]);
  const { byName, all } = toolsOf(skills);
  expect(all.map(({ listed }) => listed.name)).toEqual(['data__sum', 'data__sum__v1_0', ...both]);
  expect(byName.get('data__sum')?.listed['_meta']).toEqual({
    'skillwright/version_name': 'data__sum__v1_0',
  });
  expect(byName.get('text__count')?.skill.version).toBe('v1.10');
  expect(byName.get('text__count__v1_10')?.skill.version).toBe('v1.10');
  expect(byName.get('text__count__v1_9')?.skill.version).toBe('v1.9');
});

test('a skill names its tool; of two with the same name the second has a digest at the end', () => {
  const draw = (key: string) => skill(key, { mcp: { name: 'draw_chart' } });
  const { byName, all } = toolsOf([draw('charts/v1.0/a'), draw('charts/v1.0/b')]);
  expect(byName.get('draw_chart')?.skill.name).toBe('a');
  expect(byName.has('charts__a')).toBe(false);
  expect(all.map(({ listed, skill }) => [listed.name, skill.name])).toEqual([
    ['draw_chart', 'a'],
    [expect.stringMatching(/^draw_chart_[0-9a-f]{10}$/), 'b'],
    ['draw_chart__v1_0', 'a'],
    [expect.stringMatching(/^draw_chart__v1_0_[0-9a-f]{10}$/), 'b'],
  ]);
  for (const { listed } of all) {
    expect(
      byName.has((listed['_meta'] as Record<string, string>)['skillwright/version_name'] ?? ''),
    ).toBe(true);
  }
});

const accepted = /^[a-zA-Z0-9_-]{1,64}$/;
const slug = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/);
const version = fc.tuple(fc.nat(), fc.nat()).map(([major, minor]) => `v${major}.${minor}`);
const skillKeys = fc.uniqueArray(
  fc.tuple(slug, version, slug).map((parts) => parts.join('/')),
  { minLength: 1, maxLength: 8 },
);

test('any name that a skill can have becomes one that clients accept, and each tool has one of its own', () => {
  fc.assert(
    fc.property(skillKeys, (keys) => {
      const { all } = toolsOf(keys.toSorted().map((key) => skill(key)));
      const names = all.map(({ listed }) => listed.name);
      for (const name of names) expect(name).toMatch(accepted);
      const bases = new Set(keys.map((key) => key.replace(/\/v[^/]+/, '')));
      expect(new Set(names).size).toBe(keys.length + bases.size);
    }),
  );
});

test('names that are cut differ, and are the same whatever other skills there are', () => {
  const long = (end: string) => skill(`${'c'.repeat(60)}/v1.0/${'n'.repeat(62)}${end}`);
  const older = skill(`${'c'.repeat(60)}/v0.${'9'.repeat(20)}/${'n'.repeat(62)}a`);
  const names = listedNames(older, long('a'), long('b'));
  expect(new Set(names).size).toBe(4);
  for (const name of names) expect(name).toMatch(accepted);
  expect(names).toContain(listedNames(long('b'))[0]);
});

test('any id of an agent becomes a name that clients accept, that no skill has, and that leads back to it', () => {
  const names = new Set<string>();
  fc.assert(
    fc.property(slug, slug, (id, name) => {
      const { listed } = agentTool({ id, name: id, description: '' }, skill('agent/v1.0/run-task'));
      expect(listed.name).toMatch(accepted);
      expect(agentOfTool(listed.name)).toBe(id);
      expect(toolsOf([skill(`agent/v1.0/${name}`)]).byName.has(listed.name)).toBe(false);
      names.add(listed.name);
    }),
    {
      examples: [
        ['a'.repeat(63), 'run-task'],
        ['run-task', 'run-task'],
      ],
    },
  );
  expect(names.has('a'.repeat(63))).toBe(true);
});

test.each([
  [{}, { text: 'a' }, { text: 'a' }],
  [{ type: 'object' }, undefined, {}],
  [{ type: ['object', 'null'] }, { text: 'a' }, { text: 'a' }],
  [{ type: 'array', items: { type: 'string' } }, { input: ['a'] }, ['a']],
  [{ type: 'string' }, {}, undefined],
])(
  'the arguments of a tool are an object, whatever the skill takes: %j',
  (parameters, given, input) => {
    const tool = toolOf(skill('a/v1.0/b', { parameters }));
    expect(tool.listed.inputSchema.type).toBe('object');
    expect(inputOf(tool, given)).toEqual(input);
  },
);

test('references of a wrapped schema lead where they led', () => {
  const parameters = { type: 'array', items: { $ref: '#/$defs/x' }, $defs: { x: {} } };
  expect(toolOf(skill('a/v1.0/b', { parameters })).listed.inputSchema).toEqual({
    type: 'object',
    $defs: { x: {} },
    properties: { input: { type: 'array', items: { $ref: '#/$defs/x' } } },
    required: ['input'],
  });
});

test('a skill that returns blocks promises no structured content', () => {
  const output = { type: 'object' };
  expect(toolOf(skill('a/v1.0/b', { output })).listed.outputSchema).toEqual(output);
  const blocks = skill('a/v1.0/b', { output, mcp: { content: true } });
  expect(toolOf(blocks).listed.outputSchema).toBeUndefined();
});
