/**
 * The program of the package: each process of the platform from few files, with the packages that they need in them.
 * What is loaded by its place lies where the source does: executors, sandboxed processes, threads, the command line,
 * the catalog and the migrations. The code that they share is in `src/chunks`, the program of a start in `dist/package`.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Plugin } from 'rolldown';
import { packagedBundle } from '../../src/apps/start/bundle.ts';
import { runOutput, writeBundle } from '../bundling.ts';
import { bundledManifest, declarationsOf, isRead, type Locked, placesRead } from './bundled.ts';

const root = join(import.meta.dirname, '../..');

/** Entries of processes and threads whose stack traces name the sources. */
const processes = [
  'src/apps/cli/main.ts',
  'src/apps/cli/findings/load-skills.ts',
  'src/apps/cli/run-examples.ts',
  'src/core/executors/child/child.ts',
];
const others = [
  'src/start.js',
  'src/main.ts',
  'src/author.ts',
  'src/apps/testing/testing.ts',
  'src/adapters/sandbox/sandbox-process.ts',
  // What sandboxed processes load, beside skills of the catalog.
  'src/adapters/sandbox/jsonata.ts',
  'src/platform/remote-skills/openapi/read-document.ts',
  'src/core/skills/catalog/_support/rendering.ts',
  'src/core/skills/catalog/_support/schema-validation.ts',
];

/** Writes the program into the folder of the package, with the packages of which it reads files. */
export async function stageProgram(platform: string): Promise<void> {
  const found = ['src/core/skills/catalog/**/[!_]*.ts', 'src/adapters/database/migrations/*.ts']
    .flatMap((pattern) => globSync(pattern, { cwd: root }))
    .filter((file) => !(file.includes('/_') || /\.test\.ts$/.test(file)));
  const entries = [...processes, ...others, ...found.sort()];
  const names = entries.map((file) => [file.replace(/\.[tj]s$/, ''), file]);
  const modules = await writeBundle({
    program: root,
    directory: platform,
    place: root,
    ending: '.js',
    entries: Object.fromEntries(names),
    output: {
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'src/chunks/[name]-[hash].js',
    },
    plugins: [traces(), startAlone()],
  });
  const run = await writeBundle({
    program: root,
    directory: join(platform, packagedBundle),
    place: join(root, packagedBundle),
    ending: '.js',
    output: runOutput,
    entries: { run: 'src/apps/composition/run.ts' },
  });
  writeReference(join(platform, 'src/adapters/http'));
  const read = copyRead(platform);
  const places = [...modules, ...run].flatMap((id) => placeOf(id) ?? []);
  writeFileSync(join(platform, 'dist/licenses.txt'), licensesOf(new Set([...places, ...read])));
}

/** The processes of the platform name the sources in their stack traces. */
function traces(): Plugin {
  const ids = new Set(processes.map((file) => join(root, file)));
  const from = JSON.stringify(join(root, 'src/apps/start/stack-traces.ts'));
  return {
    name: 'traces',
    transform: {
      filter: { id: /\.ts$/ },
      handler(code, id) {
        // In the first line, so that the lines stay where they are.
        const start = `import { traceSources } from ${from}; traceSources(); `;
        return ids.has(id) ? { code: `${start}${code}`, map: null } : null;
      },
    },
  };
}

/** A start of a package runs its bundle, so the modules of the sources are not loaded from `main.js`. */
function startAlone(): Plugin {
  return {
    name: 'start-alone',
    resolveId: {
      filter: { id: /composition\/run\.ts$/ },
      handler: (id, importer) =>
        importer === join(root, 'src/main.ts') ? { id, external: true } : null,
    },
  };
}

/** The script of the page `/docs`, as the program of the checkout makes it: without the 8 MB that it comes in. */
function writeReference(folder: string): void {
  const program = join(root, 'src/adapters/http/docs-bundle.ts');
  const script = execFileSync(process.execPath, [program], { maxBuffer: 64 * 1024 * 1024 });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'scalar.js.gz'), script);
  writeFileSync(
    join(folder, 'docs-bundle.js'),
    "import { readFileSync } from 'node:fs';\nprocess.stdout.write(readFileSync(new URL('./scalar.js.gz', import.meta.url)));\n",
  );
}

/** Copies the packages of which the program reads files; their places. */
function copyRead(platform: string): string[] {
  const places = placesRead(locked());
  for (const place of places) {
    const from = join(root, place);
    const files = globSync('**/*', { cwd: from, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(from, join(entry.parentPath, entry.name)))
      .filter((file) => isRead(place, file));
    for (const file of [...files, ...declarationsOf(root, place)]) {
      cpSync(join(from, file), join(platform, place, file));
    }
    const manifest = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8')) as object;
    const file = join(platform, place, 'package.json');
    writeFileSync(file, `${JSON.stringify(bundledManifest(place, { ...manifest }), null, 2)}\n`);
  }
  return places;
}

function locked(): Locked {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return (lock as { packages: Locked }).packages;
}

/** The place of the package that a bundled module is of. */
function placeOf(id: string): string | undefined {
  return /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(relative(root, id))?.[0];
}

/** The licences of the packages whose code is in the program. Throws where one is not of the locked version. */
function licensesOf(places: ReadonlySet<string>): string {
  const known = locked();
  const parts = [...places].sort().map((place) => {
    const folder = join(root, place);
    const { name, version, license } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    ) as { name: string; version: string; license?: string };
    if (known[place]?.version !== version) {
      throw new Error(
        `${place} is not of version ${known[place]?.version}, which is locked: run npm ci`,
      );
    }
    const files = globSync('{LICENSE,LICENCE,COPYING,NOTICE,license}*', { cwd: folder }).sort();
    const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim());
    return [`${name} ${version} (${license ?? 'see below'})`, ...texts].join('\n\n');
  });
  const head = 'Skillwright contains code of these packages, under these licences.';
  return `${[head, ...parts].join(`\n\n${'-'.repeat(72)}\n\n`)}\n`;
}
