/**
 * The packages that the platform's package brings along in its own node_modules: the versions of the checkout's
 * lock file, which the tests ran with. Otherwise a user would get the newest versions that the dependencies of
 * our dependencies allow; npm reads a lock file of a package only when it comes from a registry, and other
 * package managers never do.
 */

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
 * of. What runs these packages is the platform's own Node, which its command becomes (bin/skillwright.js).
 */
export function bundledManifest({
  engines: _ofNpm,
  ...manifest
}: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return manifest;
}

/** Packages in whose terms the declarations of the platform are written: authors compile against theirs too. */
export const declaredPlaces: ReadonlySet<string> = new Set(['node_modules/typebox']);

/** Whether an author's compiler may read a file of the package at a place. */
export function isDeclaration(place: string, file: string): boolean {
  return declaredPlaces.has(place) && file.endsWith('.d.mts');
}

/** Whether a program may read a file of a package, named from its folder: not its tests, documents and sources. */
export function isNeeded(file: string): boolean {
  return !/^(?:tests?|__tests__|benchmarks?|docs|examples?|\.github)(?:\/|$)|\.(?:[cm]?ts|map)$/.test(
    file,
  );
}
