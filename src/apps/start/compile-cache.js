/** Where Node keeps the compiled code of the program's modules between starts. Plain JavaScript, for `start.js`. */
import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../../..');

/**
 * `NODE_COMPILE_CACHE` if it is set. Otherwise a folder of the installation, which vanishes with it; where a
 * package is installed read-only, one of the user. Never a folder that other users could write to, because
 * what lies there is executed. Undefined when there is no such folder.
 * @param {Readonly<Record<string, string | undefined>>} env
 * @returns {string | undefined}
 */
export function compileCacheDirectory(env) {
  if (env['NODE_COMPILE_CACHE'] !== undefined) return env['NODE_COMPILE_CACHE'];
  const isPackage = existsSync(join(root, 'src/main.js'));
  if (!isPackage) return join(root, 'node_modules/.cache/compile');
  if (isWritable(root)) return join(root, '.cache/compile');
  const caches = env['XDG_CACHE_HOME'] || (env['HOME'] ? join(env['HOME'], '.cache') : undefined);
  return caches === undefined ? undefined : join(caches, 'skillwright/compile');
}

/** @param {string} directory */
function isWritable(directory) {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
