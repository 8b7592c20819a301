/**
 * What each skill is made of: the files that its module has imported, directly or not. Tells by a digest whether
 * the code of a skill has changed. Knows what is imported while skills load, not what their runs import later.
 */
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createHash } from '../../../kernel/create-hash.ts';
import { type LoadedFile, stampOf } from './load-plan.ts';

/** Bytes of the texts that a skill may keep: they travel in one message. */
const textBytesMax = 1_048_576;
/** Files of one skill. */
const filesMax = 10_000;

interface Node {
  readonly file: LoadedFile;
  readonly digest: string;
}

/** A module of the author, or a package: Node does not tell of every `require` within one folder. */
interface Unit {
  /** By url. */
  readonly nodes: Map<string, Node>;
  /** Of all its files; undefined until a skill that has imported it asks, and once it has one more file. */
  digest: string | undefined;
}

interface State {
  readonly units: Map<string, Unit>;
  readonly imports: Map<string, Set<string>>;
}

export type ModuleGraph = ReturnType<typeof createModuleGraph>;

export function createModuleGraph() {
  const state: State = { units: new Map(), imports: new Map() };
  return {
    /** The module `parent` imports `url`. */
    addImport: (parent: string, url: string) => addImport(state, unitOf(parent), unitOf(url)),
    /** A file was read, with `stamp` before that. */
    addFile(url: string, stamp: string, source: Uint8Array, format: string | null): void {
      const unit = unitOf(url);
      const digest = createHash('sha256').update(source).digest('base64url');
      const isKept = unit === url && !isCommonJs(format);
      const text = isKept ? Buffer.from(source).toString() : null;
      addNode(state, unit, url, {
        file: { path: fileURLToPath(url), stamp, text, format },
        digest,
      });
    },
    stampOf: (url: string) => stampOf(fileURLToPath(url)),
    /** A digest of all that the file has imported, with the file itself. */
    codeOf(file: string): string {
      const lines = reached(state, file).map(([name, unit]) => `${name}\n${digestOf(unit)}\n`);
      return createHash('sha256').update(lines.sort().join('')).digest('base64url');
    },
    /** All that the file has imported, with the file itself. */
    filesOf: (file: string) => filesOf(state, file),
  };
}

function addImport({ imports }: State, parent: string, unit: string): void {
  const known = imports.get(parent);
  if (known === undefined) imports.set(parent, new Set([unit]));
  else known.add(unit);
}

function addNode({ units }: State, name: string, url: string, node: Node): void {
  const nodes = units.get(name)?.nodes ?? new Map<string, Node>();
  units.set(name, { nodes: nodes.set(url, node), digest: undefined });
}

/** Made once for all skills that have imported the unit: many share the same packages. */
function digestOf(unit: Unit): string {
  const lines = () => [...unit.nodes].map(([url, { digest }]) => `${url}\n${digest}\n`);
  unit.digest ??= createHash('sha256').update(lines().sort().join('')).digest('base64url');
  return unit.digest;
}

function filesOf(state: State, file: string): LoadedFile[] {
  let bytes = 0;
  return reached(state, file)
    .flatMap(([, { nodes }]) => [...nodes])
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, filesMax)
    .map(([, { file: one }]) => {
      bytes += one.text?.length ?? 0;
      return bytes > textBytesMax ? { ...one, text: null } : one;
    });
}

/** The units of which a file was read. */
function reached({ units, imports }: State, file: string): [name: string, Unit][] {
  const seen = new Set([unitOf(pathToFileURL(file).href)]);
  const found: [string, Unit][] = [];
  // A set is walked in the order of its insertions, those during the walk too.
  for (const name of seen) {
    const unit = units.get(name);
    if (unit !== undefined) found.push([name, unit]);
    for (const next of imports.get(name) ?? []) seen.add(next);
  }
  return found;
}

/** The url of an author's own module; the folder of a package's. */
function unitOf(url: string): string {
  const [own = url] = url.split('?', 1);
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(own)?.[0] ?? own;
}

function isCommonJs(format: string | null): boolean {
  return format?.startsWith('commonjs') ?? false;
}
