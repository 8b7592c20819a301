/** How much of the disk the packages of a checkout take. */
import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** What a file takes of the disk is a multiple of it. */
const blockBytes = 4_096;

/** Megabytes, of 2^20 bytes each, in `node_modules` of the checkout and its workspaces, without what programs keep there. */
export function measurePackages(root: string, workspaces: readonly string[]): number {
  const folders = ['', ...workspaces].map((folder) => join(root, folder, 'node_modules'));
  const bytes = folders.filter((folder) => existsSync(folder)).map(bytesOf);
  return Math.round(bytes.reduce((sum, one) => sum + one, 0) / 2 ** 20);
}

function bytesOf(directory: string): number {
  const sizes = readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.name !== '.cache' && !entry.isSymbolicLink())
    .map((entry) => {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) return bytesOf(path);
      return Math.ceil(lstatSync(path).size / blockBytes) * blockBytes;
    });
  return sizes.reduce((sum, size) => sum + size, blockBytes);
}
