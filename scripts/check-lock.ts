/**
 * Checks that each package-lock.json, that of the checkout and those of its tools, installs on every platform that the
 * project supports: `npm ci` refuses a lock file in which an optional package of some platform is missing, and on that
 * platform alone the install then lacks a binary. So each package that another one names has to be found where Node would look
 * for it. Also refuses recorded download addresses, which would tie an install to one registry.
 *
 * `npm ci --dry-run`, which writes nothing, compares the versions, on the platform that this runs on. To ask it for
 * each of the others takes npm half a second more for each. `npm ls` compares them with the overrides, too.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasTools, type ToolFolder, toolFolders } from './tools.ts';

interface Entry {
  readonly resolved?: string;
  readonly dependencies?: Names;
  readonly devDependencies?: Names;
  readonly optionalDependencies?: Names;
  readonly peerDependencies?: Names;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}
type Names = Readonly<Record<string, string>>;
type Packages = Readonly<Record<string, Entry>>;

const root = join(import.meta.dirname, '..');
const timeoutMs = 120_000;

const faults = (['.', ...toolFolders] as const).flatMap((folder) => {
  const { packages } = JSON.parse(
    readFileSync(join(root, folder, 'package-lock.json'), 'utf8'),
  ) as {
    readonly packages: Packages;
  };
  const found = [...recordedAddresses(packages), ...missingPackages(packages), ...refusals(folder)];
  return found.map((fault) => `${folder}: ${fault}`);
});
for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;

function recordedAddresses(packages: Packages): string[] {
  return Object.entries(packages)
    .filter(([, entry]) => entry.resolved?.includes('://'))
    .map(([name]) => `${name}: remove its "resolved" address from package-lock.json`);
}

function missingPackages(packages: Packages): string[] {
  return Object.entries(packages).flatMap(([path, entry]) =>
    namedBy(path, entry)
      .filter((name) => !isThere(packages, path, name))
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
function isThere(packages: Packages, path: string, name: string): boolean {
  for (let from = path; ; from = from.slice(0, Math.max(0, from.lastIndexOf('/')))) {
    if (`${from === '' ? '' : `${from}/`}node_modules/${name}` in packages) return true;
    if (from === '') return false;
  }
}

function refusals(folder: '.' | ToolFolder): string[] {
  const list = ['ls', '--all', '--package-lock-only'];
  // These were installed with this lock.
  const runs = folder !== '.' && hasTools(folder) ? [list] : [list, ['ci', '--dry-run']];
  return runs.flatMap((args) => {
    const run = spawnSync('npm', args, {
      cwd: join(root, folder),
      encoding: 'utf8',
      timeout: timeoutMs,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    if (run.status === 0) return [];
    return [`npm ${args.join(' ')} failed:\n${run.stderr || (run.error?.message ?? '')}`];
  });
}
