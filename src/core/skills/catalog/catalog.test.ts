import { readdirSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { fakeModel } from '../../../../test/support/fake-model.ts';
import { allows, type JsonSchema, trySkill } from '../../../../test/support/try-skill.ts';
import type { Egress, EgressResponse } from '../../../adapters/egress/guarded-fetch.ts';
import { openAiSchema } from '../../../adapters/models/protocols/sent-schemas.ts';
import type { SkillDefinition } from '../definition.ts';

/** The examples ask for pages of example.com, which here is this one. */
const examplePage: EgressResponse = {
  status: 200,
  headers: { 'content-type': 'text/html; charset=utf-8' },
  body: Buffer.from(
    '<title>Example Domain</title><p>For use in <a href="/docs">documents</a>.</p>',
  ),
  truncated: false,
  url: 'https://example.com/',
};
const exampleWeb: Pick<Egress, 'request' | 'close'> = {
  request: async (url) => {
    expect(new URL(url).hostname).toBe('example.com');
    return { ...examplePage, url };
  },
  close: async () => undefined,
};

/** The examples of skills that think are answered by this model, with whatever the schema allows. */
const exampleModel = fakeModel(({ schema }) => {
  return schema === undefined ? 'An answer.' : (sampleOf(schema) as object);
});

function sampleOf(schema: JsonSchema): unknown {
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>);
  if (schema['type'] === 'boolean') return true;
  if (properties.length === 0) return schema['type'] === 'array' ? [] : 'text';
  return Object.fromEntries(properties.map(([name, inner]) => [name, sampleOf(inner)]));
}

vi.mock('../../../adapters/egress/skills-egress.ts', () => ({ skillsEgress: () => exampleWeb }));

const folder = new URL('.', import.meta.url);
const skills = await Promise.all(
  categories().flatMap((category) =>
    readdirSync(new URL(`${category}/`, folder))
      .filter((file) => !file.endsWith('.test.ts'))
      .map(async (file) => {
        const name = file.replace(/[.]ts$/, '');
        const module: { default: SkillDefinition } = await import(`./${category}/${name}.ts`);
        return { path: `${category}/${name}`, skill: module.default };
      }),
  ),
);
const examples = skills.flatMap(({ path, skill }) =>
  (skill.examples ?? []).map((example, i) => ({ path, skill, example, number: i + 1 })),
);

function categories(): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('_'))
    .map((entry) => entry.name);
}

/** Every schema inside a schema, by its place, as far as properties and items lead. */
function propertiesOf(schema: JsonSchema, place: string): [string, JsonSchema][] {
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>);
  const below = properties.flatMap(([name, inner]) => [
    [`${place}.${name}`, inner] as [string, JsonSchema],
    ...propertiesOf(inner, `${place}.${name}`),
  ]);
  const items = schema['items'];
  return items === undefined ? below : [...below, ...propertiesOf(items as JsonSchema, place)];
}

test.each(skills)('OpenAI takes the parameters of $path', ({ skill }) => {
  const sent = openAiSchema(skill.parameters);
  const isOpenList = (one: JsonSchema) =>
    [one['type']].flat().includes('array') && one['items'] === undefined;

  expect(sent).toMatchObject({ type: 'object', properties: expect.anything() });
  expect(propertiesOf(sent, '').filter(([, one]) => isOpenList(one))).toEqual([]);
});

test('the catalog has the skills that the documentation names', () => {
  expect(skills.map(({ path }) => path)).toEqual([
    'agent/form-memories',
    'agent/handle-event',
    'agent/run-task',
    'data/convert',
    'data/parse-csv',
    'data/query-json',
    'data/validate-json',
    'documents/extract-text',
    'safety/moderate',
    'safety/redact-personal-data',
    'text/classify',
    'text/diff',
    'text/extract',
    'text/render-template',
    'text/summarize',
    'text/translate',
    'text/word-count',
    'util/echo',
    'util/wait',
    'web/fetch-page',
    'web/http-request',
  ]);
});

describe.each(skills)('$path', ({ path, skill }) => {
  test('is named after its file and version 1.0', () => {
    expect(path).toBe(`${skill.category}/${skill.name}`);
    expect(skill.version).toBe('v1.0');
  });

  test('says what it is, and what each field is', () => {
    const fields = [
      ...propertiesOf(skill.parameters, 'parameters'),
      ...propertiesOf(skill.output, 'output'),
    ];
    const silent = fields.filter(([, schema]) => typeof schema['description'] !== 'string');

    expect(skill.description).toMatch(/\.$/);
    expect(silent.map(([place]) => place)).toEqual([]);
    expect(fields.map(([place]) => place).filter((place) => !/^[a-z0-9_.]+$/.test(place))).toEqual(
      [],
    );
  });

  test('takes an object with known fields only, unless it takes any event, and has an example', () => {
    const takesAll = path === 'agent/handle-event';
    expect(skill.parameters['additionalProperties'] ?? true).toBe(takesAll);
    expect(skill.output['additionalProperties']).toBe(false);
    expect(allows(skill.parameters, { made_up: 1 })).toBe(takesAll);
    expect(skill.examples?.length).toBeGreaterThan(0);
  });
});

test.each(examples)('example $number of $path works as shown', async ({ skill, example }) => {
  const output = await trySkill(skill, example.input, { generate: exampleModel.generate });

  if (example.output !== undefined) expect(output).toEqual(example.output);
});
