/**
 * Bundles the program into `dist`, unless that holds a bundle of the present sources. Installations in a checkout,
 * images and tests run it; a start without a bundle runs the sources. Executors and sandboxed processes run the
 * sources, because skills import parts of them.
 */
import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bundles, freshBundle, recordFile, recordSources, root } from '../src/apps/start/bundle.ts';
import { runOutput, writeBundle } from './bundling.ts';

/** A running program loads parts of its bundle later, so earlier bundles are kept; each has 20 MB. */
const keptMax = 10;
const recordingMs = 60_000;

if (freshBundle() === null) await bundle();

async function bundle(): Promise<void> {
  const sources = recordSources();
  const directory = join(bundles, sources.fingerprint);
  mkdirSync(bundles, { recursive: true });
  removeOld();
  const fresh = mkdtempSync(join(bundles, 'new-'));
  try {
    await write(fresh);
    await recordCode(fresh);
    if (recordSources().times !== sources.times) throw new Error('the sources changed meanwhile');
    // An image is built by root, and run by another user.
    chmodSync(fresh, 0o755);
    // Another process may have made the same bundle.
    if (!existsSync(directory)) renameSync(fresh, directory);
    const record = `${fresh}.json`;
    writeFileSync(record, JSON.stringify(sources));
    renameSync(record, recordFile);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

async function write(directory: string): Promise<void> {
  await writeBundle({
    program: root,
    directory,
    output: runOutput,
    entries: { run: 'src/apps/composition/run.ts' },
  });
}

/** A start without the code takes longer, and is the same otherwise. */
async function recordCode(directory: string): Promise<void> {
  const script = join(root, 'scripts/record-code.ts');
  try {
    await promisify(execFile)(process.execPath, [script, directory], { timeout: recordingMs });
  } catch (error) {
    console.warn(`The bundle has no compiled code: ${(error as Error).message}`);
  }
}

function removeOld(): void {
  const changed = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const directories = readdirSync(bundles, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(bundles, name))
    .sort((a, b) => changed(b) - changed(a));
  for (const path of directories.slice(keptMax)) rmSync(path, { recursive: true, force: true });
}
