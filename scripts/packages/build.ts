/**
 * `npm run packages`: makes the packages `skillwright`, `@skillwright/client` and the one with the Node of this system
 * as they are published, and packs them into `dist-packages`. Programs, console and guides are built, so that no start builds anything. `--only client` makes that
 * package alone, `--only types` the client and what authors compile against, unpacked; `--out` names another folder, and
 * `--systems all` makes the packages with a Node for every system, as a release needs them.
 */
import { execFile } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { packagedBundle } from '../../src/apps/start/bundle.ts';
import { declarationsOf, readPackages } from './bundled.ts';
import { clientManifest, type Manifest, platformManifest } from './manifest.ts';
import { stageProgram } from './program.ts';
import { fetchRuntime, runtimesOf, stageRuntime } from './runtime.ts';

const execute = promisify(execFile);
const root = join(import.meta.dirname, '../..');
const { values: options } = parseArgs({
  options: { only: { type: 'string' }, out: { type: 'string' }, systems: { type: 'string' } },
});
const out = resolve(options.out ?? join(root, 'dist-packages'));
const build = join(out, 'build');
const platform = join(build, 'skillwright');
const client = join(build, 'client');
const tools = join(root, 'node_modules/.bin');
/** Its argument may hold calls. */
const helperCall = /__rewriteRelativeImportExtension\(((?:[^()]|\([^()]*\))*)\)/g;

rmSync(out, { recursive: true, force: true });
mkdirSync(build, { recursive: true });
const begun = performance.now();
const stageOther = { client: null, types: stageTypes }[options.only ?? ''];
await Promise.all([stageClient(), (stageOther === undefined ? stagePlatform : stageOther)?.()]);
const packed = { client: [client], types: [] }[options.only ?? ''] ?? [
  ...[client, platform],
  ...(await stageRuntimes()),
];
for (const folder of packed) console.log(await pack(folder));
console.log(`Packed into ${out} in ${((performance.now() - begun) / 1000).toFixed(1)} s.`);

async function stageClient(): Promise<void> {
  const outDir = join(client, 'dist');
  await compile(join(import.meta.dirname, 'client.tsconfig.json'), '--outDir', outDir);
  namesOfCompiled(outDir);
  const from = join(root, 'packages/client');
  writeManifest(client, clientManifest(readManifest(from)));
  for (const name of ['README.md', 'LICENSE']) cpSync(join(from, name), join(client, name));
}

async function stagePlatform(): Promise<void> {
  await Promise.all([
    compile(typesConfiguration(readManifest(root))),
    stageProgram(platform),
    runNode('scripts/console-build.ts'),
    runNode('scripts/docs-build.ts'),
  ]);
  keepReachable(join(platform, 'src'), readManifest(root));
  namesOfCompiled(join(platform, 'src'));
  writeManifest(platform, platformManifest(readManifest(root), Object.keys(readPackages)));
  copyConsole();
  cpSync(join(root, 'docs/dist'), join(platform, 'docs/dist'), { recursive: true });
  copyFontLicense();
  for (const folder of ['bin', 'templates']) {
    const from = join(root, folder);
    if (existsSync(from)) cpSync(from, join(platform, folder), { recursive: true });
  }
  chmodSync(join(platform, 'bin/skillwright.js'), 0o755);
  for (const name of ['LICENSE', 'CHANGELOG.md']) cpSync(join(root, name), join(platform, name));
  cpSync(join(import.meta.dirname, 'skillwright.md'), join(platform, 'README.md'));
  // As for this system; V8 does not take it on others, where a first start compiles the program.
  await runNode('scripts/record-code.ts', join(platform, packagedBundle));
}

/** The declarations of the platform alone, which take a tenth of the whole. */
async function stageTypes(): Promise<void> {
  await compile(typesConfiguration(readManifest(root)));
  keepReachable(join(platform, 'src'), readManifest(root));
  namesOfCompiled(join(platform, 'src'));
  writeManifest(platform, platformManifest(readManifest(root), Object.keys(readPackages)));
  const place = 'node_modules/typebox';
  for (const file of ['package.json', ...declarationsOf(root, place)]) {
    cpSync(join(root, place, file), join(platform, place, file));
  }
}

/** The folders of the packages with a Node. */
async function stageRuntimes(): Promise<string[]> {
  const { optionalDependencies = {} } = readManifest(root);
  const runtimes = runtimesOf(optionalDependencies).filter(({ os, cpu }) => {
    return options.systems === 'all' || (os === process.platform && cpu === process.arch);
  });
  const [licence = ''] = globSync('node_modules/node-*/LICENSE', { cwd: root }).map((file) => {
    return join(root, file);
  });
  const folders: string[] = [];
  for (const runtime of runtimes) {
    const folder = join(build, `node-${runtime.system}`);
    const source = await fetchRuntime(runtime, root, join(build, 'fetched', runtime.from));
    writeManifest(folder, await stageRuntime(runtime, source, folder, licence));
    folders.push(folder);
  }
  return folders;
}

/** Without the files of earlier builds, which a checkout keeps for pages that are open. */
function copyConsole(): void {
  const from = join(root, 'console/dist');
  const assets = readdirSync(join(from, 'assets'));
  const used = new Set(readdirSync(from).filter((name) => /^[^.].*\./.test(name)));
  for (const name of used) {
    if (!/\.(?:html|js|css)$/.test(name)) continue;
    const text = readFileSync(join(from, name), 'utf8');
    for (const asset of assets) if (text.includes(asset)) used.add(join('assets', asset));
  }
  for (const name of used) {
    for (const file of globSync(`${name}*`, { cwd: from })) {
      cpSync(join(from, file), join(platform, 'console/dist', file));
    }
  }
}

/** Vite lists the licences of the modules, in `licenses.md`, and not that of the font. */
function copyFontLicense(): void {
  const from = join(root, 'node_modules/@fontsource-variable/inter/LICENSE');
  cpSync(from, join(platform, 'console/dist/inter-license.txt'));
}

async function compile(configuration: string, ...args: string[]): Promise<void> {
  await run(join(tools, 'tsc'), ['-p', configuration, ...args]);
}

/** Declares only what is exported and what that needs: nothing else of the platform can be imported. */
function typesConfiguration({ exports }: Manifest): string {
  const file = join(build, 'types.tsconfig.json');
  const options = {
    noEmit: false,
    incremental: false,
    declaration: true,
    emitDeclarationOnly: true,
    // The whole is checked elsewhere; the modules that declare more of a package are not among these.
    noCheck: true,
  };
  const [rootDir, outDir] = [join(root, 'src'), join(platform, 'src')];
  const files = Object.values(exports)
    .filter((name) => typeof name === 'string' && name.endsWith('.ts'))
    .map((name) => join(root, name as string));
  const compilerOptions = {
    ...options,
    rootDir,
    outDir,
    types: ['node'],
    typeRoots: [join(root, 'node_modules/@types')],
  };
  const extended = join(root, 'tsconfig.json');
  writeFileSync(file, JSON.stringify({ extends: extended, compilerOptions, include: [], files }));
  return file;
}

/** Deletes the declarations that no author can reach: the compiler also writes those of the modules that only run. */
function keepReachable(folder: string, { exports }: Manifest): void {
  const reached = new Set<string>();
  const reach = (file: string): void => {
    if (reached.has(file)) return;
    reached.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, name = ''] of text.matchAll(/(?:from |import\()['"](\.[^'"]*)\.[jt]s['"]/g)) {
      reach(join(dirname(file), `${name}.d.ts`));
    }
  };
  for (const name of Object.values(exports)) {
    if (typeof name === 'string' && name.endsWith('.ts')) {
      reach(join(folder, name.replace(/^\.\/src\/(.*)\.ts$/, '$1.d.ts')));
    }
  }
  for (const name of globSync('**/*.d.ts', { cwd: folder })) {
    if (!reached.has(join(folder, name))) rmSync(join(folder, name));
  }
}

/**
 * What the compiler leaves of `.ts` in its output: in declarations, and in imports of computed names, for which
 * it adds a function to the module.
 */
function namesOfCompiled(folder: string): void {
  for (const name of globSync('**/*.js', { cwd: folder })) {
    change(join(folder, name), (code) =>
      code
        .replace(/^var __rewriteRelativeImportExtension = [\s\S]*?\n\};\n/m, '')
        .replace(helperCall, (_all, name: string) => name.replace(/\.ts`$/, '.js`')),
    );
  }
  for (const name of globSync('**/*.d.ts', { cwd: folder })) {
    change(join(folder, name), (code) => code.replace(/(from '\.[^']*)\.ts'/g, "$1.js'"));
  }
}

function change(file: string, edit: (text: string) => string): void {
  const text = readFileSync(file, 'utf8');
  const edited = edit(text);
  if (edited.includes('__rewriteRelative')) throw new Error(`${file}: an import is not rewritten`);
  if (edited !== text) writeFileSync(file, edited);
}

/** Packs a folder; a line about what became of it. */
async function pack(folder: string): Promise<string> {
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts'], folder);
  const [packed] = JSON.parse(stdout) as {
    filename: string;
    size: number;
    unpackedSize: number;
    entryCount: number;
  }[];
  if (packed === undefined) throw new Error(`npm pack made nothing of ${folder}`);
  const { filename, size, unpackedSize, entryCount } = packed;
  renameSync(join(folder, filename), join(out, filename));
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
  return `${filename}: ${megabytes(size)}, ${entryCount} files of ${megabytes(unpackedSize)}`;
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}

function writeManifest(folder: string, manifest: object): void {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

function runNode(script: string, ...args: string[]): Promise<unknown> {
  return run(process.execPath, [join(root, script), ...args]);
}

async function run(program: string, args: readonly string[], cwd = root) {
  try {
    return await execute(program, args, { cwd, maxBuffer: 64 * 1024 * 1024 });
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args.join(' ')} failed: ${stdout ?? ''}${stderr ?? ''}`);
  }
}
