import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findSkillFiles } from './find-modules.ts';
import { SkillLoadError } from './load-error.ts';
import { loadNext, loadSkillModules, type SkillModule } from './modules.ts';
import { readSkillMd } from './skill-md.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'skills-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

function write(path: string, content: string | Buffer): string {
  const file = join(dir, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}

const plain = 'name: pdf\ndescription: Reads PDF files.\n';

/** The SKILL.md of a folder `pdf` with this front matter. */
function writeSkill(frontMatter = plain, body = '# PDF\n'): string {
  return write('pdf/SKILL.md', `---\n${frontMatter}---\n${body}`);
}

async function keysOf(): Promise<string[]> {
  return (await loadSkillModules([dir])).map(({ skill }) => skill.key);
}

async function faultOf(): Promise<string> {
  const error = await loadSkillModules([dir]).then(
    () => new Error('it loaded'),
    (fault: unknown) => fault,
  );
  expect(error).toBeInstanceOf(SkillLoadError);
  return (error as Error).message.replaceAll(dir, '');
}

/** What is wrong with a SKILL.md of this front matter, without the file's name. */
async function faultOfSkill(frontMatter: string): Promise<string> {
  writeSkill(frontMatter);
  return (await faultOf()).replace('/pdf/SKILL.md: ', '');
}

test('one that breaks a rule fails alone, and the others load', async () => {
  writeSkill('name: other\ndescription: Reads.\n');
  write('good/SKILL.md', '---\nname: good\ndescription: Reads.\n---\n');
  write('twin/SKILL.md', '---\nname: twin\ndescription: Reads.\n---\n');
  write('z/twin/SKILL.md', '---\nname: twin\ndescription: Reads.\n---\n');
  const owners = new Map<string, string>();
  const loads: Promise<SkillModule>[] = [];

  for (const file of findSkillFiles([dir]).files) {
    loads.push(loadNext(file, owners, {}));
    await Promise.allSettled(loads);
  }

  const ends = await Promise.allSettled(loads);
  const faults = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason.message] : []));
  expect([...owners.keys()]).toEqual(['agent-skills/v1.0/good', 'agent-skills/v1.0/twin']);
  expect(faults.map((fault) => fault.replaceAll(dir, ''))).toEqual([
    '/pdf/SKILL.md: name must be the name of its folder, "pdf", got "other"',
    '/z/twin/SKILL.md: defines agent-skills/v1.0/twin, which /twin/SKILL.md defines already',
  ]);
});

describe('which folders are skills', () => {
  test('a folder with a SKILL.md is one skill, and nothing in it is looked at', async () => {
    writeSkill();
    write('pdf/scripts/run.js', 'throw new Error("loaded")');
    write('pdf/index.ts', 'throw new Error("loaded")');
    write('pdf/inner/SKILL.md', 'no skill');
    symlinkSync('/usr', join(dir, 'pdf/out.js'));
    expect(await keysOf()).toEqual(['agent-skills/v1.0/pdf']);
  });

  test('they load together with modules, in the order of their paths', async () => {
    writeSkill();
    const module = (name: string) =>
      `export default ${JSON.stringify({
        ...{ category: 'text', version: 'v1.0', displayName: 'One', description: 'One.' },
        ...{ name, parameters: {}, output: {} },
      }).slice(0, -1)}, run() {} };`;
    write('a.ts', module('first'));
    write('z/z.ts', module('last'));
    expect(await keysOf()).toEqual(['text/v1.0/first', 'agent-skills/v1.0/pdf', 'text/v1.0/last']);
  });

  test('skills are found at any depth, the directory itself included', async () => {
    const file = write('team/office/pdf/SKILL.md', `---\n${plain}---\n`);
    expect(await keysOf()).toHaveLength(1);
    const [module] = await loadSkillModules([dirname(file)]);
    expect(module?.skill).toMatchObject({ file, folder: dirname(file) });
  });

  test('skill.md is taken where there is no SKILL.md', async () => {
    write('pdf/skill.md', `---\n${plain}---\n`);
    expect(await keysOf()).toHaveLength(1);
    writeSkill('name: pdf\ndescription: Wins.\n');
    const [module] = await loadSkillModules([dir]);
    expect(module?.skill.description).toBe('Wins.');
  });

  test('hidden and shared folders and node_modules are left out', async () => {
    for (const folder of ['.agents', '_drafts', 'node_modules']) {
      write(`${folder}/pdf/SKILL.md`, 'no skill');
    }
    expect(await keysOf()).toEqual([]);
  });

  test('a folder that two links lead to is one skill, for any names of the links', async () => {
    writeSkill();
    symlinkSync('pdf', join(dir, 'an-alias'));
    symlinkSync('pdf', join(dir, 'zz'));
    expect(await keysOf()).toEqual(['agent-skills/v1.0/pdf']);
  });

  test('a mounted ConfigMap is a skill', async () => {
    write('pdf/..2026/SKILL.md', `---\n${plain}---\n`);
    symlinkSync('..2026', join(dir, 'pdf/..data'));
    symlinkSync('..data/SKILL.md', join(dir, 'pdf/SKILL.md'));
    expect(await keysOf()).toEqual(['agent-skills/v1.0/pdf']);
  });

  test('two skills of one category, version and name are refused with both files', async () => {
    writeSkill();
    write('more/pdf/SKILL.md', `---\n${plain}---\n`);
    expect(await faultOf()).toBe(
      '/pdf/SKILL.md: defines agent-skills/v1.0/pdf, which /more/pdf/SKILL.md defines already',
    );
  });

  test('a SKILL.md that is a link to elsewhere or to nothing, a folder or a FIFO is refused', async () => {
    mkdirSync(join(dir, 'pdf'));
    const path = join(dir, 'pdf/SKILL.md');
    symlinkSync('/etc/passwd', path);
    expect(await faultOf()).toMatch(/^\/pdf\/SKILL.md: is a symbolic link that leads out of /);
    rmSync(path);
    symlinkSync('none', path);
    expect(await faultOf()).toBe('/pdf/SKILL.md: is a symbolic link to nothing');
    rmSync(path);
    mkdirSync(path);
    expect(await faultOf()).toBe('/pdf/SKILL.md: must be a regular file');
    rmSync(path, { recursive: true });
    execFileSync('mkfifo', [path]);
    expect(await faultOf()).toBe('/pdf/SKILL.md: must be a regular file');
  });
});

describe('what the standard allows is taken as it is', () => {
  test('all fields', () => {
    const file = writeSkill(
      `${plain}license: Proprietary. LICENSE.txt has complete terms
compatibility: Requires Python 3.14+ and uv
metadata:
  author: example-org
  version: 1.10
  stable: yes
allowed-tools: Bash(git add:*, git commit:*) Read, web/*
`,
      '\n# PDF\n\nText.\n',
    );
    expect(readSkillMd(file)).toEqual({
      name: 'pdf',
      description: 'Reads PDF files.',
      compatibility: 'Requires Python 3.14+ and uv',
      metadata: new Map([
        ['author', 'example-org'],
        ['version', '1.10'],
        ['stable', 'yes'],
      ]),
      allowedTools: ['Bash(git add:*, git commit:*)', 'Read', 'web/*'],
      body: '# PDF\n\nText.',
      bodyOffset: expect.any(Number),
    });
  });

  test.each([
    ['no body', `---\n${plain}---`],
    ['a byte order mark', `\ufeff---\n${plain}---\n`],
    ['line ends of Windows', `---\n${plain}---\nbody\n`.replaceAll('\n', '\r\n')],
    ['spaces after the lines ---', `--- \n${plain}---\t\nbody`],
    ['a line --- in the body', `---\n${plain}---\none\n---\ntwo`],
    ['--- inside a value', `---\nname: pdf\ndescription: a --- b\n---\n`],
    ['comments', `---\n# A comment\n${plain}---\n`],
  ])('a file with %s', async (_, content) => {
    write('pdf/SKILL.md', content);
    expect(await keysOf()).toHaveLength(1);
  });

  test.each([
    [
      'a description of 1,024 characters outside the first plane',
      `description: ${'😀'.repeat(1_024)}`,
    ],
    ['a folded description', 'description: >\n  One\n  two.\n  Three: four.'],
    ['a description that YAML reads as a number', 'description: 5'],
    ['a compatibility of 500 characters', `description: A.\ncompatibility: ${'x'.repeat(500)}`],
    ['optional fields without a value', 'description: A.\nlicense:\ncompatibility:\nmetadata:'],
    ['metadata of other kinds', 'description: A.\nmetadata:\n  a: 1\n  b: [x]\n  c: {"d": true}'],
    ['allowed-tools as a list', 'description: A.\nallowed-tools: [Read, "Bash(ls:*)"]'],
    [
      'fields that the standard does not know',
      'description: A.\nversion: 3\nrequires:\n  mcp: [x]',
    ],
  ])('%s', async (_, fields) => {
    writeSkill(`name: pdf\n${fields}\n`);
    expect(await keysOf()).toHaveLength(1);
  });

  test('a name of 64 characters', async () => {
    const name = 'a'.repeat(64);
    write(`${name}/SKILL.md`, `---\nname: ${name}\ndescription: A.\n---\n`);
    expect(await keysOf()).toEqual([`agent-skills/v1.0/${name}`]);
  });

  test('the body begins where bodyOffset says', () => {
    const content = Buffer.from(`\ufeff---\r\n${plain}x: é\r\n---\r\n\r\n  # PDF\r\n`);
    const { body, bodyOffset } = readSkillMd(write('pdf/SKILL.md', content));
    expect(content.subarray(bodyOffset).toString()).toBe(`${body}\r\n`);
  });
});

describe('what breaks a rule is refused with the rule', () => {
  test.each([
    ['name: pdf\n', 'has no description in its front matter'],
    ['description: A.\n', 'has no name in its front matter'],
    ['name:\ndescription: A.\n', 'name must not be empty'],
    ['name: [pdf]\ndescription: A.\n', 'name must be a text, got a list'],
    ['name: pdf\ndescription: ""\n', 'description must not be empty'],
    ['name: pdf\ndescription: "  "\n', 'description must not be empty'],
    ['name: pdf\ndescription: {a: b}\n', 'description must be a text, got a map'],
    [
      `name: pdf\ndescription: ${'x'.repeat(1_025)}\n`,
      'description must have at most 1024 characters, has 1025',
    ],
    [`name: ${'x'.repeat(65)}\ndescription: A.\n`, 'name must have at most 64 characters, has 65'],
    [
      'name: PDF\ndescription: A.\n',
      'name must have only lower-case letters a-z, digits and hyphens, got "PDF"',
    ],
    [
      'name: p_df\ndescription: A.\n',
      'name must have only lower-case letters a-z, digits and hyphens, got "p_df"',
    ],
    ['name: -pdf\ndescription: A.\n', 'name must not begin or end with a hyphen, got "-pdf"'],
    ['name: pdf-\ndescription: A.\n', 'name must not begin or end with a hyphen, got "pdf-"'],
    ['name: p--df\ndescription: A.\n', 'name must not have two hyphens in a row, got "p--df"'],
    ['name: word\ndescription: A.\n', 'name must be the name of its folder, "pdf", got "word"'],
    [`${plain}license: [MIT]\n`, 'license must be a text, got a list'],
    [`${plain}compatibility: ""\n`, 'compatibility must not be empty'],
    [
      `${plain}compatibility: ${'x'.repeat(501)}\n`,
      'compatibility must have at most 500 characters, has 501',
    ],
    [`${plain}metadata: 1.0\n`, 'metadata must be a map from keys to values, got "1.0"'],
    [`${plain}metadata: [a]\n`, 'metadata must be a map from keys to values, got a list'],
    [`${plain}allowed-tools: {a: b}\n`, 'allowed-tools must be a text or a list of texts'],
    [`${plain}allowed-tools: [[a]]\n`, 'allowed-tools must be a text or a list of texts'],
    ['- a\n', 'front matter must be a YAML mapping'],
    ['', 'front matter must be a YAML mapping'],
    [`${plain}name: pdf\n`, 'front matter has the key "name" twice'],
    [`${plain}metadata:\n  a: 1\n  a: 2\n`, 'front matter has the key "a" twice'],
    [`${plain}? [a]\n: b\n`, 'front matter must have texts as keys'],
    [`${plain}a: &x [1]\nb: *x\n`, 'front matter must not use YAML aliases (*name)'],
    [`${plain}a: "\\0"\n`, 'front matter must be well-formed Unicode without NUL'],
    [`${plain}a: "\\ud800"\n`, 'front matter must be well-formed Unicode without NUL'],
    [
      `${plain}a: !!js/function x\n`,
      'front matter is not valid YAML: Unresolved tag: tag:yaml.org,2002:js/function (line 4)',
    ],
    [
      'name: pdf\ndescription: Use it when: always\n',
      'front matter is not valid YAML: Nested mappings are not allowed in compact mappings (line 3); put a text with ": " in quotes',
    ],
    [
      `${plain}a: ${'['.repeat(20)}${']'.repeat(20)}\n`,
      'front matter must not nest deeper than 16 levels',
    ],
    [`${plain}a: ${'x'.repeat(65_536)}\n`, 'front matter must have at most 65536 bytes'],
  ])('%j', async (frontMatter, fault) => {
    expect(await faultOfSkill(frontMatter)).toBe(fault);
  });

  const opening = 'must begin with front matter: a line ---, YAML and a line ---';
  test.each<[what: string, content: string | Buffer, fault: string]>([
    ['is empty', '', opening],
    ['has no front matter', '# PDF\n', opening],
    ['has something before its front matter', `\n---\n${plain}---\n`, opening],
    [
      'does not end its front matter',
      `---\n${plain}`,
      'has no line --- that ends its front matter',
    ],
    ['is no UTF-8', Buffer.from(`---\n${plain}---\n\xe9`, 'latin1'), 'must be valid UTF-8'],
    ['has a NUL', `---\n${plain}---\n\0`, 'must not contain a NUL character'],
    ['has more than 1 MiB', Buffer.alloc(1_048_577, 97), 'must have at most 1048576 bytes'],
  ])('a file that %s', async (_, content, fault) => {
    write('pdf/SKILL.md', content);
    expect(await faultOf()).toBe(`/pdf/SKILL.md: ${fault}`);
  });

  test.each([
    ['lists', '['.repeat(60_000)],
    ['maps', '{a: '.repeat(15_000)],
    ['block lists', '- '.repeat(30_000)],
    ['keys', '? '.repeat(30_000)],
  ])('front matter of %s that are nested without end', async (_, yaml) => {
    expect(await faultOfSkill(`${plain}a:\n ${yaml}\n`)).toMatch(/^front matter /);
  });

  test('any front matter loads or is refused with a sentence', () => {
    const line = fc.constantFrom(
      'name: pdf',
      'description: A.',
      'metadata:',
      '  version: 2',
      '---',
    );
    const odd = fc.string({ unit: fc.constantFrom(...'-:?![]{}&*|>"\'#%@`~ \t\r\na1é') });
    fc.assert(
      fc.property(fc.array(fc.oneof(line, odd), { maxLength: 8 }), (lines) => {
        const file = write('pdf/SKILL.md', `---\n${lines.join('\n')}\n---\nbody`);
        try {
          expect(readSkillMd(file).name).toBe('pdf');
        } catch (error) {
          expect(error).toBeInstanceOf(SkillLoadError);
        }
      }),
    );
  });
});
