/**
 * The packages that the platform's package brings along in its own node_modules: those whose files the program reads or
 * whose types authors compile against, in the versions of the checkout's lock file, which the tests ran with. All other
 * packages are part of the program's own files (program.ts).
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

export interface LockedPackage {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

/** The field `packages` of a lock file: by place, such as `node_modules/a/node_modules/b`. */
export type Locked = Readonly<Record<string, LockedPackage>>;

/**
 * The places of the packages with these names and of all that they need, with their versions. Optional
 * dependencies are left out: each is for one system only.
 */
export function bundledPlaces(locked: Locked, names: readonly string[]): Map<string, string> {
  const places = new Map<string, string>();
  for (const name of names) addPlace(locked, places, '', name);
  return places;
}

function addPlace(locked: Locked, places: Map<string, string>, from: string, name: string): void {
  const place = placeOf(locked, from, name);
  const found = place === undefined ? undefined : locked[place];
  if (place === undefined || found?.version === undefined) {
    throw new Error(`${name}, which ${from || 'the platform'} needs, is not in the lock file`);
  }
  if (places.has(place)) return;
  places.set(place, found.version);
  const { dependencies, peerDependencies = {}, peerDependenciesMeta = {} } = found;
  const peers = Object.keys(peerDependencies).filter(
    (peer) => !peerDependenciesMeta[peer]?.optional,
  );
  for (const needed of [...Object.keys(dependencies ?? {}), ...peers]) {
    addPlace(locked, places, place, needed);
  }
}

/** Where a module in `from` finds a package. */
function placeOf(locked: Locked, from: string, name: string): string | undefined {
  const place = `${from}${from === '' ? '' : '/'}node_modules/${name}`;
  if (locked[place] !== undefined) return place;
  if (from === '') return undefined;
  return placeOf(locked, from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/'))), name);
}

/**
 * A manifest as the package brings it: without `engines`, which npm would compare with the Node that runs npm and warn
 * of. What runs these packages is the platform's own Node, which its command becomes (bin/skillwright.js). A package of
 * which some files are read needs no other.
 */
export function bundledManifest(
  place: string,
  { engines: _ofNpm, dependencies, ...manifest }: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const isWhole = filesRead(place) === null && dependencies !== undefined;
  return isWhole ? { ...manifest, dependencies } : manifest;
}

/**
 * The packages that the program does not import but reads: as text, for realms (src/adapters/sandbox), or when the first
 * schema is checked. By name, with the files of a package of which not all are read.
 */
export const readPackages: Readonly<Record<string, RegExp | null>> = {
  ajv: null,
  'ajv-formats': null,
  'fast-sha256': /^sha256\.js$/,
  jsonata: /^jsonata\.js$/,
  liquidjs: /^dist\/liquid\.browser\.umd\.js$/,
  re2js: /^build\/index\.(?:c?js|umd\.js|esm\.js)$/,
  // Authors compile against its declarations alone.
  typebox: /^$/,
};

/** The places of these packages, with what those need of which all files are read. */
export function placesRead(locked: Locked): string[] {
  const whole = Object.keys(readPackages).filter((name) => readPackages[name] === null);
  const places = Object.keys(readPackages).map((name) => `node_modules/${name}`);
  return [...new Set([...places, ...bundledPlaces(locked, whole).keys()])].sort();
}

/** Whether a file of the package at a place is read, named from its folder. */
export function isRead(place: string, file: string): boolean {
  if (/^(?:package\.json|LICENSE)/i.test(file)) return true;
  return isNeeded(file) && (filesRead(place)?.test(file) ?? true);
}

function filesRead(place: string): RegExp | null {
  return readPackages[place.replace('node_modules/', '')] ?? null;
}

/** A package in whose terms the declarations of the platform are written, with the part that they name. */
const declared = { place: 'node_modules/typebox', entry: 'build/schema/index.d.mts' };

/** The declarations that an author's compiler reads of the package at a place: those that the named part reaches. */
export function declarationsOf(root: string, place: string): string[] {
  if (place !== declared.place) return [];
  const folder = join(root, place);
  const reached = new Set<string>();
  const reach = (file: string): void => {
    if (reached.has(file) || !existsSync(file)) return;
    reached.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, name = ''] of text.matchAll(
      /(?:from |import\(|import )['"](\.[^'"]*)\.mjs['"]/g,
    )) {
      reach(join(dirname(file), `${name}.d.mts`));
    }
  };
  reach(join(folder, declared.entry));
  return [...reached].map((file) => relative(folder, file));
}

/** Whether a program may read a file of a package, named from its folder: not its tests, documents and sources. */
function isNeeded(file: string): boolean {
  return !/^(?:tests?|__tests__|benchmarks?|docs|examples?|\.github)(?:\/|$)|\.(?:[cm]?ts|map)$/.test(
    file,
  );
}
