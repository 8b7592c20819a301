/**
 * The skills snapshot, one file of modules. The first executor records it while it loads; every later
 * executor loads from it and not from the disk. Promises that all executors of a snapshot run the same
 * text of every module that was imported during the load, and of every module below the skill directories.
 * Does not cover the platform's own installation, packages that are first imported during a run, and files
 * that code reads itself.
 */
import { fstatSync, readdirSync, readSync, realpathSync, writeSync } from 'node:fs';
import {
  type LoadHookContext,
  type ModuleHooks,
  type ResolveHookContext,
  registerHooks,
} from 'node:module';
import { extname, join, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { depthMax, entriesMax, tooManyEntries } from './find-modules.ts';
import { isInstalled } from './installation.ts';
import { SkillLoadError } from './load-error.ts';
import { type KeptSkill, stampOf } from './load-plan.ts';
import { ModuleGraph } from './module-graph.ts';
import type { LoadedSkill } from './modules.ts';
import { readFile, skillMdBytesMax } from './read-file.ts';

/** A skill of the snapshot, and the file that defines it. */
export interface RecordedSkill {
  readonly key: string;
  readonly file: string;
}

/** What every executor of a snapshot has. */
export interface RecordedSkills {
  /** Imported by each executor before its first run. */
  readonly skills: readonly RecordedSkill[];
  /** Imported at their first run. */
  readonly unchanged: readonly LoadedSkill[];
  /** The same, in the versions that loaded last. */
  readonly kept: readonly KeptSkill[];
}

/** Offset and length in the file. */
type Place = readonly [offset: number, length: number];

interface RecordedModule {
  readonly format: string | null;
  /** The source when Node read it; with `none`, Node reads it again. */
  readonly kind: 'text' | 'bytes' | 'none';
  readonly place: Place;
}

interface Index {
  recorded: RecordedSkills;
  /** By kind of import and url. */
  modules: Record<string, RecordedModule>;
  /** The resolution of a specifier, by kind of import and importing module. */
  resolutions: Record<string, { url: string; format: string | null }>;
  /** Modules below the skill directories by url, and texts by path. */
  files: Record<string, Place>;
}

/** Bytes of the modules below the skill directories. */
const moduleBytesMax = 268_435_456;
/** The offset and the length of the index, as two 64-bit numbers. */
const headerBytes = 16;
const modulePattern = /\.[cm]?[jt]s$/;

/** Records the modules that this process loads, and every module below `dirs`, into the empty file `fd`. */
export class SnapshotRecorder {
  /** What the files that were loaded have imported, outside of the platform's installation. */
  readonly graph = new ModuleGraph();
  readonly #fd: number;
  readonly #index: Index = {
    recorded: { skills: [], unchanged: [], kept: [] },
    modules: {},
    resolutions: {},
    files: {},
  };
  readonly #hooks: ModuleHooks;
  #end = headerBytes;

  /** Throws SkillLoadError where the modules are too large. */
  constructor(fd: number, dirs: readonly string[]) {
    this.#fd = fd;
    for (const dir of dirs) this.#appendModules(resolve(dir));
    this.#hooks = registerHooks({
      resolve: (specifier, context, nextResolve) => {
        const result = nextResolve(specifier, context);
        if (isCovered(result.url)) {
          const { url, format = null } = result;
          this.#index.resolutions[resolutionKey(specifier, context)] = { url, format };
          this.graph.addImport(context.parentURL ?? '', url);
        }
        return result;
      },
      load: (url, context, nextLoad) => {
        if (!isCovered(url)) return nextLoad(url, context);
        const stamp = stampOf(fileURLToPath(url));
        const result = nextLoad(url, context);
        const { source, format = null } = result;
        const kind = source == null ? 'none' : typeof source === 'string' ? 'text' : 'bytes';
        const bytes = bytesOf(source);
        const place = this.#append(bytes);
        this.#index.modules[moduleKey(url, context)] = { format, kind, place };
        const text = kind === 'none' ? readFile(fileURLToPath(url), moduleBytesMax) : bytes;
        this.graph.addFile(url, stamp, text, format);
        return result;
      },
    });
  }

  /** Reads a file that is not a module, and records its bytes. */
  read(file: string): Buffer {
    const stamp = stampOf(file);
    const bytes = readFile(file, skillMdBytesMax);
    this.#index.files[file] = this.#append(bytes);
    this.graph.addFile(pathToFileURL(file).href, stamp, bytes, null);
    return bytes;
  }

  /** Writes the index; from now on this process loads from the snapshot too. */
  seal(recorded: RecordedSkills): void {
    this.#hooks.deregister();
    this.#index.recorded = recorded;
    const [offset, length] = this.#append(Buffer.from(JSON.stringify(this.#index)));
    const header = Buffer.alloc(headerBytes);
    header.writeBigUInt64LE(BigInt(offset), 0);
    header.writeBigUInt64LE(BigInt(length), 8);
    writeAll(this.#fd, header, 0);
    loadFromSnapshot(this.#fd);
  }

  #append(bytes: Uint8Array): Place {
    const place: Place = [this.#end, bytes.byteLength];
    writeAll(this.#fd, bytes, this.#end);
    this.#end += bytes.byteLength;
    return place;
  }

  #appendModules(dir: string): void {
    let bytes = 0;
    for (const file of modulesBelow(dir)) {
      const source = readFile(file, moduleBytesMax);
      bytes += source.length;
      if (bytes > moduleBytesMax) {
        const most = `${moduleBytesMax / 1_048_576} MiB`;
        throw new SkillLoadError(dir, `holds more than ${most} of modules`);
      }
      this.#index.files[pathToFileURL(file).href] = this.#append(source);
    }
  }
}

export interface Snapshot extends RecordedSkills {
  readonly fd: number;
  readonly files: Index['files'];
}

/** Makes this process load modules from the snapshot in `fd` from now on. */
export function loadFromSnapshot(fd: number): Snapshot {
  const header = readAt(fd, [0, headerBytes]);
  const place: Place = [Number(header.readBigUInt64LE(0)), Number(header.readBigUInt64LE(8))];
  const index = JSON.parse(readAt(fd, place).toString()) as Index;
  const { modules, resolutions, files } = index;
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const known = resolutions[resolutionKey(specifier, context)];
      if (known === undefined) return nextResolve(specifier, context);
      const { url, format } = known;
      return {
        url,
        // With `null` Node would read a JSON file that is required as JavaScript.
        format: format ?? undefined,
        importAttributes: context.importAttributes,
        shortCircuit: true,
      };
    },
    load(url, context, nextLoad) {
      const known = modules[moduleKey(url, context)];
      if (known !== undefined) {
        const bytes = known.kind === 'none' ? undefined : readAt(fd, known.place);
        const source = known.kind === 'text' ? bytes?.toString() : bytes;
        return { format: known.format ?? undefined, source, shortCircuit: true };
      }
      const held = files[url];
      const result = nextLoad(url, context);
      // Node determines the format, which depends on more than the text; the text is the recorded one.
      return held === undefined || result.source == null
        ? result
        : { ...result, source: readAt(fd, held) };
    },
  });
  return { ...index.recorded, fd, files };
}

/** The recorded bytes of a file that is not a module; undefined when there are none. */
export function readRecorded({ fd, files }: Snapshot, file: string): Buffer | undefined {
  const place = files[file];
  return place === undefined ? undefined : readAt(fd, place);
}

/** Whether it is a file outside of the platform's own installation. */
function isCovered(url: string): boolean {
  return url.startsWith('file:') && !isInstalled(fileURLToPath(url));
}

function moduleKey(url: string, { conditions }: Pick<LoadHookContext, 'conditions'>): string {
  return `${wayOf(conditions)} ${url}`;
}

function resolutionKey(specifier: string, context: ResolveHookContext): string {
  return JSON.stringify([wayOf(context.conditions), context.parentURL ?? '', specifier]);
}

/** `import` and `require` of one module may lead to two files, and read one file in two ways. */
function wayOf(conditions: readonly string[]): string {
  return conditions.includes('require') ? 'require' : 'import';
}

function bytesOf(source: unknown): Uint8Array {
  if (typeof source === 'string') return Buffer.from(source);
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  return ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array();
}

/**
 * Real paths of the modules of `dir`, without those of packages, of the platform's installation and of folders that are
 * too deep to be searched for skills.
 */
function modulesBelow(dir: string): string[] {
  const found: string[] = [];
  let left = entriesMax;
  const visit = (real: string, depth: number): void => {
    if (depth > depthMax || isInstalled(`${real}${sep}`)) return;
    const entries = readdirSync(real, { withFileTypes: true });
    left -= entries.length;
    if (left < 0) throw tooManyEntries(dir);
    for (const entry of entries) {
      if (entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.')) {
        visit(join(real, entry.name), depth + 1);
      } else if (entry.isFile() && modulePattern.test(extname(entry.name))) {
        found.push(join(real, entry.name));
      }
    }
  };
  visit(realpathSync(dir), 0);
  return found;
}

function writeAll(fd: number, bytes: Uint8Array, position: number): void {
  for (let written = 0; written < bytes.byteLength; ) {
    written += writeSync(fd, bytes, written, bytes.byteLength - written, position + written);
  }
}

function readAt(fd: number, [offset, length]: Place): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let read = 0; read < length; ) {
    const count = readSync(fd, bytes, read, length - read, offset + read);
    if (count === 0) throw new Error(`the skills' snapshot ends at ${fstatSync(fd).size} bytes`);
    read += count;
  }
  return bytes;
}
