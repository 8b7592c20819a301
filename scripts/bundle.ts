/**
 * Bundles the program into `dist`, unless that holds a bundle of the present sources. Installations in a checkout,
 * images and tests run it; a start without a bundle runs the sources. With a directory as its argument it bundles
 * the compiled program in there, for a package.
 *
 * Executors and sandboxed processes run the sources, because skills import parts of them. So in a bundled
 * module `import.meta.url` and `import.meta.dirname` stay those of its source.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { type OutputChunk, type Plugin, rolldown } from 'rolldown';
import { dynamicImportVarsPlugin, importGlobPlugin } from 'rolldown/experimental';
import {
  bundles,
  entryName,
  freshBundle,
  packagedBundle,
  recordFile,
  recordSources,
  root,
} from '../src/apps/start/bundle.ts';
import type { LineTable } from '../src/apps/start/stack-traces.ts';

/** A running program loads parts of its bundle later, so earlier bundles are kept; each has 9 MB. */
const keptMax = 10;

const [compiled] = process.argv.slice(2);
if (compiled !== undefined) await bundleCompiled(resolve(compiled));
else if (freshBundle() === null) await bundle();

async function bundleCompiled(program: string): Promise<void> {
  const directory = join(program, packagedBundle);
  mkdirSync(directory, { recursive: true });
  await write(program, 'src/apps/composition/run.js', directory);
}

async function bundle(): Promise<void> {
  const sources = recordSources();
  const directory = join(bundles, sources.fingerprint);
  mkdirSync(bundles, { recursive: true });
  removeOld();
  const fresh = mkdtempSync(join(bundles, 'new-'));
  try {
    await write(root, 'src/apps/composition/run.ts', fresh);
    if (recordSources().times !== sources.times) throw new Error('the sources changed meanwhile');
    // An image is built by root, and run by another user.
    chmodSync(fresh, 0o755);
    // Another process may have made the same bundle.
    if (!existsSync(directory)) renameSync(fresh, directory);
    const record = `${fresh}.json`;
    writeFileSync(record, JSON.stringify(sources));
    renameSync(record, recordFile);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

async function write(program: string, entry: string, directory: string): Promise<void> {
  const build = await rolldown({
    cwd: program,
    input: { run: entry },
    platform: 'node',
    // Native, and loaded only where they are installed.
    external: ['msgpackr-extract', 'pg-native'],
    // The two resolve imports of computed names: they bundle every file that may be meant.
    plugins: [
      sourcePlaces(join(program, 'src/'), directory),
      unusedServers(),
      unusedGlob(),
      dynamicImportVarsPlugin(),
      importGlobPlugin(),
    ],
  });
  const { output } = await build.generate({
    dir: directory,
    // Not ES modules, which have Node load all parts of a built-in module that it would load lazily.
    format: 'cjs',
    entryFileNames: entryName,
    chunkFileNames: '[name]-[hash].cjs',
    // Loaded together or not at all.
    codeSplitting: { groups: [{ name: 'migrations', test: /database\/migrations\// }] },
    comments: false,
    sourcemap: 'hidden',
  });
  await build.close();
  for (const file of output) {
    if (file.type !== 'chunk') continue;
    const unresolved = /import\(`[^`]*`/.exec(file.code)?.[0];
    if (unresolved !== undefined) throw new Error(`${unresolved}) cannot be bundled`);
    writeFileSync(join(directory, file.fileName), asciiOf(file.code));
    writeFileSync(join(directory, `${file.fileName}.lines`), JSON.stringify(linesOf(file)));
  }
}

/** Escapes all other characters, because one of them makes V8 hold two bytes for each character of the file. */
function asciiOf(code: string): string {
  const raw = /\braw`[^`]*[^\0-\x7f]/.exec(code)?.[0];
  if (raw !== undefined) throw new Error(`${raw}: an escape would change it`);
  return code.replace(/[^\0-\x7f]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** Keeps the idea of its place of each module below `sources`. */
function sourcePlaces(sources: string, directory: string): Plugin {
  return {
    name: 'source-places',
    transform: {
      filter: { id: /\/src\/.*\.[tj]s$/, code: /import\.meta\./ },
      handler(code, id) {
        if (!id.startsWith(sources)) return null;
        const file = relative(directory, id).split(sep).join('/');
        const url = `new URL(${JSON.stringify(file)}, import.meta.url).href`;
        const place = `(import.meta.dirname + ${JSON.stringify(`/${dirname(file)}`)})`;
        return {
          code: code.replaceAll('import.meta.url', url).replaceAll('import.meta.dirname', place),
          // The lines stay where they are.
          map: null,
        };
      },
    },
  };
}

/**
 * Loads the modules for TLS and HTTP/2 when Fastify or the client of Prometheus uses them, which the platform has neither
 * do: they take 7 MiB of each process.
 */
function unusedServers(): Plugin {
  const imports = /const (https?2?) = require\('(?:node:)?\1'\);?/g;
  return {
    name: 'unused-servers',
    transform: {
      filter: { id: /\/(fastify\/lib\/server|prom-client\/lib\/pushgateway)\.js$/ },
      handler(code, id) {
        const late = code.replace(imports, (statement, name) => {
          if (name === 'http') return statement;
          return `const ${name} = new Proxy({}, { get: (_, key) => require('node:${name}')[key] });`;
        });
        if (late === code) throw new Error(`${id} imports TLS in another way than before`);
        return { code: late, map: null };
      },
    },
  };
}

/** The server of files uses it only to make a route for each file, which the platform does not; it takes 1 MiB. */
function unusedGlob(): Plugin {
  const loading = "const { glob } = require('glob')";
  return {
    name: 'unused-glob',
    transform: {
      filter: { id: /\/@fastify\/static\/index\.js$/ },
      handler(code, id) {
        if (!code.includes(loading))
          throw new Error(`${id} imports glob in another way than before`);
        return { code: code.replace(loading, 'const glob = undefined'), map: null };
      },
    },
  };
}

function linesOf({ code, map }: OutputChunk): LineTable {
  if (map === null) return { sources: [], lines: [] };
  const { sources } = map;
  const indexes = new Map(sources.map((source, index) => [source, index]));
  const origins = new SourceMap(JSON.parse(map.toString()));
  const lines = code.split('\n').flatMap((text, line) => {
    const origin = origins.findEntry(line, text.length);
    const isHere = 'originalSource' in origin && origin.generatedLine === line;
    return isHere ? [indexes.get(origin.originalSource) ?? -1, origin.originalLine + 1] : [-1, 0];
  });
  return { sources, lines };
}

function removeOld(): void {
  const changed = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const directories = readdirSync(bundles, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(bundles, name))
    .sort((a, b) => changed(b) - changed(a));
  for (const path of directories.slice(keptMax)) rmSync(path, { recursive: true, force: true });
}
