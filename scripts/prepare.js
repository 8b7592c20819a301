/**
 * `npm install` and `npm ci` in a checkout run this: it builds the console and the bundle of the program, one after the
 * other, because the bundler takes five times the memory of the platform. Plain JavaScript, because npm may run it with
 * an older Node. Never fails an installation: a start builds the console if it is missing, and runs the sources.
 */
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const oldestNode = 24;

/** Whether a package that builds is installed: `npm install --omit=dev` leaves them out. */
function isInstalled(name) {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
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
