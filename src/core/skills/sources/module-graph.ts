/**
 * The files that the module of each skill has imported, directly or not. A digest of them shows whether the code of a
 * skill has changed. Covers imports while skills load, not those of their runs later.
 */
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createHash } from '../../../kernel/create-hash.ts';
import type { LoadedFile } from './load-plan.ts';

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

export class ModuleGraph {
  readonly #units = new Map<string, Unit>();
  readonly #imports = new Map<string, Set<string>>();

  /** The module `parent` imports `url`. */
  addImport(parent: string, url: string): void {
    const name = unitOf(parent);
    const known = this.#imports.get(name);
    if (known === undefined) this.#imports.set(name, new Set([unitOf(url)]));
    else known.add(unitOf(url));
  }

  /** A file was read, with `stamp` before that. */
  addFile(url: string, stamp: string, source: Uint8Array, format: string | null): void {
    const name = unitOf(url);
    const digest = createHash('sha256').update(source).digest('base64url');
    const isKept = name === url && !isCommonJs(format);
    const text = isKept ? Buffer.from(source).toString() : null;
    const nodes = this.#units.get(name)?.nodes ?? new Map<string, Node>();
    nodes.set(url, { file: { path: fileURLToPath(url), stamp, text, format }, digest });
    this.#units.set(name, { nodes, digest: undefined });
  }

  /** A digest of all that the file has imported, with the file itself. */
  codeOf(file: string): string {
    const lines = this.#reached(file).map(([name, unit]) => `${name}\n${digestOf(unit)}\n`);
    return createHash('sha256').update(lines.sort().join('')).digest('base64url');
  }

  /** All that the file has imported, with the file itself. */
  filesOf(file: string): LoadedFile[] {
    let bytes = 0;
    return this.#reached(file)
      .flatMap(([, { nodes }]) => [...nodes])
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, filesMax)
      .map(([, { file: one }]) => {
        bytes += one.text?.length ?? 0;
        return bytes > textBytesMax ? { ...one, text: null } : one;
      });
  }

  /** The units of which a file was read. */
  #reached(file: string): [name: string, Unit][] {
    const seen = new Set([unitOf(pathToFileURL(file).href)]);
    const found: [string, Unit][] = [];
    // A set is walked in the order of its insertions, those during the walk too.
    for (const name of seen) {
      const unit = this.#units.get(name);
      if (unit !== undefined) found.push([name, unit]);
      for (const next of this.#imports.get(name) ?? []) seen.add(next);
    }
    return found;
  }
}

/** Made once for all skills that have imported the unit: many share the same packages. */
function digestOf(unit: Unit): string {
  const lines = () => [...unit.nodes].map(([url, { digest }]) => `${url}\n${digest}\n`);
  unit.digest ??= createHash('sha256').update(lines().sort().join('')).digest('base64url');
  return unit.digest;
}

/** The url of an author's own module; the folder of a package's. */
function unitOf(url: string): string {
  const [own = url] = url.split('?', 1);
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(own)?.[0] ?? own;
}

function isCommonJs(format: string | null): boolean {
  return format?.startsWith('commonjs') ?? false;
}
