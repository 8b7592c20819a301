/**
 * `npm install` in a checkout runs this: it builds the console and the bundle of the program, one after the other. The
 * first start would build both beside the platform, with three times its memory. Plain JavaScript, because npm may run
 * it with an older Node. Never fails an installation: what is missing is built by a start.
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
// `npm ci` is for those that build by themselves, such as the check of a change, or may not need it.
if (isAble && process.env.npm_command !== 'ci') {
  for (const script of ['console-build.ts', 'bundle.ts']) {
    spawnSync(process.execPath, [join(import.meta.dirname, script)], { stdio: 'inherit' });
  }
}
