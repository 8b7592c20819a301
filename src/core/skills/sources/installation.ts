/** Which files belong to the platform's own installation. */
import { join, resolve, sep } from 'node:path';

const installation = resolve(import.meta.dirname, '../../../..');
const own = [join(installation, 'src') + sep, join(installation, 'node_modules') + sep];

/** Whether a path belongs to it, as the catalog does. */
export function isInstalled(path: string): boolean {
  return own.some((dir) => path.startsWith(dir));
}
