/**
 * `npm run executable`: makes the platform of one file, for each system of which `npm run packages` has made a package
 * with a Node, into `dist-packages`. The file is that Node with the program of the package in it (main.js); it is also
 * written compressed, as it is downloaded, unless `--plain` is given. `--out` names the folder of `npm run packages`.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';

const { values } = parseArgs({ options: { out: { type: 'string' }, plain: { type: 'boolean' } } });
const root = join(import.meta.dirname, '../..');
const out = resolve(values.out ?? join(root, 'dist-packages'));
const build = join(out, 'build');
const platform = join(build, 'skillwright');
/** The flags of Node that the command of the package starts the platform with. */
const flags = /^const flags = \[([^\]]*)\]/m;
/** Higher ones take a minute for some percent less. */
const compressionLevel = 12;
/** What only authors and their compilers read. */
const onlyInPackages = /\.d\.m?ts$|^(?:README\.md|bin\/)/;

const staged = join(build, 'executable');
mkdirSync(staged, { recursive: true });
copyFileSync(join(import.meta.dirname, 'load.js'), join(platform, 'src/load.js'));
writeProgram();
rmSync(join(platform, 'src/load.js'));
for (const folder of globSync('node-*', { cwd: build })) makeExecutable(folder);

/** The files of the program as one, and the list of them. */
function writeProgram(): void {
  const names = globSync('**/*', { cwd: platform, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(platform.length + 1))
    .filter((name) => !onlyInPackages.test(name))
    .sort();
  const contents = names.map((name) => readFileSync(join(platform, name)));
  const packed = zstdCompressSync(Buffer.concat(contents), {
    params: { [constants.ZSTD_c_compressionLevel]: compressionLevel },
  });
  const digest = createHash('sha256').update(packed).digest('hex');
  const files = names.map((name, index) => [name, contents[index]?.length ?? 0]);
  writeFileSync(join(staged, 'program'), packed);
  writeFileSync(join(staged, 'program.json'), JSON.stringify({ digest, files }));
}

function makeExecutable(folder: string): void {
  const { bin } = readManifest(join(build, folder));
  const { version } = readManifest(platform);
  const name = `skillwright-${version}-${folder.slice('node-'.length)}`;
  const file = join(out, folder.startsWith('node-win-') ? `${name}.exe` : name);
  const configuration = join(staged, 'sea.json');
  const settings = {
    main: join(import.meta.dirname, 'main.js'),
    mainFormat: 'module',
    executable: join(build, folder, bin.node),
    output: file,
    disableExperimentalSEAWarning: true,
    // Both are of one system.
    useCodeCache: false,
    useSnapshot: false,
    execArgv: flagsOf(readFileSync(join(root, 'bin/skillwright.js'), 'utf8')),
    execArgvExtension: 'cli',
    assets: { program: join(staged, 'program'), 'program.json': join(staged, 'program.json') },
  };
  writeFileSync(configuration, JSON.stringify(settings));
  execFileSync(process.execPath, ['--build-sea', configuration], { stdio: 'inherit' });
  chmodSync(file, 0o755);
  const files = values.plain ? [file] : [file, `${file}.gz`];
  if (!values.plain) writeFileSync(`${file}.gz`, gzipSync(readFileSync(file)));
  for (const path of files) console.log(`${path}: ${(statSync(path).size / 1e6).toFixed(1)} MB`);
}

function flagsOf(command: string): string[] {
  const listed = flags.exec(command)?.[1] ?? '';
  const found = [...listed.matchAll(/'([^']+)'/g)].map(([, flag = '']) => flag);
  if (found.length === 0) throw new Error('bin/skillwright.js names no flags');
  return found;
}

function readManifest(folder: string): { version: string; bin: { node: string } } {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}
