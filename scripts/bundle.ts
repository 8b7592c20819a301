/**
 * Bundles the program into `dist`, unless that holds a bundle of the present sources. Installations in a checkout,
 * images and tests run it; a start without a bundle runs the sources. Executors and sandboxed processes run the
 * sources, because skills import parts of them.
 */
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
import { bundles, freshBundle, recordFile, recordSources, root } from '../src/apps/start/bundle.ts';
import { runOutput, writeBundle } from './bundling.ts';

/** A running program loads parts of its bundle later, so earlier bundles are kept; each has 9 MB. */
const keptMax = 10;

if (freshBundle() === null) await bundle();

async function bundle(): Promise<void> {
  const sources = recordSources();
  const directory = join(bundles, sources.fingerprint);
  mkdirSync(bundles, { recursive: true });
  removeOld();
  const fresh = mkdtempSync(join(bundles, 'new-'));
  try {
    await write(fresh);
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

function removeOld(): void {
  const changed = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const directories = readdirSync(bundles, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(bundles, name))
    .sort((a, b) => changed(b) - changed(a));
  for (const path of directories.slice(keptMax)) rmSync(path, { recursive: true, force: true });
}
