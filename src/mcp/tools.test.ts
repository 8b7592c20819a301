import { expect, test } from 'vitest';
import { compileSchema } from '../kernel/json-schema.ts';
import type { Skill } from '../skills/registry.ts';
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
      isActive: true,
      createdAt: 0,
      updatedAt: 0,
      remoteSourceId: null,
    },
    inputIssues: compileSchema(parameters),
    ...more,
  };
}
const listedNames = (...skills: Skill[]) => toolsOf(skills).listed.map(({ listed }) => listed.name);
const toolOf = (one: Skill): SkillTool => toolsOf([one]).listed[0] as SkillTool;

test('the newest version has the short name; each version has the long one, listed where there are several', () => {
  const skills = [skill('text/v1.9/count'), skill('text/v1.10/count'), skill('data/v1.0/sum')];
  const both = ['text.count', 'text.count.v1.10', 'text.count.v1.9'];
  expect(listedNames(...skills)).toEqual(['data.sum', ...both]);
  const { byName, all } = toolsOf(skills);
  expect(all.map(({ listed }) => listed.name)).toEqual(['data.sum', 'data.sum.v1.0', ...both]);
  expect(byName.get('data.sum')?.listed['_meta']).toEqual({
    'skillwright/version_name': 'data.sum.v1.0',
  });
  expect(byName.get('text.count')?.skill.version).toBe('v1.10');
  expect(byName.get('text.count.v1.10')?.skill.version).toBe('v1.10');
  expect(byName.get('text.count.v1.9')?.skill.version).toBe('v1.9');
});

test('a skill names its tool; the first of two that want the same name has it', () => {
  const draw = (key: string) => skill(key, { mcp: { name: 'draw_chart' } });
  const { byName } = toolsOf([draw('charts/v1.0/a'), draw('charts/v1.0/b')]);
  expect(byName.get('draw_chart')?.skill.name).toBe('a');
  expect(byName.has('charts.a')).toBe(false);
});

test('a name that the protocol refuses for its length is cut, and stays one of its own', () => {
  const long = (end: string) => skill(`${'c'.repeat(60)}/v1.0/${'n'.repeat(63)}${end}`);
  const older = skill(`${'c'.repeat(60)}/v0.${'9'.repeat(20)}/${'n'.repeat(63)}a`);
  const names = listedNames(older, long('a'), long('b'));
  expect(new Set(names).size).toBe(4);
  for (const name of names) expect(name).toMatch(/^[\w.-]{1,128}$/);
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
