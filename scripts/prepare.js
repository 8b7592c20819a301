/**
 * `npm install` and `npm ci` in a checkout run this: it removes what nothing reads, 160 MB, and builds the console and the
 * bundle of the program, one after the other, because the bundler takes five times the memory of the platform. Plain JavaScript,
 * because npm may run it with an older Node. Never fails an installation: a start builds the console if it is missing, and runs the sources.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const oldestNode = 26;
// Node has `import.meta.dirname` since 20.11 only.
const scripts = fileURLToPath(new URL('.', import.meta.url));
const modules = join(scripts, '../node_modules');
/** The largest tests and guides of packages, 16 MB. */
const guidesAndTests = [
  '@mixmark-io/domino/test',
  '@base-ui/react/docs',
  'bintrees/test',
  'fastify/test',
];

/** Headers, manuals and symbols, half of the package that is Node: 97 MB, 65 of them in 2,800 files. */
function slimNode() {
  for (const name of readdirSync(modules)) {
    if (!/^node-(bin-)?(linux|darwin|win)-/.test(name)) continue;
    for (const part of ['include', 'share']) {
      rmSync(join(modules, name, part), { recursive: true, force: true });
    }
    const program = join(modules, name, 'bin/node');
    if (existsSync(program)) runScript('remove-symbols.js', program);
  }
}

/** What leads from the code of packages to their sources: 45 MB, which debuggers and editors alone read. */
function removeMaps(directory) {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) removeMaps(path);
    else if (/\.[cm]?[jt]s\.map$/.test(entry.name)) rmSync(path);
  }
}

/** Says how the script failed. */
function runScript(script, ...args) {
  const path = join(scripts, script);
  const { status, signal } = spawnSync(process.execPath, [path, ...args], {
    stdio: 'inherit',
    // Without huge pages, which are mostly empty, the bundler takes a third less.
    env: { ...process.env, MIMALLOC_ALLOW_THP: '0' },
  });
  if (status === 0) return;
  const end = signal ?? `status ${status}`;
  console.error(`scripts/${script} ended with ${end}. The platform starts all the same.`);
}

/** Whether a package that builds is installed: `npm install --omit=dev` leaves them out. */
function isInstalled(name) {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
}

try {
  slimNode();
  removeMaps(modules);
  for (const folder of guidesAndTests) {
    rmSync(join(modules, folder), { recursive: true, force: true });
  }
} catch (error) {
  console.error(`Parts of node_modules that nothing reads remain: ${error.message}`);
}
const isAble = Number(process.versions.node.split('.')[0]) >= oldestNode && isInstalled('rolldown');
if (isAble) {
  runScript('console-build.ts');
  runScript('bundle.ts');
}
