import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { findSkillFiles } from './find-modules.ts';
import { SkillLoadError } from './load-error.ts';
import { loadSkillModules } from './modules.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'skills-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const valid = {
  category: 'text',
  name: 'word-count',
  version: 'v1.0',
  displayName: 'Word count',
  description: 'Counts words.',
  parameters: { type: 'object' },
  output: { type: 'object' },
};

function write(path: string, content: string): string {
  const file = join(dir, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}

/** A module with the valid skill and these changes; undefined leaves a field out. */
function writeSkill(path: string, changes: object = {}): string {
  const fields = JSON.stringify({ ...valid, ...changes });
  return write(path, `export default Object.assign(${fields}, { run: (input) => input });`);
}

async function listenAt(path: string): Promise<void> {
  const server = createServer().listen(path);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
}

async function faultOf(options?: { checkSchemas: boolean }): Promise<string> {
  const error = await loadSkillModules([dir], options).then(
    () => new Error('it loaded'),
    (fault: unknown) => fault,
  );
  expect(error).toBeInstanceOf(SkillLoadError);
  return (error as Error).message.replaceAll(dir, '');
}

describe('which files are skills', () => {
  test('modules are found in all folders, in the order of their paths', async () => {
    writeSkill('b/two.mjs', { name: 'two' });
    writeSkill('a.ts', { name: 'one' });
    writeSkill('b/c/three.js', { name: 'three' });
    writeSkill('z.mts', { name: 'four' });
    const modules = await loadSkillModules([dir]);
    expect(modules.map(({ skill }) => skill.name)).toEqual(['one', 'three', 'two', 'four']);
  });

  test('declarations, tests, other files, node_modules, hidden and shared names are left out', async () => {
    const files = ['a.d.ts', 'a.test.ts', 'a.json', 'a.cjs', 'README.md', '.hidden.ts', '_lib.ts'];
    const folders = ['node_modules/x/a.ts', '.git/a.ts', '_support/a.ts'];
    for (const path of [...files, ...folders]) write(path, 'throw new Error("loaded")');
    expect(await loadSkillModules([dir])).toEqual([]);
  });

  test('a directory that is named twice is loaded once', async () => {
    writeSkill('sub/a.ts');
    expect(await loadSkillModules([dir, dir, join(dir, 'sub')])).toHaveLength(1);
  });

  test('a missing directory is an error', async () => {
    await expect(loadSkillModules([join(dir, 'none')])).rejects.toThrow(
      /none: is not a directory$/,
    );
  });

  test('links inside the directory are followed, also as a mounted ConfigMap has them', async () => {
    writeSkill('..data/a.ts');
    symlinkSync('..data/a.ts', join(dir, 'a.ts'));
    symlinkSync('.', join(dir, 'loop'));
    expect(await loadSkillModules([dir])).toHaveLength(1);
  });

  test('links that lead out or nowhere are refused', async () => {
    symlinkSync('/usr', join(dir, 'out'));
    expect(await faultOf()).toMatch(/^\/out: is a symbolic link that leads out of /);
    rmSync(join(dir, 'out'));
    symlinkSync('none.ts', join(dir, 'gone.ts'));
    expect(await faultOf()).toBe('/gone.ts: is a symbolic link to nothing');
    rmSync(join(dir, 'gone.ts'));
    symlinkSync('self.ts', join(dir, 'self.ts'));
    expect(await faultOf()).toBe('/self.ts: is a symbolic link to nothing');
  });

  test.each<[string, (path: string) => unknown, RegExp]>([
    ['a directory', (path) => mkdirSync(path), /must be a regular file$/],
    ['a FIFO', (path) => execFileSync('mkfifo', [path]), /must be a regular file$/],
    ['a socket', listenAt, /must be a regular file$/],
    ['a link to nothing', (path) => symlinkSync('none.md', path), /is a symbolic link to nothing$/],
    ['a link to itself', (path) => symlinkSync('SKILL.md', path), /is a symbolic link to nothing$/],
    ['a link that leads out', (path) => symlinkSync('/etc/hostname', path), /leads out of /],
  ])('a SKILL.md that is %s is left out, and others load', async (_what, make, reason) => {
    writeSkill('one.ts');
    mkdirSync(join(dir, 'skill'));
    await make(join(dir, 'skill/SKILL.md'));

    const { files, faults } = findSkillFiles([dir]);

    expect(files).toEqual([join(dir, 'one.ts')]);
    expect(faults).toEqual([{ error: expect.any(SkillLoadError), isLeftOut: true }]);
    expect(faults[0]?.error.file).toBe(join(dir, 'skill/SKILL.md'));
    expect(faults[0]?.error.message).toMatch(reason);
  });

  test('folders below the thirty-second level are left out', async () => {
    const deep = (levels: number) => Array.from({ length: levels }, () => 'd').join('/');
    writeSkill(`${deep(32)}/one.ts`);
    mkdirSync(join(dir, deep(400)), { recursive: true });

    const { files, faults } = findSkillFiles([dir]);

    expect(files).toHaveLength(1);
    expect(faults).toEqual([{ error: expect.any(SkillLoadError), isLeftOut: true }]);
    expect(faults[0]?.error.message.replace(dir, '')).toBe(
      `/${deep(33)}: is more than 32 folders deep: skills in it are not found`,
    );
  });

  test('a directory of more than 50,000 entries is refused', async () => {
    for (let number = 0; number <= 50_000; number++) mkdirSync(join(dir, String(number)));
    expect(await faultOf()).toBe(
      ': holds more than 50000 files and folders: keep skills in a directory of their own',
    );
  });
});

describe('what a module becomes', () => {
  test('defaults are filled in', async () => {
    const file = writeSkill('a.ts');
    const [module] = await loadSkillModules([dir]);
    expect(module?.skill).toEqual({
      ...valid,
      key: 'text/v1.0/word-count',
      requiredScopes: ['text'],
      timeoutMs: 60_000,
      timeoutField: null,
      maxAttempts: 3,
      examples: [],
      concurrency: [],
      rate: [],
      slowsDown: false,
      config: {},
      continuesConversations: false,
      taskField: null,
      answerField: null,
      mcp: null,
      file,
      folder: null,
      code: null,
    });
  });

  test('run keeps its object', async () => {
    write('a.ts', `export default { ...${JSON.stringify(valid)}, run() { return this.name; } };`);
    const [module] = await loadSkillModules([dir]);
    expect(module?.run({}, {} as never)).toBe('word-count');
  });
});

describe('what stops the load', () => {
  test.each<[fault: string | RegExp, changes: object]>([
    ['category must be a slug such as text or web-search, got "Text"', { category: 'Text' }],
    ['category must not be "jobs", a reserved word', { category: 'jobs' }],
    [/^name must be kebab-case of at most 64 characters/, { name: 'word_count' }],
    [/^name must be kebab-case/, { name: 'x'.repeat(65) }],
    ['version must look like v1.0, got "1.0"', { version: '1.0' }],
    ['version must look like v1.0, got "v01.0"', { version: 'v01.0' }],
    ['displayName must be a text, got ""', { displayName: '' }],
    ['displayName must have at most 200 characters, has 201', { displayName: 'x'.repeat(201) }],
    ['description must have at most 65536 bytes, has 65538', { description: 'é'.repeat(32_769) }],
    ['description must be well-formed Unicode without NUL', { description: 'a\0b' }],
    ['description must be a text, got undefined', { description: undefined }],
    ['parameters must be a JSON Schema object, got an array', { parameters: [] }],
    ['output must be a JSON Schema object, got undefined', { output: undefined }],
    ['requiredScopes must be an array of categories, got "text"', { requiredScopes: 'text' }],
    ['requiredScopes must have 1 to 200 items', { requiredScopes: [] }],
    ['requiredScopes must hold categories, got "*"', { requiredScopes: ['text', '*'] }],
    ['timeoutMs must be an integer from 1 to 3600000, got 0', { timeoutMs: 0 }],
    ['timeoutMs must be an integer from 1 to 3600000, got "60"', { timeoutMs: '60' }],
    ['maxAttempts must be an integer from 1 to 20, got 21', { maxAttempts: 21 }],
    [
      'examples must be an array of { input, output? }, got an array',
      { examples: [{ output: 1 }] },
    ],
    ['continuesConversations must be true or false, got 1', { continuesConversations: 1 }],
    [
      'taskField must be the name of a property of parameters with the type string, got "none"',
      { taskField: 'none' },
    ],
    [
      'answerField must be the name of a property of output with the type string, got "words"',
      { answerField: 'words', output: { properties: { words: { type: 'integer' } } } },
    ],
    [
      'timeoutField must be the name of a property of parameters with the type integer and with minimum and maximum from 1 to 86400000, got "none"',
      { timeoutField: 'none' },
    ],
    ['concurrency limit must be an integer from 1 to 10000, got 0', { concurrency: { limit: 0 } }],
    [
      'concurrency per must be one of platform, organization, agent, user, key, client-key, got "team"',
      { concurrency: [{ limit: 5 }, { limit: 1, per: 'team' }] },
    ],
    [
      'concurrency has two limits per user',
      {
        concurrency: [
          { limit: 5, per: 'user' },
          { limit: 1, per: 'user' },
        ],
      },
    ],
    ['concurrency has the unknown field "max"', { concurrency: { limit: 5, max: 1 } }],
    ['slowsDown must be true or false, got "yes"', { slowsDown: 'yes' }],
    ['rate must be { limit, perSeconds, per? }, or a list of them, got 5', { rate: 5 }],
    [
      'rate limit must be an integer from 1 to 1000000, got 0',
      { rate: { limit: 0, perSeconds: 1 } },
    ],
    [
      'rate limit must be an integer from 1 to 1000000, got 1000000000',
      { rate: { limit: 1e9, perSeconds: 1 } },
    ],
    [
      'rate perSeconds must be an integer from 1 to 86400, got 0',
      { rate: { limit: 1, perSeconds: 0 } },
    ],
    [
      'rate perSeconds must be an integer from 1 to 86400, got 0.5',
      { rate: { limit: 1, perSeconds: 0.5 } },
    ],
    [
      'rate perSeconds must be an integer from 1 to 86400, got 86401',
      { rate: { limit: 1, perSeconds: 86_401 } },
    ],
    ['rate perSeconds must be an integer from 1 to 86400, got undefined', { rate: { limit: 1 } }],
    [
      'rate has two limits per user within 60 seconds',
      {
        rate: [
          { limit: 5, perSeconds: 60, per: 'user' },
          { limit: 5, perSeconds: 3_600, per: 'user' },
          { limit: 9, perSeconds: 60, per: 'user' },
        ],
      },
    ],
    [
      'timeoutField must be the name of a property of parameters with the type integer and with minimum and maximum from 1 to 86400000, got "ms"',
      {
        timeoutField: 'ms',
        parameters: { properties: { ms: { type: 'integer', minimum: 1, maximum: 86_400_001 } } },
      },
    ],
    ['has the unknown field "timeoutMS": did you mean timeoutMs?', { timeoutMS: 5 }],
    ['has the unknown field "colour"', { colour: 'red' }],
    [
      'has the unknown field "displayname": did you mean displayName?',
      { displayName: undefined, displayname: 'Count' },
    ],
  ])('a skill of which can be said: %s', async (fault, changes) => {
    writeSkill('a.ts', changes);
    const sentence = await faultOf();
    expect(sentence.slice(0, 7)).toBe('/a.ts: ');
    expect(sentence.slice(7)).toMatch(fault);
  });

  test.each([
    [
      '',
      'has no default export; a skill is the default export, and the name of a file that is none begins with _',
    ],
    ['export default 5;', 'its default export must be a skill object, got 5'],
    [`export default ${JSON.stringify(valid)};`, 'run must be a function, got undefined'],
    ['throw new Error("no\\nmore");', 'cannot be loaded: no'],
    ['throw "words";', 'cannot be loaded: it threw words'],
    ['import "not-there";', /^cannot be loaded: Cannot find package 'not-there'/],
    ['import "./not-there.mjs";', /^cannot be loaded: .*not-there\.mjs/],
    ['export const a = 1;', /^has no default export; /],
  ])('a module that says %s', async (content, fault) => {
    const file = write('a.mjs', content);
    const sentence = await faultOf();
    expect(sentence.split('\n')).toHaveLength(1);
    expect(join(dir, sentence).startsWith(`${file}: `)).toBe(true);
    expect(sentence.slice('/a.mjs: '.length)).toMatch(fault);
  });

  test.each([
    [
      'a.js',
      'const a = 1;\nexport default {\n  x: ;\n};',
      `Unexpected token ';' (line 3, column 6)`,
    ],
    [
      'a.ts',
      'const a = 1;\nexport default {\n  x: ;\n};',
      'Expression expected (line 3, column 6)',
    ],
    [
      'a.ts',
      'const a: number = 1;\n  const a = 2;',
      `Identifier 'a' has already been declared (line 2, column 9)`,
    ],
    ['a.js', '\nthrow new Error("no")', 'no (line 2, column 7)'],
    ['a.js', 'const d = "words";\nimport word from "word"', `Cannot find package 'word' (line 2)`],
    ['a.js', '\nimport "./none.js";', /none\.js' \(line 2\)$/],
    ['a.js', '\nimport { no } from "node:fs"', /named 'no' \(line 2, column 10\)$/],
  ])('the place of a fault, in %s with %j', async (name, content, fault) => {
    write('package.json', '{"type":"module"}');
    write(name, content);
    const sentence = await faultOf();
    const expected = `/${name}: cannot be loaded: ${fault}`;
    if (typeof fault === 'string') expect(sentence).toBe(expected);
    else expect(sentence).toMatch(fault);
  });

  test('the place of a syntax error in a module that is imported', async () => {
    write('package.json', '{"type":"module"}');
    mkdirSync(join(dir, 'ä b'));
    write('ä b/_help.js', 'export const a = 1;\nexport const = 2;');
    write('a.js', 'import { a } from "./ä b/_help.js";\nexport default a;');
    const place = '(line 2, column 14 of /ä b/_help.js)';
    expect(await faultOf()).toBe(`/a.js: cannot be loaded: Unexpected token '=' ${place}`);
  });

  test('the line of a field', async () => {
    write('a.mjs', `export default {\n  category: 'text',\n  name: 'a b',\n  run() {},\n};`);
    expect(await faultOf()).toMatch(/^\/a\.mjs: name must be .* \(line 3\)$/);
    write('0.mjs', `const a = 1;\nexport default {\n  name: 'a',\n};`);
    expect(await faultOf()).toMatch(/^\/0\.mjs: category must be .* \(line 2\)$/);
  });

  test('TypeScript that cannot be erased', async () => {
    write('a.ts', 'enum A { B } export default A');
    expect(await faultOf()).toMatch(/^\/a\.ts: .*enum.*$/);
  });

  test.each([
    ['_helper.ts', './_helper', './_helper.ts'],
    ['_helper.ts', './_helper.js', './_helper.ts'],
    ['_lib/_helper.mjs', './_lib/_helper', './_lib/_helper.mjs'],
    ['_lib/index.ts', './_lib', './_lib/index.ts'],
  ])('an import of %s as %s, with how to write it', async (file, specifier, meant) => {
    mkdirSync(join(dir, '_lib'));
    writeFileSync(join(dir, file), 'export const a = 1;');
    writeFileSync(join(dir, 'a.ts'), `import { a } from '${specifier}';\nexport default a;`);
    expect(await faultOf()).toMatch(
      RegExp(`^/a\\.ts: cannot be loaded: .*: write ${RegExp.escape(meant)} \\(line 1\\)$`),
    );
  });

  test.each([
    [{ parameters: { type: 'object', requird: ['text'] } }, 'requird', 'required', ''],
    [
      { output: { type: 'object', properties: { a: { maxlength: 1 } } } },
      'maxlength',
      'maxLength',
      ' at properties.a',
    ],
    [{ output: { anyOf: [{ proprties: {} }] } }, 'proprties', 'properties', ' at anyOf.0'],
    [{ output: { $def: {} } }, '$def', '$defs', ''],
  ])(
    'a misspelt keyword of a schema, when schemas are checked: %j',
    async (changes, name, meant, at) => {
      writeSkill('a.ts', changes);
      const [field] = Object.keys(changes);
      expect(await faultOf({ checkSchemas: true })).toMatch(
        `/a.ts: ${field} has the unknown keyword "${name}"${at}: did you mean ${meant}?`,
      );
    },
  );

  test('keywords of its author, of OpenAPI and names of fields are no misspelt keywords', async () => {
    writeSkill('a.ts', {
      parameters: {
        type: 'object',
        'x-order': ['a'],
        example: {},
        nullable: true,
        properties: { requird: { type: 'string', default: { propertys: 1 }, enum: ['maxlength'] } },
      },
    });
    expect(await loadSkillModules([dir], { checkSchemas: true })).toHaveLength(1);
  });

  test('two skills of one name and version, with both files', async () => {
    writeSkill('a.ts');
    writeSkill('b.ts');
    expect(await faultOf()).toBe(
      '/b.ts: defines text/v1.0/word-count, which /a.ts defines already',
    );
  });

  test.each([
    ['output is no valid JSON Schema', { output: { type: 'text' } }],
    ['output is no valid JSON Schema', { output: { required: 1 } }],
    // A pattern that takes more than linear time.
    ['parameters', { parameters: { pattern: '(?=a)b' } }],
  ])('a faulty schema, when schemas are checked: %s, of %j', async (fault, changes) => {
    writeSkill('a.ts', changes);
    expect(await loadSkillModules([dir])).toHaveLength(1);
    const sentence = await faultOf({ checkSchemas: true });
    expect(sentence.split('\n')).toHaveLength(1);
    expect(sentence.startsWith(`/a.ts: ${fault}`)).toBe(true);
  });
});
