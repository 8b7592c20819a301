/**
 * The bundle: the program in few files, which scripts/bundle.ts makes of the sources, because most of the
 * time of a start is spent on loading more than a thousand modules. Promises that a bundle is used only by a
 * start with exactly the sources it was made of; any other start runs the sources. A package is not compared:
 * its bundle was made when it was packed, and its files do not change.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';

export const root = join(import.meta.dirname, '../../..');
/** Whether this is an installed package, which is compiled, and not a checkout. */
const isPackage = extname(import.meta.filename) === '.js';
/** Holds a directory for each bundle, named by its fingerprint, and the record of the last one. */
export const bundles = join(root, 'dist');
export const entryName = 'run.cjs';
export const recordFile = join(bundles, 'last.json');
/** The bundle of a package, below its root. */
export const packagedBundle = 'dist/package';
/** What a bundle is made of beside the sources. */
const others = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'scripts/bundle.ts',
  'scripts/bundling.ts',
  'scripts/record-code.ts',
];

/** The state of the sources when a bundle was made. */
export interface BundleRecord {
  /** Changes with the sources' contents. */
  readonly fingerprint: string;
  /** Changes with the sources' sizes and times, also when the contents stay the same. */
  readonly times: string;
}

/** The file to start; null when no bundle was made of the present sources. */
export function freshBundle(): string | null {
  if (isPackage) return join(root, packagedBundle, entryName);
  if (!existsSync(recordFile)) return null;
  const last = JSON.parse(readFileSync(recordFile, 'utf8')) as BundleRecord;
  const file = join(bundles, last.fingerprint, entryName);
  const files = sourceFiles();
  const isFresh = timesOf(files) === last.times || fingerprintOf(files) === last.fingerprint;
  return isFresh && existsSync(file) ? file : null;
}

/**
 * Reads the present state of the sources.
 * @public For scripts/bundle.ts.
 */
export function recordSources(): BundleRecord {
  const files = sourceFiles();
  return { fingerprint: fingerprintOf(files), times: timesOf(files) };
}

function sourceFiles(): string[] {
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  const sources = names.filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
  const files = [...others, ...sources.sort().map((name) => join('src', name))];
  return files.filter((file) => existsSync(join(root, file)));
}

function fingerprintOf(files: readonly string[]): string {
  // An import would load all parts of the module, also at starts that need no hash.
  const hash = process.getBuiltinModule('node:crypto').createHash('sha256');
  for (const file of files) {
    const content = readFileSync(join(root, file));
    hash.update(`${file} ${content.length}\n`).update(content);
  }
  return hash.digest('hex').slice(0, 32);
}

/** With the time of the last change of the file's entry, which no program can set back. */
function timesOf(files: readonly string[]): string {
  const times = files.map((file) => {
    const { size, mtimeNs, ctimeNs } = statSync(join(root, file), { bigint: true });
    return `${file} ${size} ${mtimeNs} ${ctimeNs}`;
  });
  return times.join('\n');
}
