/**
 * Bundles entries of the program into few files. A bundled module keeps its place: `import.meta.url`,
 * `import.meta.dirname` and `import.meta.filename` are those of its source, because modules find others, libraries and
 * files beside them. Each file of a bundle has a table of lines beside it (src/apps/start/stack-traces.ts).
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { type OutputChunk, type OutputOptions, type Plugin, rolldown } from 'rolldown';
import { dynamicImportVarsPlugin, importGlobPlugin } from 'rolldown/experimental';
import { entryName } from '../src/apps/start/bundle.ts';
import type { LineTable } from '../src/apps/start/stack-traces.ts';

/** What to bundle, and how. */
export interface Bundling {
  /** The root of the checkout. */
  readonly program: string;
  /** Names of the files to make, without an ending, by what they are made of: paths from the root. */
  readonly entries: Readonly<Record<string, string>>;
  /** Where the files are written. */
  readonly directory: string;
  /** Where they would lie in the checkout, which makes their way to the sources; `directory` if left out. */
  readonly place?: string;
  /** How the names of modules end at that root: `.js` in a package. */
  readonly ending?: '.ts' | '.js';
  readonly output: Pick<
    OutputOptions,
    'format' | 'entryFileNames' | 'chunkFileNames' | 'codeSplitting'
  >;
  readonly plugins?: readonly Plugin[];
}

/** The form of the bundle that a start runs, `run`. */
export const runOutput: Bundling['output'] = {
  // Not ES modules, which have Node load all parts of a built-in module that it would load lazily.
  format: 'cjs',
  entryFileNames: entryName,
  chunkFileNames: '[name]-[hash].cjs',
  // Loaded together or not at all.
  codeSplitting: { groups: [{ name: 'migrations', test: /database\/migrations\// }] },
};

/** Writes the bundle; the paths of the modules in it. */
export async function writeBundle(bundling: Bundling): Promise<Set<string>> {
  const { program, entries, directory, place = directory, ending = '.ts', output } = bundling;
  const build = await rolldown({
    cwd: program,
    input: { ...entries },
    platform: 'node',
    // Native, and loaded only where they are installed.
    external: ['msgpackr-extract', 'pg-native'],
    // The last two resolve imports of computed names: they bundle every file that may be meant.
    plugins: [
      ...(bundling.plugins ?? []),
      sourcePlaces(join(program, 'src/'), ending),
      unusedServers(),
      unusedGlob(),
      unusedCompilers(),
      dynamicImportVarsPlugin(),
      importGlobPlugin(),
    ],
  });
  const generated = await build.generate({
    dir: directory,
    ...output,
    comments: false,
    sourcemap: 'hidden',
  });
  await build.close();
  const modules = new Set<string>();
  for (const file of generated.output) {
    if (file.type !== 'chunk') continue;
    const unresolved = /import\(`[^`]*`/.exec(file.code)?.[0];
    if (unresolved !== undefined) throw new Error(`${unresolved}) cannot be bundled`);
    for (const module of file.moduleIds) modules.add(module);
    const path = join(directory, file.fileName);
    const folder = dirname(join(place, file.fileName));
    mkdirSync(dirname(path), { recursive: true });
    const code = placed(file.code, folder, join(program, 'src'), output.format);
    writeFileSync(path, asciiOf(code));
    // Of packages alone: their lines say nothing to an operator.
    if (file.moduleIds.every((id) => id.includes('node_modules'))) continue;
    writeFileSync(`${path}.lines`, JSON.stringify(linesOf(file, dirname(path), folder)));
  }
  return modules;
}

/** Escapes all other characters, because one of them makes V8 hold two bytes for each character of the file. */
function asciiOf(code: string): string {
  const raw = /\braw`[^`]*[^\0-\x7f]/.exec(code)?.[0];
  if (raw !== undefined) throw new Error(`${raw}: an escape would change it`);
  return code.replace(/[^\0-\x7f]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** Names that no source has, for the folder of the sources; `placed` replaces them once it is known which file has them. */
const sourcesUrl = '__skillwrightSourcesUrl';
const sourcesPath = '__skillwrightSourcesPath';

/** Each module below `sources` knows its own place. */
function sourcePlaces(sources: string, ending: string): Plugin {
  return {
    name: 'source-places',
    transform: {
      filter: { id: /\/src\/.*\.[tj]s$/, code: /import\.meta\./ },
      handler(code, id) {
        if (!id.startsWith(sources)) return null;
        const file = id.slice(sources.length).replace(/\.ts$/, ending).split(sep).join('/');
        const path = (name: string) => `(${sourcesPath} + ${JSON.stringify(`/${name}`)})`;
        return {
          code: code
            .replaceAll('import.meta.url', `new URL(${JSON.stringify(file)}, ${sourcesUrl}).href`)
            .replaceAll('import.meta.dirname', path(dirname(file)))
            .replaceAll('import.meta.filename', path(file)),
          // The lines stay where they are.
          map: null,
        };
      },
    },
  };
}

/** The code of a file with the way from it, `folder`, to the sources. */
function placed(code: string, folder: string, sources: string, format: OutputOptions['format']) {
  const way = (relative(folder, sources) || '.').split(sep).join('/');
  const isModule = format === 'esm';
  const path = `${isModule ? 'import.meta.dirname' : '__dirname'} + ${JSON.stringify(`/${way}`)}`;
  const url = isModule
    ? `new URL(${JSON.stringify(`${way}/`)}, import.meta.url)`
    : `require('node:url').pathToFileURL(${path} + '/')`;
  return code.replaceAll(sourcesUrl, url).replaceAll(sourcesPath, path);
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

/**
 * What Fastify loads only for a server without compilers of its own (src/adapters/http/own-compilers.ts), and for
 * requests that are not from the network: they are a twentieth of what a first start compiles.
 */
function unusedCompilers(): Plugin {
  const name = '\0unused-compilers';
  return {
    name: 'unused-compilers',
    resolveId: {
      filter: { id: /^(?:@fastify\/(?:ajv|fast-json-stringify)-compiler|light-my-request)$/ },
      handler: () => name,
    },
    load: { filter: { id: /^\0unused-compilers$/ }, handler: () => 'export {};' },
  };
}

/** `from` is the folder in which the bundler puts the file, and `folder` the one in which it lies later. */
function linesOf({ code, map }: OutputChunk, from: string, folder: string): LineTable {
  if (map === null) return { sources: [], lines: [] };
  const indexes = new Map(map.sources.map((source, index) => [source, index]));
  const sources = map.sources.map((source) => relative(folder, resolve(from, source)));
  const origins = new SourceMap(JSON.parse(map.toString()));
  const lines = code.split('\n').flatMap((text, line) => {
    const origin = origins.findEntry(line, text.length);
    const isHere = 'originalSource' in origin && origin.generatedLine === line;
    return isHere ? [indexes.get(origin.originalSource) ?? -1, origin.originalLine + 1] : [-1, 0];
  });
  return { sources, lines };
}
