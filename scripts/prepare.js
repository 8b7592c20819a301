/**
 * `npm install` and `npm ci` in a checkout run this: it removes the headers of Node, and builds the console and the bundle
 * of the program, one after the other, because the bundler takes five times the memory of the platform. Plain JavaScript,
 * because npm may run it with an older Node. Never fails an installation: a start builds the console if it is missing, and runs the sources.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const oldestNode = 26;

/** Headers and manuals, a third of the package that is Node: 65 MB in 2,800 files. */
function removeHeaders() {
  const modules = new URL('../node_modules/', import.meta.url);
  for (const name of readdirSync(modules)) {
    if (!/^node-(bin-)?(linux|darwin|win)-/.test(name)) continue;
    for (const part of ['include', 'share']) {
      rmSync(new URL(`${name}/${part}`, modules), { recursive: true, force: true });
    }
  }
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
  removeHeaders();
} catch (error) {
  console.error(`The headers of Node remain in node_modules: ${error.message}`);
}
const isAble = Number(process.versions.node.split('.')[0]) >= oldestNode && isInstalled('rolldown');
if (isAble) {
  for (const script of ['console-build.ts', 'bundle.ts']) {
    const { status, signal } = spawnSync(process.execPath, [join(import.meta.dirname, script)], {
      stdio: 'inherit',
      // Without huge pages, which are mostly empty, the bundler takes a third less.
      env: { ...process.env, MIMALLOC_ALLOW_THP: '0' },
    });
    if (status !== 0) {
      const end = signal ?? `status ${status}`;
      console.error(`scripts/${script} ended with ${end}. The platform starts all the same.`);
    }
  }
}
