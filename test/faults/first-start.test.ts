/** The first start in a checkout, which builds the console, stays below 500 MB with all that it starts. */
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startProcess } from '../support/process.ts';
import { waitFor } from '../support/wait-for.ts';

const root = join(import.meta.dirname, '../..');
const mostMb = 500;

/** A copy of the checkout in which nothing has been built. */
function copyCheckout(): string {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-first-start-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const names = ['src', 'scripts', 'packages', 'console'];
  for (const name of [...names, 'package.json', 'package-lock.json', 'tsconfig.json']) {
    const filter = (path: string) => !/^(?:dist.*|node_modules)$/.test(basename(path));
    cpSync(join(root, name), join(directory, name), { recursive: true, filter });
  }
  for (const name of ['node_modules', 'console/node_modules']) {
    symlinkSync(join(root, name), join(directory, name));
  }
  mkdirSync(join(directory, 'data'));
  return directory;
}

/** What a process and all that it started use: the sum of what each has alone and its share of what several have. */
function megabytesOf(pid: number): number {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const stat = read(`/proc/${name}/stat`);
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const tree = [pid];
  for (const each of tree) tree.push(...(children.get(each) ?? []));
  const kilobytes = tree.map((each) =>
    Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${each}/smaps_rollup`))?.[1] ?? 0),
  );
  return kilobytes.reduce((sum, each) => sum + each, 0) / 1_024;
}

/** Empty where the process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

test.skipIf(process.platform !== 'linux')(
  `the first start in a checkout takes less than ${mostMb} MB, the build of its console included`,
  async () => {
    const checkout = copyCheckout();
    const platform = await startProcess(join(checkout, 'data'), {}, join(checkout, 'src/start.js'));
    onTestFinished(() => platform.signal('SIGKILL'));
    const seen: number[] = [];

    await waitFor(
      () => {
        seen.push(megabytesOf(platform.pid));
        return platform.output().includes('the console is built');
      },
      { describe: 'the console is built', deadlineMs: 120_000 },
    );
    await platform.stop();

    // Vite was among them.
    expect(Math.max(...seen)).toBeGreaterThan(200);
    expect(Math.max(...seen)).toBeLessThan(mostMb);
  },
);
