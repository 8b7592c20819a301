/** The package.json of a package, from the one of the checkout. */
import { runtimePackage, runtimesOf } from './runtime.ts';

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type: 'module';
  readonly keywords?: readonly string[];
  readonly repository?: unknown;
  readonly bin?: Readonly<Record<string, string>>;
  readonly engines?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, unknown>>;
  readonly sideEffects?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** A manifest as it is packed. */
export interface PackedManifest extends Omit<Manifest, 'type' | 'exports'> {
  readonly type?: 'module';
  readonly exports?: Manifest['exports'];
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly files: readonly string[];
  readonly publishConfig: { readonly access: 'public'; readonly provenance: true };
  readonly bundleDependencies?: readonly string[];
}

/** It runs on this Node, and then runs the platform on its own. */
const launcherEngines = { node: '>=20' };
const exactVersion = /^\d+\.\d+\.\d+(?:-[\w.]+)?$/;

/** The manifest of `@skillwright/client`, compiled from `src` into `dist`. */
export function clientManifest(manifest: Manifest): PackedManifest {
  return {
    ...common(manifest),
    files: ['dist', 'README.md', 'LICENSE'],
    exports: compiledExports(manifest.exports, (file) => file.replace('./src/', './dist/')),
    sideEffects: false,
  };
}

/**
 * The manifest of `skillwright`, which brings the packages of `read` along, and depends on a package with a Node for each
 * system, of which npm installs the one that fits. All other dependencies are in the files of its program.
 */
export function platformManifest(manifest: Manifest, read: readonly string[]): PackedManifest {
  const { dependencies = {}, optionalDependencies = {} } = manifest;
  const brought = Object.fromEntries(
    Object.entries(dependencies).filter(([name]) => read.includes(name)),
  );
  const runtimes = runtimesOf(optionalDependencies).map((runtime): [string, string] => {
    return [runtimePackage(runtime), runtime.version];
  });
  for (const [name, version] of Object.entries({ ...dependencies, ...optionalDependencies })) {
    if (!exactVersion.test(version)) throw new Error(`${name}: ${version} is no exact version`);
  }
  return {
    ...common(manifest),
    engines: launcherEngines,
    ...(manifest.bin && { bin: manifest.bin }),
    files: [
      ...['bin', 'src', 'dist', 'console', 'docs', 'templates'],
      ...['README.md', 'CHANGELOG.md', 'LICENSE'],
    ],
    exports: compiledExports(manifest.exports, (file) => file),
    dependencies: brought,
    optionalDependencies: Object.fromEntries(runtimes),
    bundleDependencies: Object.keys(brought),
  };
}

function common({ name, version, description, license, keywords, repository, engines }: Manifest) {
  return {
    ...{ name, version, description, license, type: 'module' as const },
    ...(keywords && { keywords }),
    ...(repository !== undefined && { repository }),
    ...(engines && { engines }),
    publishConfig: { access: 'public', provenance: true } as const,
  };
}

/** Exports of TypeScript become exports of what it was compiled to, with its types. */
function compiledExports(
  exports: Manifest['exports'],
  place: (file: string) => string,
): Record<string, unknown> {
  const entries = Object.entries(exports).map(([name, file]): [string, unknown] => {
    if (typeof file !== 'string') throw new Error(`exports["${name}"]: expected a file`);
    if (!file.endsWith('.ts')) return [name, file];
    const stem = place(file).slice(0, -'.ts'.length);
    return [name, { types: `${stem}.d.ts`, default: `${stem}.js` }];
  });
  return Object.fromEntries(entries);
}
