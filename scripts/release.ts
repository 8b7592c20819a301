/**
 * `npm run release -- VERSION [--publish]`: packs the packages of a version, and with `--publish` publishes them and
 * tags the commit. Refuses what no user could trace later: a version without an entry in CHANGELOG.md, a
 * tree with changes that are in no commit, versions that differ, checks that fail, data that later versions cannot be
 * tested with.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { knownMigrations } from '../src/adapters/database/migrate.ts';
import { runtimePackage, runtimesOf } from './packages/runtime.ts';
import { writeReleaseFiles } from './release/files.ts';

/** What a release is judged by. */
export interface ReleaseFacts {
  readonly version: string;
  /** The version in each file that names one. */
  readonly versions: Readonly<Record<string, string | undefined>>;
  readonly changelog: string;
  /** What git says of the tree, one line a file; empty when everything is committed. */
  readonly changes: string;
  /** The tags of the repository, one a line. */
  readonly tags: string;
  /** The last migration of the schema. */
  readonly schema: string | undefined;
  /** The dump of this version in test/fixtures/upgrade, named after the schema that it has. */
  readonly dump: string | undefined;
}

export interface ReleaseDeps {
  readonly root: string;
  /** Runs a program in the root; its output. Throws when it fails. */
  run(program: string, args: readonly string[]): string;
  print(line: string): void;
}

const versionPattern = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/;
/** A file of `dist-packages`, and the package that it publishes. */
interface Tarball {
  readonly file: string;
  readonly name: string;
  readonly version: string;
}

/** In this order: the platform contains the client and depends on the runtimes, so these are there first. */
function tarballsOf(root: string, version: string): Tarball[] {
  const { optionalDependencies = {} } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as { optionalDependencies?: Record<string, string> };
  const packed = (name: string, version: string) => ({
    ...{ name, version },
    file: `dist-packages/${name.replace('@', '').replace('/', '-')}-${version}.tgz`,
  });
  return [
    packed('@skillwright/client', version),
    ...runtimesOf(optionalDependencies).map((it) => packed(runtimePackage(it), it.version)),
    packed('skillwright', version),
  ];
}

/** The executables as they are fetched, of each system that there is a Node for. */
function executablesOf(root: string, version: string): string[] {
  const { optionalDependencies = {} } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as { optionalDependencies?: Record<string, string> };
  return runtimesOf(optionalDependencies).map(({ os, system }) => {
    return `dist-packages/skillwright-${version}-${system}${os === 'win32' ? '.exe' : ''}.gz`;
  });
}

function refuseMissing(root: string, files: readonly string[]): void {
  const missing = files.filter((file) => !existsSync(join(root, file)));
  if (missing.length > 0) throw new Error(`npm run executable made no ${missing.join(', ')}`);
}

/** Makes the release. Throws an error with every reason against it. */
export function release(deps: ReleaseDeps, input: { version: string; publish: boolean }): void {
  const { root, run, print } = deps;
  const { version, publish } = input;
  const facts = readFacts(deps, version);
  const faults = [...releaseFaults(facts), ...(publish ? unpublishable(root) : [])];
  if (faults.length > 0) throw new Error(faults.join('\n'));
  print('Checking: npm run verify');
  run('npm', ['run', 'verify']);
  print('Packing: npm run packages -- --systems all');
  run('npm', ['run', 'packages', '--', '--systems', 'all']);
  print('Making the executables: npm run executable');
  run('npm', ['run', 'executable']);
  const made = globSync('dist-packages/*.tgz', { cwd: root }).sort();
  const tarballs = tarballsOf(root, version);
  const expected = tarballs.map(({ file }) => file);
  if (made.join() !== [...expected].sort().join()) {
    throw new Error(`npm run packages made ${made.join(', ')}, not ${expected.join(', ')}`);
  }
  refuseMissing(root, executablesOf(root, version));
  const files = writeReleaseFiles({ root, run, version, entry: entryOf(facts.changelog, version) });
  print(`Written: ${files.map((name) => `dist-packages/${name}`).join(', ')}`);
  if (!publish) {
    print(`Nothing is published: this was a dry run. ${expected.join(' and ')} are what would be.`);
    return;
  }
  for (const tarball of tarballs) publishOne(deps, tarball, version);
  print(
    'Attach to the release: dist-packages/*.gz, SHA256SUMS and sbom.cdx.json, with release-notes.md',
  );
  run('git', ['tag', '--annotate', `v${version}`, '--message', `Skillwright ${version}`]);
  print(`Tagged v${version}: push the tag.`);
}

/** A Node that an earlier release has published stays: the registry refuses the same version again. */
function publishOne({ run, print }: ReleaseDeps, tarball: Tarball, release: string): void {
  const { file, name, version } = tarball;
  if (name.startsWith('@skillwright/node-') && isPublished(run, `${name}@${version}`)) {
    print(`${name} ${version} is published already`);
    return;
  }
  run('npm', ['publish', file, '--tag', release.includes('-') ? 'next' : 'latest']);
  print(`Published ${file}`);
}

function isPublished(run: ReleaseDeps['run'], spec: string): boolean {
  try {
    return run('npm', ['view', spec, 'version']).trim() !== '';
  } catch {
    return false;
  }
}

/** Everything that speaks against a release, one sentence each. */
export function releaseFaults(facts: ReleaseFacts): string[] {
  const { version, versions, changelog, changes, tags, schema, dump } = facts;
  if (!versionPattern.test(version)) {
    return [`${version} is no version: expected one such as 1.2.3 or 1.2.3-rc.1`];
  }
  const different = Object.entries(versions)
    .filter(([, found]) => found !== version)
    .map(([file, found]) => `${file} has the version ${found ?? 'none'}, not ${version}`);
  return [
    ...different,
    ...(entryOf(changelog, version) === ''
      ? [`CHANGELOG.md has no entry for ${version}: expected "## ${version}" with what changed`]
      : []),
    ...(dump === schema ? [] : [dumpFault(facts)]),
    ...(changes === '' ? [] : [`Changes are not committed:\n${changes}`]),
    ...(tags.split('\n').includes(`v${version}`) ? [`The tag v${version} is there already`] : []),
  ];
}

function dumpFault({ version, schema, dump }: ReleaseFacts): string {
  const made = dump === undefined ? 'has no dump' : `has a dump of ${dump}, not of ${schema}`;
  const command = 'UPGRADE_DUMP=write npx vitest run test/contracts/upgrade.test.ts';
  return `${version} ${made}, which later versions are tested with: run ${command}`;
}

/** The text below the heading of a version. */
function entryOf(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m);
  const section = sections.find((text) => /^\S+/.exec(text)?.[0] === version);
  return section?.slice(section.indexOf('\n')).trim() ?? '';
}

function readFacts({ root, run }: ReleaseDeps, version: string): ReleaseFacts {
  const manifest = (file: string) =>
    JSON.parse(readFileSync(join(root, file), 'utf8')) as {
      version?: string;
      dependencies?: Record<string, string>;
      packages?: Record<string, { version?: string }>;
    };
  const platform = manifest('package.json');
  const { packages } = manifest('package-lock.json');
  const dumps = JSON.parse(
    readFileSync(join(root, 'test/fixtures/upgrade/releases.json'), 'utf8'),
  ) as Record<string, string>;
  return {
    version,
    versions: {
      'package.json': platform.version,
      'package.json, dependency @skillwright/client':
        platform.dependencies?.['@skillwright/client'],
      'packages/client/package.json': manifest('packages/client/package.json').version,
      'package-lock.json': packages?.['']?.version,
      'package-lock.json, packages/client': packages?.['packages/client']?.version,
    },
    changelog: readFileSync(join(root, 'CHANGELOG.md'), 'utf8'),
    changes: run('git', ['status', '--porcelain']).trim(),
    tags: run('git', ['tag', '--list']),
    schema: knownMigrations.at(-1),
    dump: dumps[version],
  };
}

/** The registry compares the provenance of a package with the repository that it names. */
function unpublishable(root: string): string[] {
  return ['package.json', 'packages/client/package.json']
    .filter((file) => !('repository' in JSON.parse(readFileSync(join(root, file), 'utf8'))))
    .map((file) => `${file} names no repository, which publishing with provenance needs`);
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..');
  const [version = '', ...more] = process.argv.slice(2);
  const publish = more.includes('--publish');
  try {
    if (more.some((argument) => argument !== '--publish')) {
      throw new Error('usage: npm run release -- VERSION [--publish]');
    }
    release(
      { root, run: (program, args) => runIn(root, program, args), print: console.log },
      {
        version,
        publish,
      },
    );
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 1;
  }
}

function runIn(root: string, program: string, args: readonly string[]): string {
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 } as const;
  const { status, stdout, stderr, error } = spawnSync(program, args, options);
  if (status === 0) return stdout;
  const said = `${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}`.trim();
  throw new Error(`${program} ${args.join(' ')} failed:\n${said}`);
}
