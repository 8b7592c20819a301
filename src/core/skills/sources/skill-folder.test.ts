import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readSkillFile } from './skill-folder.ts';
import { listSkillFiles } from './skill-folder-files.ts';

const secret = 'what lies outside';
let dir = '';
let folder = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'skills-'));
  folder = join(dir, 'pdf');
  write('SKILL.md', '---\nname: pdf\n---\n');
  write('references/guide.md', 'The guide.');
  writeFileSync(join(dir, 'outside.md'), secret);
});
afterEach(() => rmSync(dir, { recursive: true }));

function write(path: string, content: string | Buffer): void {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

async function textOf(path: unknown, range?: { offset?: unknown; limit?: unknown }) {
  const read = await readSkillFile(folder, path, range);
  expect(read).toHaveProperty('text');
  return 'text' in read ? read.text : '';
}

async function errorOf(path: unknown, range?: { offset?: unknown; limit?: unknown }) {
  const read = await readSkillFile(folder, path, range);
  expect(read).toHaveProperty('error');
  return 'error' in read ? read.error : '';
}

describe('what is read', () => {
  test.each([
    'references/guide.md',
    './references/guide.md',
    'references//guide.md',
    'scripts/../references/guide.md',
  ])('a text file, as %s', async (path) => {
    expect(await textOf(path)).toBe('The guide.');
  });

  test('an empty file says so', async () => {
    write('empty.md', '');
    expect(await textOf('empty.md')).toBe('"empty.md" is empty.');
  });

  test('a link inside the folder is followed', async () => {
    symlinkSync('references', join(folder, 'docs'));
    expect(await textOf('docs/guide.md')).toBe('The guide.');
  });

  test('a mounted ConfigMap is read', async () => {
    const made = '..2026_03_01_10_00_00.1234567890';
    write(`${made}/faq.md`, 'The answers.');
    write(`${made}/forms/order.md`, 'The form.');
    write(`${made}/.env`, secret);
    symlinkSync(made, join(folder, '..data'));
    for (const name of ['faq.md', 'forms']) symlinkSync(`..data/${name}`, join(folder, name));
    symlinkSync('..data/.env', join(folder, 'env'));
    expect(await textOf('faq.md')).toBe('The answers.');
    expect(await textOf('forms/order.md')).toBe('The form.');
    expect(await errorOf('env')).toMatch(/^"env" is hidden/);
    expect((await listSkillFiles(folder)).files).toEqual([
      { path: 'SKILL.md', size: 18 },
      { path: 'faq.md', size: 12 },
      { path: 'forms/order.md', size: 9 },
      { path: 'references/guide.md', size: 10 },
    ]);
  });

  test('of 5 MB at most 48,000 bytes are returned, with the offset for the next call', async () => {
    const content = 'é€😀a'.repeat(500_000);
    write('references/all.md', content);
    const note = /\n\n\[Part of "references\/all.md": bytes (\d+) to (\d+) of 5000000(.*)\.]$/;
    let whole = '';
    let offset = 0;
    while (offset < 5_000_000) {
      const text = await textOf('references/all.md', { offset });
      const [all = '', from, to, advice] = note.exec(text) ?? [];
      const part = text.slice(0, text.length - all.length);
      expect(Number(from)).toBe(offset);
      expect(Buffer.byteLength(part)).toBeLessThanOrEqual(48_000);
      whole += part;
      offset = Number(to);
      expect(advice).toBe(offset < 5_000_000 ? `; read on with offset ${to}` : '');
    }
    expect(whole === content).toBe(true);
  });

  test('as many bytes as docs/skill-md.md says, whatever is asked for', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../../../docs/skill-md.md'), 'utf8');
    const [, most = ''] = /one file, at most ([\d,]+) bytes at once/.exec(page) ?? [];
    write('a.md', 'a'.repeat(300_000));
    for (const range of [{}, { limit: 300_000 }]) {
      const [part = ''] = (await textOf('a.md', range)).split('\n');
      expect(part.length.toLocaleString('en')).toBe(most);
    }
  });

  test('any offset and limit give whole characters and make progress', async () => {
    write('a.md', 'é€😀a'.repeat(5));
    for (let offset = 0; offset < 50; offset++) {
      const text = await textOf('a.md', { offset, limit: 1 });
      expect(text).not.toContain('\ufffd');
      const [, next] = / to (\d+) of 50/.exec(text) ?? [];
      expect(Number(next)).toBeGreaterThan(offset);
    }
  });

  test.each<[name: string, bytes: Buffer, said: string]>([
    ['logo.png', Buffer.from('\x89PNG\r\n\x1a\n\0', 'latin1'), 'a PNG image of 9 bytes'],
    ['a.pdf', Buffer.from('%PDF-1.7\n\xe2\xe3', 'latin1'), 'a PDF document of 11 bytes'],
    ['form.docx', Buffer.from('PK\x03\x04\0'), 'a .docx file of 5 bytes'],
    ['all.zip', Buffer.from('PK\x03\x04\0'), 'a ZIP archive of 5 bytes'],
    ['latin.txt', Buffer.from('caf\xe9', 'latin1'), 'binary data of 4 bytes'],
    ['nul.md', Buffer.from('a\0b'), 'binary data of 3 bytes'],
  ])('%s is described and not shown', async (name, bytes, said) => {
    write(name, bytes);
    expect(await textOf(name)).toBe(`"${name}" is ${said}; not shown.`);
  });
});

describe('what is refused, in a sentence', () => {
  test.each<[path: unknown, error: string]>([
    ['../outside.md', '"../outside.md" leads out of the skill\'s folder.'],
    [
      'references/../../outside.md',
      '"references/../../outside.md" leads out of the skill\'s folder.',
    ],
    ['..', '".." leads out of the skill\'s folder.'],
    ['/etc/passwd', '"/etc/passwd" is an absolute path; give it relative to the skill\'s folder.'],
    ['.env', '".env" is hidden; hidden files are no part of the skill.'],
    ['.git/config', '".git/config" is hidden; hidden files are no part of the skill.'],
    ['a\0b', 'path must be Unicode without NUL, of at most 1024 bytes.'],
    ['\ud800', 'path must be Unicode without NUL, of at most 1024 bytes.'],
    ['x'.repeat(1_025), 'path must be Unicode without NUL, of at most 1024 bytes.'],
    ['', 'path must be a text such as "references/guide.md".'],
    [undefined, 'path must be a text such as "references/guide.md".'],
    [{ path: 'a' }, 'path must be a text such as "references/guide.md".'],
  ])('%j', async (path, error) => {
    write('.env', secret);
    write('.git/config', secret);
    expect(await errorOf(path)).toBe(error);
  });

  test('links that lead out, to a file, through a folder or through another link', async () => {
    symlinkSync('/etc/passwd', join(folder, 'passwd'));
    symlinkSync(dir, join(folder, 'up'));
    symlinkSync('up/outside.md', join(folder, 'twice.md'));
    for (const path of ['passwd', 'up/outside.md', 'twice.md', 'up']) {
      expect(await errorOf(path)).toBe(`"${path}" leads out of the skill's folder.`);
    }
  });

  test('hidden files that a link leads to, by whatever name', async () => {
    for (const path of ['.env', '.git/config', '..old/a.md', 'node_modules/a/a.md']) {
      write(path, secret);
    }
    symlinkSync('.env', join(folder, 'env.md'));
    symlinkSync('env.md', join(folder, 'twice.md'));
    symlinkSync('.git', join(folder, 'git'));
    symlinkSync('..old', join(folder, 'old'));
    symlinkSync('../node_modules/a', join(folder, 'references/a'));
    for (const path of [
      'env.md',
      'twice.md',
      'git/config',
      'git',
      'old/a.md',
      'references/a/a.md',
    ]) {
      expect(await errorOf(path)).toBe(
        `"${path}" is hidden; hidden files are no part of the skill.`,
      );
    }
    const { files } = await listSkillFiles(folder);
    expect(files.map(({ path }) => path)).toEqual(['SKILL.md', 'references/guide.md']);
  });

  test('a folder beside it of which the name begins alike', async () => {
    mkdirSync(`${folder}-secrets`);
    writeFileSync(`${folder}-secrets/a.md`, secret);
    symlinkSync(`${folder}-secrets`, join(folder, 'alike'));
    expect(await errorOf('alike/a.md')).toMatch(/leads out/);
  });

  test('a link to itself, and one to nothing', async () => {
    symlinkSync('loop', join(folder, 'loop'));
    symlinkSync('none', join(folder, 'gone'));
    expect(await errorOf('loop')).toBe('"loop" cannot be read: ELOOP.');
    expect(await errorOf('gone')).toMatch(/^There is no file "gone"/);
  });

  test('a FIFO and a device do not block', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    symlinkSync('/dev/zero', join(folder, 'zero'));
    expect(await errorOf('pipe')).toBe('"pipe" is no regular file.');
    expect(await errorOf('zero')).toBe('"zero" leads out of the skill\'s folder.');
  });

  test('the error of a missing file proposes similar names', async () => {
    write('references/forms.md', '');
    expect(await errorOf('guide.md')).toBe(
      'There is no file "guide.md". Near names: "references/guide.md".',
    );
    expect(await errorOf('reference/Forms.md')).toMatch(/Near names: "references\/forms.md"/);
    expect(await errorOf('SKILL.md/a')).toMatch(/^There is no file "SKILL.md\/a"/);
    expect(await errorOf('zzz')).toBe(
      'There is no file "zzz". Files of the skill: "SKILL.md", "references/forms.md", "references/guide.md".',
    );
  });

  test('the error of a folder names its files', async () => {
    expect(await errorOf('references/')).toBe(
      '"references" is a folder. Its files: "references/guide.md".',
    );
    expect(await errorOf('.')).toMatch(/^"." is a folder\. Its files: "SKILL.md"/);
  });

  test('a skill folder that is gone', async () => {
    rmSync(folder, { recursive: true });
    expect(await errorOf('a.md')).toBe(
      'There is no file "a.md"; the skill\'s folder has no files.',
    );
    expect(await listSkillFiles(folder)).toEqual({ files: [], more: 0, isComplete: true });
  });

  test.each([-1, 1.5, '0', Number.NaN, 2 ** 53])('offset %j', async (offset) => {
    expect(await errorOf('SKILL.md', { offset })).toBe(
      'offset must be a whole number of bytes from 0.',
    );
  });

  test('an offset beyond the end', async () => {
    expect(await errorOf('SKILL.md', { offset: 18 })).toBe(
      'offset is beyond the end of "SKILL.md": 18 bytes.',
    );
  });
});

describe('the list of files', () => {
  test('those nearest to the top come first, with their sizes', async () => {
    write('z.md', 'é');
    write('a/b/c.md', '');
    expect(await listSkillFiles(folder)).toEqual({
      files: [
        { path: 'SKILL.md', size: 18 },
        { path: 'z.md', size: 2 },
        { path: 'references/guide.md', size: 10 },
        { path: 'a/b/c.md', size: 0 },
      ],
      more: 0,
      isComplete: true,
    });
  });

  test('hidden names, node_modules, links that lead out, circles and FIFOs are left out', async () => {
    write('.env', secret);
    write('.git/config', secret);
    write('node_modules/a/index.js', '');
    symlinkSync('/etc/passwd', join(folder, 'passwd'));
    symlinkSync(dir, join(folder, 'up'));
    symlinkSync('.', join(folder, 'here'));
    symlinkSync('loop', join(folder, 'loop'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    const { files } = await listSkillFiles(folder);
    expect(files.map(({ path }) => path)).toEqual(['SKILL.md', 'references/guide.md']);
  });

  test('of 12,000 files 200 are listed, and the list says that the search was incomplete', async () => {
    mkdirSync(join(folder, 'many'));
    for (let i = 0; i < 12_000; i++) writeFileSync(join(folder, `many/${i}`), '');
    const { files, more, isComplete } = await listSkillFiles(folder);
    expect(files).toHaveLength(200);
    expect(more).toBeGreaterThan(9_000);
    expect(isComplete).toBe(false);
    expect(await textOf('many/11999')).toBe('"many/11999" is empty.');
  });

  test('folders that are nested deeper than 16 levels are not listed, and can be read', async () => {
    const deep = `${'d/'.repeat(100)}deep.md`;
    write(deep, 'Deep.');
    const { files, isComplete } = await listSkillFiles(folder);
    expect(files).toHaveLength(2);
    expect(isComplete).toBe(false);
    expect(await textOf(deep)).toBe('Deep.');
  });
});

test('no path leads out of the folder or to a hidden file', async () => {
  write('.env', secret);
  symlinkSync(dir, join(folder, 'up'));
  symlinkSync('../outside.md', join(folder, 'out.md'));
  symlinkSync('../../outside.md', join(folder, 'references/out.md'));
  symlinkSync('references', join(folder, 'in'));
  symlinkSync('.env', join(folder, 'env'));
  const part = fc.oneof(
    fc.constantFrom('..', '.', '', 'up', 'out.md', 'in', 'references', 'outside.md', 'pdf'),
    fc.constantFrom('.env', 'env'),
    fc.constantFrom('...', '%2e%2e', '..\\', '~', dir, folder, 'file:', 'guide.md', 'SKILL.md'),
    fc.string({ maxLength: 4 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 8 }), async (parts) => {
      const read = await readSkillFile(folder, parts.join('/'));
      expect(JSON.stringify(read)).not.toContain(secret);
      if ('text' in read) expect(['The guide.', '---\nname: pdf\n---\n']).toContain(read.text);
    }),
    { numRuns: 500 },
  );
});
