/**
 * Tools that few scripts and tests use, and that together weigh as much as everything else. Each folder of them has a
 * `package.json` and a lock of its own, so `npm ci` leaves them out; who uses one calls `installTools` first.
 * `node scripts/tools.ts [folder …]` installs them by hand, without a folder all of them.
 *
 * Processes that ask at the same time wait for the one that installs. An installation that was interrupted has no stamp,
 * and is repeated.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const root = join(import.meta.dirname, '..');

/** Where tools are, from the root of the checkout. */
export const toolFolders = [
  // Makes the site of the guides.
  'docs/.vitepress',
  // Generates load, and is measured against.
  'bench/tools',
  // Judges documents, manifests and protocols, and generates types.
  'scripts/tools/checks',
  // Opens an MCP server as a person would.
  'scripts/tools/inspector',
] as const;
export type ToolFolder = (typeof toolFolders)[number];

const installTimeoutMs = 600_000;

/** The path of a file of a package in the folder. */
export function toolFile(folder: ToolFolder, file: string): string {
  return join(root, folder, 'node_modules', file);
}

/** Whether the folder has what its lock names. */
export function hasTools(folder: ToolFolder): boolean {
  const stamp = stampOf(folder);
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === lockOf(folder);
}

/** Installs the tools of the folder, unless they are there. Rejects with what npm reports, for example without a network. */
export async function installTools(folder: ToolFolder): Promise<void> {
  if (hasTools(folder)) return;
  // In a process of its own, because waiting for another one blocks it.
  const child = spawn(process.execPath, [import.meta.filename, folder], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const output: Buffer[] = [];
  child.stderr.on('data', (bytes: Buffer) => output.push(bytes));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(Buffer.concat(output).toString().trim());
}

function stampOf(folder: ToolFolder): string {
  return join(root, folder, 'node_modules/.installed-lock.json');
}

function lockOf(folder: ToolFolder): string {
  return readFileSync(join(root, folder, 'package-lock.json'), 'utf8');
}

/** The transaction is the lock: it ends with the process, however that ends. */
function installAlone(folder: ToolFolder): void {
  const cache = join(root, '.cache');
  mkdirSync(cache, { recursive: true });
  const file = join(cache, `${folder.replaceAll('/', '-')}.lock`);
  const lock = new DatabaseSync(file, { timeout: installTimeoutMs });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    if (!hasTools(folder)) install(folder);
  } finally {
    lock.close();
  }
}

function install(folder: ToolFolder): void {
  rmSync(stampOf(folder), { force: true });
  const { status, stderr, error } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    ...{ cwd: join(root, folder), encoding: 'utf8', timeout: installTimeoutMs },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (status !== 0) {
    // Its usage comes after the reason.
    const [reason] = stderr.split('npm error Usage');
    throw new Error(`npm ci in ${folder} failed: ${error?.message ?? reason?.trim()}`);
  }
  writeFileSync(stampOf(folder), lockOf(folder));
}

if (import.meta.main) {
  const named = process.argv.slice(2);
  const unknown = named.filter((name) => !toolFolders.some((folder) => folder === name));
  if (unknown.length > 0) {
    console.error(`No such folder: ${unknown.join(', ')}. There are ${toolFolders.join(', ')}.`);
    process.exit(1);
  }
  try {
    for (const folder of toolFolders) {
      if (named.length === 0 || named.includes(folder)) installAlone(folder);
    }
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 1;
  }
}
