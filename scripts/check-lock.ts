/**
 * Checks that package-lock.json installs on every platform that the project supports: `npm ci` refuses
 * a lock file in which an optional package of some platform is missing, and on that platform alone the
 * install then lacks a binary. So each package that another one names has to be found where Node would look
 * for it. Also refuses recorded download addresses, which would tie an install to one registry.
 *
 * `npm ci --dry-run`, which writes nothing, compares the versions, on the platform that this runs on. To ask it for
 * each of the others takes npm half a second more for each.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Entry {
  readonly resolved?: string;
  readonly dependencies?: Names;
  readonly devDependencies?: Names;
  readonly optionalDependencies?: Names;
  readonly peerDependencies?: Names;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}
type Names = Readonly<Record<string, string>>;

const root = join(import.meta.dirname, '..');
const timeoutMs = 120_000;
const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
  readonly packages: Readonly<Record<string, Entry>>;
};

const faults = [...recordedAddresses(), ...missingPackages(), ...refusal()];
for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;

function recordedAddresses(): string[] {
  return Object.entries(packages)
    .filter(([, entry]) => entry.resolved?.includes('://'))
    .map(([name]) => `${name}: remove its "resolved" address from package-lock.json`);
}

function missingPackages(): string[] {
  return Object.entries(packages).flatMap(([path, entry]) =>
    namedBy(path, entry)
      .filter((name) => !isThere(path, name))
      .map((name) => `${path || 'package.json'}: package-lock.json has no entry for its ${name}`),
  );
}

/** Those of development of the project's own packages alone; npm installs no others. */
function namedBy(path: string, entry: Entry): string[] {
  const isOwn = !path.includes('node_modules/');
  const peers = Object.keys(entry.peerDependencies ?? {}).filter(
    (name) => entry.peerDependenciesMeta?.[name]?.optional !== true,
  );
  return [
    ...Object.keys(entry.dependencies ?? {}),
    ...Object.keys((isOwn && entry.devDependencies) || {}),
    ...Object.keys(entry.optionalDependencies ?? {}),
    ...peers,
  ];
}

/** Looks in the package's own folder and those above it. */
function isThere(path: string, name: string): boolean {
  for (let from = path; ; from = from.slice(0, Math.max(0, from.lastIndexOf('/')))) {
    if (`${from === '' ? '' : `${from}/`}node_modules/${name}` in packages) return true;
    if (from === '') return false;
  }
}

function refusal(): string[] {
  const args = ['ci', '--dry-run'];
  const run = spawnSync('npm', args, { cwd: root, encoding: 'utf8', timeout: timeoutMs });
  return run.status === 0
    ? []
    : [`npm ${args.join(' ')} failed:\n${run.stderr || (run.error?.message ?? '')}`];
}
