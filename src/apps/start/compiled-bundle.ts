/**
 * Loads a bundle with the code that V8 compiled of its files in an earlier start. Node's own cache holds what a file compiles
 * before it runs; this code holds the functions as well that a start calls, which take a third of its time. It is made with
 * the bundle (scripts/record-code.ts), so a first start has it, too.
 *
 * Promises that code is used only for the text that it was compiled of, only whole, and only by the V8 that compiled it.
 * Any other file is compiled.
 */
import { closeSync, openSync, readdirSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { constants, Script } from 'node:vm';

const indexName = 'code.json';
const codeName = 'code.bin';
const system = `${process.platform}-${process.arch} ${process.version}`;

interface Index {
  readonly system: string;
  readonly files: Readonly<Record<string, CodeOfFile>>;
}

/** The checksums of a file's text and of its code, and where the code is in `code.bin`. */
interface CodeOfFile {
  readonly text: number;
  readonly code: number;
  readonly offset: number;
  readonly length: number;
}

interface LoadedFile {
  readonly script: Script;
  readonly module: { exports: unknown };
}

/** The exports of the file that a start of a bundle begins with. */
export function loadBundle(file: string): unknown {
  const bundle = new CompiledBundle(dirname(file));
  // Without code Node loads it, which has a cache of its own.
  return bundle.hasCodeFor(basename(file))
    ? bundle.load(basename(file))
    : createRequire(file)(file);
}

export class CompiledBundle {
  readonly #directory: string;
  readonly #code: Index['files'];
  readonly #loaded = new Map<string, LoadedFile>();
  /** For modules of Node, and packages that are no part of the bundle. */
  readonly #requireOther: NodeJS.Require;

  constructor(directory: string) {
    this.#directory = directory;
    this.#code = readIndex(join(directory, indexName));
    this.#requireOther = createRequire(join(directory, indexName));
  }

  /** Whether V8 takes the code of a file; it then takes that of the others. */
  hasCodeFor(name: string): boolean {
    return this.#code[name] !== undefined && this.#compile(name).cachedDataRejected === false;
  }

  load(name: string): unknown {
    const known = this.#loaded.get(name);
    if (known !== undefined) return known.module.exports;
    const [script, module] = [this.#compile(name), { exports: {} }];
    this.#loaded.set(name, { script, module });
    const require = (id: string) =>
      id.startsWith('./') ? this.load(id.slice(2)) : this.#requireOther(id);
    const path = join(this.#directory, name);
    const run = script.runInThisContext() as (this: unknown, ...given: unknown[]) => void;
    run.call(module.exports, module.exports, require, module, path, this.#directory);
    return module.exports;
  }

  /**
   * Writes the code of all files. V8 takes code only with the flags with which it was compiled: `resetFlags` sets those of
   * a start, and before that they are those of a platform that has started and loads further files.
   * @public For scripts/record-code.ts.
   */
  record(resetFlags: () => void): void {
    const names = readdirSync(this.#directory).filter((name) => name.endsWith('.cjs'));
    const others = names.filter((name) => !this.#loaded.has(name));
    const code = new Map(others.map((name) => [name, this.#compile(name).createCachedData()]));
    resetFlags();
    for (const [name, { script }] of this.#loaded) code.set(name, script.createCachedData());
    const files: Record<string, CodeOfFile> = {};
    let offset = 0;
    for (const [name, bytes] of code) {
      const text = checksumOf(readFileSync(join(this.#directory, name)));
      files[name] = { text, code: checksumOf(bytes), offset, length: bytes.length };
      offset += bytes.length;
    }
    writeFileSync(join(this.#directory, codeName), Buffer.concat([...code.values()]));
    writeFileSync(join(this.#directory, indexName), JSON.stringify({ system, files }));
  }

  #compile(name: string): Script {
    const filename = join(this.#directory, name);
    const text = readFileSync(filename);
    // In one line with the first, so that lines keep their numbers. The text is ASCII.
    const wrapped = `(function (exports, require, module, __filename, __dirname) { ${text.toString('latin1')}\n})`;
    return new Script(wrapped, {
      filename,
      cachedData: this.#codeOf(name, text),
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
  }

  /** Undefined where there is none, or where it is not whole or of another text, as while a package is replaced. */
  #codeOf(name: string, text: Buffer): Buffer | undefined {
    const known = this.#code[name];
    if (known === undefined || checksumOf(text) !== known.text) return undefined;
    const code = Buffer.alloc(known.length);
    const file = openSync(join(this.#directory, codeName), 'r');
    try {
      readSync(file, code, 0, known.length, known.offset);
    } finally {
      closeSync(file);
    }
    return checksumOf(code) === known.code ? code : undefined;
  }
}

function readIndex(path: string): Index['files'] {
  try {
    const index = JSON.parse(readFileSync(path, 'utf8')) as Index;
    return index.system === system ? index.files : {};
  } catch {
    // Not made, or of an installation that is under way.
    return {};
  }
}

function checksumOf(bytes: Buffer): number {
  // An import would load all parts of the module.
  return process.getBuiltinModule('node:zlib').crc32(bytes);
}
