/** Where Node keeps the compiled code of the program's modules between starts. */
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { isPackage, root } from './bundle.ts';

/**
 * `NODE_COMPILE_CACHE` if it is set. Otherwise a folder of the installation, which vanishes with it; where a
 * package is installed read-only, one of the user. Never a folder that other users could write to, because
 * what lies there is executed. Undefined when there is no such folder.
 */
export function compileCacheDirectory(
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (env['NODE_COMPILE_CACHE'] !== undefined) return env['NODE_COMPILE_CACHE'];
  if (!isPackage) return join(root, 'node_modules/.cache/compile');
  if (isWritable(root)) return join(root, '.cache/compile');
  const caches = env['XDG_CACHE_HOME'] || (env['HOME'] ? join(env['HOME'], '.cache') : undefined);
  return caches === undefined ? undefined : join(caches, 'skillwright/compile');
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
