/**
 * What authors import, as it would be packed, without an installation: test/faults/packages.test.ts installs the
 * packages and runs them, in a soak.
 */
import { execFile } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkTypes, compileStrictly, loadedBy } from '../support/author-types.ts';
import { readPacked, userFolder } from '../support/installed-packages.ts';

const root = join(import.meta.dirname, '../..');
const folder = userFolder();
const build = join(folder.directory, 'packed/build');
beforeAll(async () => {
  const options = ['--only', 'types', '--out', join(folder.directory, 'packed')];
  await promisify(execFile)(process.execPath, [
    join(root, 'scripts/packages/build.ts'),
    ...options,
  ]);
  mkdirSync(join(folder.directory, 'node_modules/@skillwright'), { recursive: true });
  symlinkSync(join(build, 'client'), join(folder.directory, 'node_modules/@skillwright/client'));
  symlinkSync(join(build, 'skillwright'), join(folder.directory, 'node_modules/skillwright'));
  symlinkSync(join(root, 'node_modules/zod'), join(folder.directory, 'node_modules/zod'));
});
afterAll(() => folder.remove());

test('the types of both packages compile under a strict configuration of an author', async () => {
  expect(await checkTypes(folder)).toEqual({ code: 0, stdout: '' });
});

test('the skills of the documents compile', async () => {
  const pages = [
    'README.md',
    'scripts/packages/skillwright.md',
    ...globSync('docs/*.md', { cwd: root }),
  ];
  const skills = pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8');
    return [...text.matchAll(/^```ts\n(import .*?)^```/gms)].map(([, code = '']) => code);
  });
  const whole = skills.filter((code) => code.includes('defineSkill({'));

  expect(whole.length).toBeGreaterThan(8);
  expect(await compileStrictly(folder, 'guides', whole)).toEqual({ code: 0, stdout: '' });
});

test('the client is compiled code with its types, a licence and a README, and needs nothing', () => {
  const client = join(build, 'client');
  const files = globSync('**/*.*', { cwd: client });
  expect(files).toEqual(expect.arrayContaining(['package.json', 'README.md', 'dist/index.d.ts']));
  expect(files.filter((file) => /(?<!\.d)\.ts$|\.test\.|\.map$/.test(file))).toEqual([]);
  expect(readPacked(client)).toMatchObject({ license: 'MIT', version: '0.1.0' });
  for (const none of ['dependencies', 'devDependencies', 'scripts']) {
    expect(readPacked(client)).not.toHaveProperty(none);
  }
});

test("import 'skillwright' loads two small modules and nothing else", async () => {
  const author = pathToFileURL(join(root, 'src/author.ts')).href;
  const { loaded, exports } = await loadedBy(folder, author);

  expect(exports).toEqual(['SkillError', 'defineSkill']);
  expect(loaded.map((url) => url.slice(url.indexOf('/src/')))).toEqual([
    '/src/author.ts',
    '/src/core/skills/definition.ts',
  ]);
});
