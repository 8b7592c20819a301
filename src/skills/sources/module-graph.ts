/**
 * What each skill is made of: the files that its module has imported, directly or not. Tells by a digest whether
 * the code of a skill has changed. Knows what is imported while skills load, not what their runs import later.
 */
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createHash } from '../../kernel/create-hash.ts';
import { type LoadedFile, stampOf } from './load-plan.ts';

/** Bytes of the texts that a skill may keep: they travel in one message. */
const textBytesMax = 1_048_576;
/** Files of one skill. */
const filesMax = 10_000;

interface Node {
  readonly file: LoadedFile;
  readonly digest: string;
}

interface State {
  /** By url. */
  readonly nodes: Map<string, Node>;
  /** The units of a package together, because Node does not tell of every `require` within one folder. */
  readonly members: Map<string, Set<string>>;
  readonly imports: Map<string, Set<string>>;
}

export type ModuleGraph = ReturnType<typeof createModuleGraph>;

export function createModuleGraph() {
  const state: State = { nodes: new Map(), members: new Map(), imports: new Map() };
  return {
    /** The module `parent` imports `url`. */
    addImport(parent: string, url: string): void {
      addTo(state.imports, unitOf(parent), unitOf(url));
    },
    /** A file was read, with `stamp` before that. */
    addFile(url: string, stamp: string, source: Uint8Array, format: string | null): void {
      const unit = unitOf(url);
      addTo(state.members, unit, url);
      const digest = createHash('sha256').update(source).digest('base64url');
      const isKept = unit === url && !isCommonJs(format);
      const text = isKept ? Buffer.from(source).toString() : null;
      state.nodes.set(url, { file: { path: fileURLToPath(url), stamp, text, format }, digest });
    },
    stampOf: (url: string) => stampOf(fileURLToPath(url)),
    /** A digest of all that the file has imported, with the file itself. */
    codeOf(file: string): string {
      const hash = createHash('sha256');
      for (const [url, { digest }] of reached(state, file)) hash.update(`${url}\n${digest}\n`);
      return hash.digest('base64url');
    },
    /** All that the file has imported, with the file itself. */
    filesOf: (file: string) => filesOf(state, file),
  };
}

function filesOf(state: State, file: string): LoadedFile[] {
  let bytes = 0;
  return reached(state, file)
    .slice(0, filesMax)
    .map(([, { file: one }]) => {
      bytes += one.text?.length ?? 0;
      return bytes > textBytesMax ? { ...one, text: null } : one;
    });
}

function reached({ nodes, members, imports }: State, file: string): [string, Node][] {
  const seen = new Set([unitOf(pathToFileURL(file).href)]);
  const found: [string, Node][] = [];
  // A set is walked in the order of its insertions, those during the walk too.
  for (const unit of seen) {
    for (const url of members.get(unit) ?? []) {
      const node = nodes.get(url);
      if (node !== undefined) found.push([url, node]);
    }
    for (const next of imports.get(unit) ?? []) seen.add(next);
  }
  return found.sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The url of an author's own module; the folder of a package's. */
function unitOf(url: string): string {
  const [own = url] = url.split('?', 1);
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(own)?.[0] ?? own;
}

function isCommonJs(format: string | null): boolean {
  return format?.startsWith('commonjs') ?? false;
}

function addTo(sets: Map<string, Set<string>>, key: string, value: string): void {
  const known = sets.get(key);
  if (known === undefined) sets.set(key, new Set([value]));
  else known.add(value);
}
