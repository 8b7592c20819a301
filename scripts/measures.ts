/**
 * `node scripts/measures.ts`: figures of the structure of `src`, in all and by zone, and the weight of what `npm ci`
 * installs (with its scripts), each with its limit. Fails where a figure is over its limit. `--lower` writes the limits down to the present figures.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { measurePackages } from './measures/packages.ts';
import { type Executed, measureRequests } from './measures/requests.ts';
import { type LostCall, measureSources, type SourceFileMeasures } from './measures/source.ts';

const root = join(import.meta.dirname, '..');
const limitsFile = join(import.meta.dirname, 'measures/limits.json');
const shownMax = 40;
/** Timing decides about a few of the functions that a request executes: so much above the limit is no change. */
const slackOfExecuted = 1.03;

const limits: Record<string, number> = JSON.parse(readFileSync(limitsFile, 'utf8'));
const sources = measureSources(root);
const requests = await measureRequests();
const figures = limitedFigures();

showZones();
showDeclarations('Calls that end at a signature', sources.lost);
showDeclarations('Calls that end at a member of an object literal', sources.atLiterals);
const { startMs, modules } = requests;
console.log(`Start to the first 200 of /health, from sources: ${Math.round(startMs)} ms`);
console.log(`Modules loaded by then: ${modules.ours} of ours, ${modules.others} of others\n`);
console.table(
  Object.fromEntries(
    Object.entries(figures).map(([name, now]) => [name, { now, limit: limits[name] }]),
  ),
);
process.exitCode = process.argv.includes('--lower') ? lowerLimits() : checkLimits();

function limitedFigures(): Record<string, number> {
  const { files } = sources;
  const sum = (of: 'code' | 'deps' | 'picks' | 'spreads') =>
    files.reduce((all, file) => all + file[of], 0);
  const sizes = files.flatMap(({ functions }) => functions);
  const lines = files.map((file) => file.lines);
  const { dependencies, workspaces } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const executedBy = (name: string, { functions, files: count }: Executed) => ({
    [`functions that ${name} executes`]: functions,
    [`files that ${name} executes`]: count,
  });
  return {
    'calls that end at a signature': sources.lost.length,
    'calls that end at an object literal': sources.atLiterals.length,
    ...executedBy('an echo job', requests.echo),
    ...executedBy('a turn of a model', requests.turn),
    'lines of code': sum('code'),
    'lines of a function, median': percentile(sizes, 0.5),
    'lines of a function, p90': percentile(sizes, 0.9),
    'lines of a file, median': percentile(lines, 0.5),
    'lines of a file, p90': percentile(lines, 0.9),
    'interfaces of dependencies': sum('deps'),
    'types with Pick': sum('picks'),
    'spreads of an object literal': sum('spreads'),
    'factories called once': sources.factoriesCalledOnce,
    'runtime dependencies': Object.keys(dependencies).length,
    'megabytes of packages': measurePackages(root, workspaces),
  };
}

function percentile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;
}

function zoneOf({ path }: { readonly path: string }): string {
  const [, zone = ''] = path.split('/');
  return zone.includes('.') ? 'main' : zone;
}

function showZones(): void {
  const rows = Map.groupBy(sources.files, zoneOf);
  const counted = (files: readonly SourceFileMeasures[], calls: readonly LostCall[]) => ({
    files: files.length,
    'lines of code': files.reduce((all, { code }) => all + code, 0),
    functions: files.reduce((all, { functions }) => all + functions.length, 0),
    calls: files.reduce((all, file) => all + file.calls.length, 0),
    'of these, to a signature': calls.length,
  });
  const zones = [...rows].map(([zone, files]) => [
    zone,
    counted(
      files,
      sources.lost.filter((call) => zoneOf(call) === zone),
    ),
  ]);
  console.table({ ...Object.fromEntries(zones), all: counted(sources.files, sources.lost) });
}

function showDeclarations(title: string, calls: readonly LostCall[]): void {
  const counts = [...Map.groupBy(calls, ({ declaration }) => declaration)]
    .map(([declaration, { length }]) => ({ declaration, length }))
    .sort((a, b) => b.length - a.length);
  console.log(`${title}: ${calls.length}, at ${counts.length} declarations. Most of them:`);
  for (const { declaration, length } of counts.slice(0, shownMax)) {
    console.log(`${String(length).padStart(5)}  ${declaration}`);
  }
  console.log();
}

function limitOf(name: string): number {
  return (limits[name] ?? 0) * (name.endsWith('executes') ? slackOfExecuted : 1);
}

/** The exit code. */
function checkLimits(): number {
  const over = Object.entries(figures).filter(([name, now]) => now > limitOf(name));
  for (const [name, now] of over) {
    console.log(
      `${name}: ${now}, and the limit is ${limits[name] ?? 0}. Bring it down, or raise the limit in scripts/measures/limits.json and give the reason in the commit.`,
    );
  }
  for (const name of sources.unknownPorts) {
    console.log(`scripts/measures/ports.ts: src has no interface ${name}. Remove it.`);
  }
  return over.length + sources.unknownPorts.length > 0 ? 1 : 0;
}

function lowerLimits(): number {
  const lowered = Object.entries(figures).map(([name, now]) => [
    name,
    Math.min(now, limits[name] ?? now),
  ]);
  writeFileSync(limitsFile, `${JSON.stringify(Object.fromEntries(lowered), null, 2)}\n`);
  return 0;
}
