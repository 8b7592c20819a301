/**
 * A stopwatch for a newcomer: `node bench/install.ts [dist-packages]` runs the first lines of README.md in empty folders, with
 * a registry of the packages of `npm run packages` and an empty cache of npm, and the one file of `npm run executable`. It
 * prints what was fetched and written, and the seconds to the first 200 and to the first run of an own skill.
 */
import { globSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Newcomer } from '../test/support/newcomer.ts';
import { startRegistry } from '../test/support/registry.ts';

const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '../dist-packages'));
const [file = ''] = globSync(`skillwright-*-${process.platform}-${process.arch}.gz`, {
  cwd: folder,
});
const packed = join(folder, file);

interface Trial {
  readonly line: string;
  readonly 'MB fetched': string;
  readonly 'MB written': string;
  readonly files: number;
  readonly 'first 200': string;
  readonly 'own skill': string;
}

const registry = await startRegistry(folder);
const unpack = `gunzip --stdout ${packed} > skillwright && chmod +x skillwright`;
const trials = [
  await trial('npx skillwright', ['npm-cache/_npx']),
  await trial('npm install skillwright && npx skillwright', ['node_modules']),
  await trial(`${unpack} && ./skillwright`, ['skillwright', 'home/.cache/skillwright/program']),
];
registry.close();
console.table(trials);

/** Types a line in an empty folder; `written` is where its files are then. */
async function trial(line: string, written: readonly string[]): Promise<Trial> {
  const newcomer = new Newcomer(registry.url);
  const before = registry.sent();
  const begun = performance.now();
  const platform = await newcomer.start(line, { SKILLS_DIR: 'skills' });
  const ready = performance.now() - begun;
  const job = (await newcomer.shout()) as { status: string };
  const ran = performance.now() - begun;
  if (job.status !== 'completed') throw new Error(`${line}: the skill ended as ${job.status}`);
  await newcomer.interrupt(platform);
  const sizes = written.flatMap((name) => sizesIn(join(newcomer.place, name)));
  newcomer.leave();
  const fetched = line.includes(packed) ? statSync(packed).size : registry.sent() - before;
  return {
    line: line.replace(unpack, 'the one file'),
    'MB fetched': megabytes(fetched),
    'MB written': megabytes(sizes.reduce((sum, size) => sum + size, 0)),
    files: sizes.length,
    'first 200': `${(ready / 1000).toFixed(2)} s`,
    'own skill': `${(ran / 1000).toFixed(2)} s`,
  };
}

/** The sizes of a file, or of all files in a folder. */
function sizesIn(path: string): number[] {
  if (!statSync(path).isDirectory()) return [statSync(path).size];
  return globSync('**/*', { cwd: path, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => statSync(join(entry.parentPath, entry.name)).size);
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}
