import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileSchema } from '../../kernel/json-schema.ts';
import { InputSchema } from '../skills/input-schema.ts';
import { type Skill, skillKey } from '../skills/registry.ts';
import { ToolBox, type ToolUse } from './tools.ts';

function skill(path: string, more: Partial<Skill> = {}): Skill {
  const [category = '', version = '', name = ''] = path.split('/');
  const { parameters = { type: 'object' } } = more;
  return {
    id: path,
    category,
    name,
    version,
    displayName: name,
    description: `Does ${name}`,
    parameters,
    output: {},
    requiredScopes: [category],
    timeoutMs: 1_000,
    maxAttempts: 3,
    continuesConversations: false,
    taskField: null,
    timeoutField: null,
    answerField: null,
    mcp: null,
    examples: [],
    config: {},
    hasConfig: false,
    limits: [],
    concurrency: [],
    rate: [],
    slowsDown: false,
    remoteSourceId: null,
    organizations: null,
    isActive: true,
    createdAt: 0,
    updatedAt: 0,
    input: new InputSchema(parameters, false),
    ...more,
  };
}

const everything = { tools: true, files: false };
const all = {
  skills: ['*'],
  agents: [],
  approvals: [],
  rules: [],
  memory: 'read_write',
} as const;
const boxOf = (...skills: Skill[]) => new ToolBox(skills, all, ['*'], everything);
const namesOf = ({ offers }: ToolBox) => offers.map(({ name }) => name);
const memoryTools = ['remember', 'recall', 'forget'];
const ownTools = [...memoryTools, 'read_result'];
const call = (name: string, input: unknown) => ({
  id: 'c',
  name,
  input: typeof input === 'string' ? input : JSON.stringify(input),
});

const slug = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/);
const kebab = fc.stringMatching(/^[a-z0-9]{1,20}(-[a-z0-9]{1,20}){0,2}$/);
const version = fc.stringMatching(/^v(0|[1-9]\d{0,3})\.(0|[1-9]\d{0,3})$/);
const path = fc.tuple(slug, version, kebab).map((parts) => parts.join('/'));

describe('the name of a tool', () => {
  test('names the skill', () => {
    expect(namesOf(boxOf(skill('text/v1.0/summarize')))).toEqual([
      'text__summarize__v1_0',
      ...ownTools,
    ]);
  });

  test('is accepted by providers, unique to the skill, and leads back to it', () => {
    fc.assert(
      fc.property(fc.uniqueArray(path, { minLength: 500, maxLength: 500 }), (paths) => {
        const names = new Set<string>();
        for (let from = 0; from < paths.length; from += 25) {
          const some = paths.slice(from, from + 25);
          const box = boxOf(...some.map((one) => skill(one)));
          const own = namesOf(box).slice(0, -ownTools.length);
          expect(own).toHaveLength(25);
          for (const [i, name] of own.entries()) {
            expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
            expect(box.nameOf(call(name, {}))).toBe(some[i]);
            names.add(name);
          }
        }
        expect(names.size).toBe(500);
      }),
      { numRuns: 5 },
    );
  });

  test('that is too long is cut and gets a hash, so that it stays unique', () => {
    const long = 'x'.repeat(63);
    const box = boxOf(skill(`${long}/v1.0/a`), skill(`${long}/v1.1/a`), skill(`${long}/v1.0/b`));

    const names = namesOf(box).slice(0, 3);

    expect(new Set(names).size).toBe(3);
    for (const name of names) expect(name).toHaveLength(64);
  });

  test('that a model invented is kept as it is', () => {
    expect(boxOf().nameOf(call('x'.repeat(300), {}))).toBe('x'.repeat(200));
  });
});

describe('the list of tools', () => {
  const skills = [
    'text/v1.0/summarize',
    'text/v2.0/summarize',
    'text/v1.0/words',
    'web/v1.0/fetch',
  ];
  const offered = (patterns: string[], scopes: string[], tools: boolean | string[] = true) => {
    const box = new ToolBox(
      skills.map((one) => skill(one)),
      { ...all, skills: patterns },
      scopes,
      { tools, files: false },
    );
    return namesOf(box)
      .filter((name) => !ownTools.includes(name))
      .map((name) => box.nameOf(call(name, {})));
  };

  test.each([
    [['*'], skills],
    [['text/*'], skills.slice(0, 3)],
    [['text'], skills.slice(0, 3)],
    [['text/v1.0'], ['text/v1.0/summarize', 'text/v1.0/words']],
    [['text/v1.0/*'], ['text/v1.0/summarize', 'text/v1.0/words']],
    [['*/*/summarize'], ['text/v1.0/summarize', 'text/v2.0/summarize']],
    [
      ['text/v1.0/words', 'web/*'],
      ['text/v1.0/words', 'web/v1.0/fetch'],
    ],
    [['tex', 'text/v1', 'te*', '', '/', 'TEXT'], []],
    [['__proto__', 'constructor/*', 'text/v1.0/words/more'], []],
    [[], []],
  ])('is filtered by the patterns %j', (patterns, expected) => {
    expect(offered(patterns, ['*'])).toEqual(expected);
    // The tools that the request names.
    expect(offered(['*'], ['*'], patterns)).toEqual(expected);
  });

  test.each([
    [['*'], true],
    [['text/*'], true],
    [['*/*/words'], true],
    [['text/v1.0/words'], true],
    [['text/v2.0', 'web/*'], false],
    [[], false],
  ])(
    'with the patterns %j of approvals, a call of text/v1.0/words needs one: %s',
    (approvals, expected) => {
      const box = new ToolBox([skill('text/v1.0/words')], { ...all, approvals }, ['*'], everything);

      expect(box.read(call('text__words__v1_0', {}))).toMatchObject({ needsApproval: expected });
    },
  );

  test("has the skills that the agent, the caller's key and the request all allow", () => {
    expect(offered(['*'], ['web'])).toEqual(['web/v1.0/fetch']);
    expect(offered(['text/*'], ['web'])).toEqual([]);
    expect(offered(['*'], [])).toEqual([]);
    expect(offered(['text/*'], ['*'], ['web/*', 'text/v1.0/words'])).toEqual(['text/v1.0/words']);
    const guarded = skill('text/v1.0/guarded', { requiredScopes: ['text', 'secret'] });
    const box = new ToolBox([guarded], all, ['text'], everything);
    expect(namesOf(box)).toEqual(ownTools);
    expect(box.read(call('text__guarded__v1_0', {}))).toMatchObject({ kind: 'refused' });
  });

  test('is empty when the request wants no tools', () => {
    const box = new ToolBox([skill('a/v1.0/b')], all, ['*'], { tools: false, files: false });

    expect(box.offers).toEqual([]);
    for (const name of [...ownTools, 'a__b__v1_0', 'read_file', 'find_tools']) {
      expect(box.read(call(name, { id: 'x', content: 'x' }))).toEqual({
        kind: 'refused',
        message: `There is no tool "${name}". There are none.`,
      });
    }
  });

  test('has up to 40 skills; of more the model sees find_tools, which names their categories', () => {
    const some = (n: number) =>
      boxOf(...Array.from({ length: n }, (_, i) => skill(`a/v1.0/s${i}`)));

    expect(namesOf(some(40))).toHaveLength(40 + ownTools.length);
    expect(namesOf(some(40))).not.toContain('find_tools');
    const box = some(500);
    expect(namesOf(box)).toEqual(['find_tools', ...ownTools]);
    expect(box.offers[0]?.description).toContain('a (500)');
    expect(box.read(call('a__s499__v1_0', {})).kind).toBe('skill');
  });

  test('has descriptions of at most 1,024 characters, none of them cut in two', () => {
    const [offer] = boxOf(skill('a/v1.0/b', { description: `${'x'.repeat(1_023)}😀` })).offers;

    expect(offer?.description.length).toBeLessThanOrEqual(1_024);
    expect(offer?.description.isWellFormed()).toBe(true);
  });

  test.each<Record<string, unknown>>([
    { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
    { properties: { a: {} } },
    { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' },
    { type: ['object', 'null'], properties: {} },
    { type: 'string' },
    { type: 'array', items: { type: 'string' } },
    {},
    { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }] },
    { type: 'object', properties: { a: {} }, oneOf: [{ required: ['a'] }] },
    { type: 'object', allOf: [{ required: ['a'] }] },
    { type: 'object', enum: [{ a: 1 }] },
    { type: 'object', not: { required: ['a'] } },
    { $ref: '#/$defs/it', $defs: { it: { type: 'object' } } },
  ])(
    'has an object at the root of its schema, and nothing there that providers refuse: %j',
    (parameters) => {
      const [offer] = boxOf(skill('a/v1.0/b', { parameters })).offers;

      expect(offer?.parameters).toMatchObject({ type: 'object' });
      for (const keyword of ['$schema', '$ref', 'oneOf', 'anyOf', 'allOf', 'enum', 'not']) {
        expect(offer?.parameters).not.toHaveProperty(keyword);
      }
    },
  );

  test('keeps the references of a schema valid, also when it is nested', () => {
    const tree = {
      $ref: '#/$defs/node',
      $defs: {
        node: {
          type: 'object',
          properties: { $ref: { type: 'string' }, child: { $ref: '#/$defs/node' } },
          required: ['name'],
        },
      },
    };
    const [offer] = boxOf(skill('a/v1.0/b', { parameters: tree })).offers;
    const judge = compileSchema(offer?.parameters ?? {});

    expect(judge({ input: { name: 'a', child: { name: 'b' } } })).toBeNull();
    expect(judge({ input: { name: 'a', child: {} } })).not.toBeNull();
    expect(judge({})).not.toBeNull();
    const itself = { anyOf: [{ type: 'string' }, { type: 'array', items: { $ref: '#' } }] };
    const [list] = boxOf(skill('a/v1.0/b', { parameters: itself })).offers;
    const judgeList = compileSchema(list?.parameters ?? {});
    expect(judgeList({ input: ['a', ['b']] })).toBeNull();
    expect(judgeList({ input: ['a', [{ input: 'b' }]] })).not.toBeNull();
  });
});

describe('files of a task', () => {
  const parameters = {
    type: 'object',
    required: ['task'],
    properties: {
      task: { type: 'string' },
      files: { type: 'array', items: { type: 'string' } },
    },
  };
  const giver = skill('agent/v1.0/run-task', { parameters, taskField: 'task' });
  const tides = { id: 'tides', name: 'Tides', description: '' };
  const box = new ToolBox([giver], { ...all, agents: [tides] }, ['*'], everything);

  test('are not offered to a model, which could send data out with the address of one', () => {
    for (const name of ['agent__run-task__v1_0', 'agent__tides']) {
      const offer = box.offers.find((one) => one.name === name);
      expect(offer?.parameters['properties']).toEqual({ task: { type: 'string' } });
      const files = ['https://evil.example/?d=secret'];
      expect(box.read(call(name, { task: 'Go.', files }))).toMatchObject({
        kind: 'refused',
        message: expect.stringContaining('cannot be urls'),
      });
    }
    expect(box.read(call('agent__tides', { task: 'Go.' }))).toMatchObject({ agent: 'tides' });
  });

  test('a rule may name the agent that gets it', () => {
    const patterns = ['agent/tides', 'agent/other', 'agent/*', 'text/*'];
    const rules = patterns.map((tools) => ({
      tools,
      // biome-ignore lint/suspicious/noThenProperty: the outcome of a rule
      then: 'refuse' as const,
    }));
    const ruled = new ToolBox([giver], { ...all, agents: [tides], rules }, ['*'], everything);

    const numbers = (name: string) => {
      const use = ruled.read(call(name, { task: 'Go.' }));
      return 'rules' in use ? use.rules.map(({ number }) => number) : null;
    };

    expect(numbers('agent__tides')).toEqual([1, 3]);
    expect(numbers('agent__run-task__v1_0')).toEqual([3]);
  });
});

describe('tools by the hundred', () => {
  const forms = ['create', 'list', 'delete', 'update'];
  const things = ['invoice', 'customer', 'ticket', 'shipment', 'contract', 'employee', 'server'];
  const many = things.flatMap((thing) =>
    forms.flatMap((form) =>
      ['v1.0', 'v2.0'].map((version) =>
        skill(`${thing}s/${version}/${form}-${thing}`, { description: `Can ${form} a ${thing}.` }),
      ),
    ),
  );
  const box = boxOf(...many);
  const user = { role: 'user', text: 'Bill them' } as const;
  const asked = (id: string, name: string, input: object) =>
    ({
      role: 'assistant',
      text: '',
      toolCalls: [{ id, name, input: JSON.stringify(input) }],
    }) as const;
  const answered = (callId: string, name: string, output: unknown) =>
    ({ role: 'tool', callId, name, text: JSON.stringify(output), isError: false }) as const;
  const find = async (query: string, limit = 8) => {
    const use = box.read(call('find_tools', { query, limit }));
    expect(use).toEqual({ kind: 'find', query, limit });
    return (await box.find(query, limit)) as { tools: { name: string; description: string }[] };
  };

  test('are found by what they do, best first, in the forms of their words', async () => {
    const { tools } = await find('creating invoices', 2);

    expect(tools.map(({ name }) => name).sort()).toEqual([
      'invoices__create-invoice__v1_0',
      'invoices__create-invoice__v2_0',
    ]);
    expect(tools[0]?.description).toBe('Can create a invoice.');
    expect(await find('zzz')).toBeNull();
    expect(box.read(call('find_tools', {}))).toMatchObject({ kind: 'refused' });
  });

  test('are offered once found, behind those that were offered before', async () => {
    const first = await find('delete a server', 1);
    const second = await find('list customers', 1);
    const once = [user, asked('1', 'find_tools', {}), answered('1', 'find_tools', first)];
    const twice = [...once, asked('2', 'find_tools', {}), answered('2', 'find_tools', second)];
    const names = (messages: Parameters<ToolBox['offersAfter']>[0]) =>
      box.offersAfter(messages).map(({ name }) => name);

    expect(names([user])).toEqual(namesOf(box));
    expect(names(once)).toEqual([...namesOf(box), first.tools[0]?.name]);
    expect(names(twice)).toEqual([...names(once), second.tools[0]?.name]);
    expect(box.offersAfter(twice)).toBe(box.offersAfter(twice));
  });

  test('that were called are offered too, and names of no tool are not', () => {
    const called = asked('1', 'tickets__list-ticket__v1_0', {});
    const lies = answered('2', 'find_tools', { tools: [{ name: 'shell' }, 7, null] });

    expect(box.offersAfter([user, called, lies]).map(({ name }) => name)).toEqual([
      ...namesOf(box),
      'tickets__list-ticket__v1_0',
    ]);
  });

  test('are at most 100 beside those of the platform', () => {
    const large = boxOf(...Array.from({ length: 300 }, (_, i) => skill(`a/v1.0/s${i}`)));
    const calls = Array.from({ length: 300 }, (_, i) => asked(`${i}`, `a__s${i}__v1_0`, {}));

    const offers = large.offersAfter(calls);

    expect(offers).toHaveLength(large.offers.length + 100);
    expect(offers.at(-1)?.name).toBe('a__s299__v1_0');
  });
});

describe('a call', () => {
  const words = skill('text/v1.0/words', {
    parameters: {
      type: 'object',
      properties: { text: { type: 'string' }, n: { type: 'number' } },
      required: ['text'],
    },
  });
  const list = skill('text/v1.0/list', { parameters: { type: 'array', items: {} } });
  const box = new ToolBox([words, list], all, ['*'], { tools: true, files: true });
  const read = (input: unknown) => box.read(call('text__words__v1_0', input));

  test('of a skill is its input as JSON', () => {
    expect(read({ text: 'å 😀' })).toEqual({
      kind: 'skill',
      skill: skillKey('text', 'v1.0', 'words'),
      input: '{"text":"å 😀"}',
      needsApproval: false,
      rules: [],
    });
  });

  test('of a skill whose input is no object has it in the field input', () => {
    const readList = (input: unknown) => box.read(call('text__list__v1_0', input));

    expect(readList({ input: [1] })).toMatchObject({ kind: 'skill', input: '[1]' });
    expect(readList({ input: 'x' })).toMatchObject({
      kind: 'refused',
      message: "The arguments break the tool's schema: body must be array",
    });
    expect(readList({})).toEqual({
      kind: 'refused',
      message: "The arguments break the tool's schema: input is required",
    });
  });

  test('without arguments has an empty object', () => {
    const none = boxOf(skill('a/v1.0/b'));

    for (const input of ['', ' \n', '{}']) {
      expect(none.read(call('a__b__v1_0', input))).toMatchObject({ kind: 'skill', input: '{}' });
    }
  });

  test('of the memory, or of a file, is parsed', () => {
    const remembered = { content: 'x', tag: 't' };
    const forged = { ...remembered, source: { conversation_id: 'a', message_id: 'b' } };
    expect(box.read(call('remember', forged))).toEqual({
      kind: 'memory',
      verb: 'remember',
      payload: remembered,
    });
    expect(box.read(call('forget', { id: 'x' }))).toEqual({
      kind: 'memory',
      verb: 'forget',
      payload: 'x',
    });
    expect(box.read(call('read_file', { path: 'a.md', offset: 3 }))).toEqual({
      kind: 'file',
      path: 'a.md',
      offset: 3,
    });
    expect(boxOf().read(call('read_file', {})).kind).toBe('refused');
    expect(box.read(call('read_result', { call_id: 'x', offset: 3, length: 1e9 }))).toEqual({
      kind: 'result',
      callId: 'x',
      offset: 3,
      length: 40_000,
    });
    expect(box.read(call('read_result', { call_id: 1 })).kind).toBe('refused');
  });

  test.each<[string, string, unknown]>([
    ['breaks the schema', "The arguments break the tool's schema: text is required", {}],
    [
      'is of another type',
      "The arguments break the tool's schema: text must be string",
      { text: 1 },
    ],
    ['is no object', 'The arguments must be a JSON object', '[]'],
    ['is null', 'The arguments must be a JSON object', 'null'],
    ['is cut off', 'The arguments are not valid JSON: ', '{"text": "abc'],
    ['is no JSON', 'The arguments are not valid JSON: ', '😀'],
    ['is two values', 'The arguments are not valid JSON: ', '{"text":"a"}{"text":"b"}'],
    ['is too long', 'The arguments are too long: at most 256 KiB', { text: 'x'.repeat(1_048_576) }],
    [
      'has half a character',
      'The JSON of the arguments contains a NUL character or a lone surrogate',
      '{"text":"\\ud83d"}',
    ],
    [
      'has a NUL',
      'The JSON of the arguments contains a NUL character or a lone surrogate',
      '{"text":"\\u0000"}',
    ],
    [
      'has a number that no JSON can carry',
      'The JSON of the arguments contains a number that is too large',
      '{"text":"a","n":1e999}',
    ],
    [
      'is nested too deeply',
      'The JSON of the arguments is nested deeper than 64 levels',
      `{"text":${'['.repeat(100)}${']'.repeat(100)}}`,
    ],
    [
      'is nested as deeply as fits',
      'The JSON of the arguments is nested deeper than 64 levels',
      `{"text":${'['.repeat(130_000)}${']'.repeat(130_000)}}`,
    ],
  ])('whose input %s is refused with the reason', (_, message, input) => {
    expect(read(input)).toEqual({
      kind: 'refused',
      message: expect.stringMatching(start(message)),
    });
  });

  test('of an unknown tool is refused with the list of tools', () => {
    expect(box.read(call('shell', {}))).toEqual({
      kind: 'refused',
      message:
        'There is no tool "shell". There are: text__words__v1_0, text__list__v1_0, remember, recall, forget, read_file, read_result.',
    });
    for (const name of ['__proto__', 'constructor', 'toString', '', '\ud800\0', 'x'.repeat(1e6)]) {
      expectTold(box.read(call(name, {})));
    }
  });

  test('of any form is parsed or refused with a clean sentence', () => {
    const name = fc.oneof(
      fc.constantFrom('text__words__v1_0', 'text__list__v1_0', 'recall', 'forget', 'read_file'),
      fc.string({ unit: 'binary' }),
    );
    const input = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json({ stringUnit: 'binary' }),
      fc
        .dictionary(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }))
        .map((one) => JSON.stringify({ ...one, text: 1 })),
    );
    fc.assert(
      fc.property(name, input, (tool, text) => {
        const use = box.read({ id: 'c', name: tool, input: text });

        if (use.kind === 'refused') expectTold(use);
        if (use.kind === 'skill') expect(words.input.issuesOf(JSON.parse(use.input))).toBeDefined();
      }),
    );
  });
});

function expectTold(use: ToolUse): void {
  if (use.kind !== 'refused') throw new Error(`It was understood: ${use.kind}`);
  expect(use.message).toMatch(/\S/);
  expect(use.message.length).toBeLessThanOrEqual(2_000);
  expect(use.message.isWellFormed()).toBe(true);
  expect(use.message).not.toContain('\0');
}

function start(text: string): RegExp {
  return new RegExp(`^${RegExp.escape(text)}`);
}
