/** The packages as a user gets them: packed, and installed by npm into an empty folder. */
import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '../..');
const tarballs = join(root, 'dist-packages');
/** What npm needs of the environment to reach the registry: no setting or script of this repository. */
const wayToRegistry =
  /^(PATH|HOME|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|(https?|no)_proxy|npm_config_(registry|cache|cafile|userconfig|globalconfig|(https?_|no)?proxy))$/i;
/** Milliseconds for one program to end. */
const programMs = 60_000;
/** An installation unpacks 148 MB: slow beside tests that use the disk. */
const installMs = 200_000;
const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => wayToRegistry.test(name)),
);

export interface InstalledPackages {
  /** The folder of the user. */
  readonly directory: string;
  /** The command that npm has linked, and the installed package of the platform. */
  readonly command: string;
  readonly platform: string;
  /** Writes a file below the folder; its path. */
  write(name: string, text: string): string;
  /** Runs a program in the folder to its end. */
  run(
    program: string,
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
  ): Promise<{ code: number; stdout: string; stderr: string }>;
  remove(): void;
}

/** Packs both packages, and installs them. */
export async function installPackages(): Promise<InstalledPackages> {
  await promisify(execFile)(process.execPath, [join(root, 'scripts/packages/build.ts')]);
  const folder = userFolder();
  const { directory } = folder;
  const files = globSync('*.tgz', { cwd: tarballs }).map((name) => join(tarballs, name));
  const installed: InstalledPackages = {
    ...folder,
    command: join(directory, 'node_modules/.bin/skillwright'),
    platform: join(directory, 'node_modules/skillwright'),
  };
  lockFiles(installed, files);
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  const install = () => runIn(directory, 'npm', ['ci', ...options], {}, installMs);
  // npm now and then waits for ever while it unpacks; its second try finds the rest in place.
  const { code, stderr } = await install().then((done) => (done.code === 0 ? done : install()));
  if (code !== 0) throw new Error(`npm install failed: ${stderr}`);
  return installed;
}

/** An empty folder. */
export function userFolder(): Omit<InstalledPackages, 'command' | 'platform'> {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-installed-'));
  return {
    directory,
    write(name, text) {
      const file = join(directory, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
      return file;
    },
    run: (program, args, env = {}) => runIn(directory, program, args, env),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/**
 * A project that has locked the packages. `npm install` of the files would unpack them three times, twice only to read
 * their manifests, which takes four times the processor's time of `npm ci`.
 */
function lockFiles(installed: InstalledPackages, files: readonly string[]): void {
  const packages: Record<string, object> = {};
  const dependencies: Record<string, string> = {};
  // The packages with a Node first: of other systems there is none.
  for (const file of [...files].sort(
    (a, b) => Number(b.includes('node-')) - Number(a.includes('node-')),
  )) {
    const [, folder = ''] = /skillwright-(?=client|node)(.*)-[\d.]+\.tgz$/.exec(file) ?? [];
    const { name, version, bin, optionalDependencies, bundleDependencies, ...manifest } =
      readPacked(join(tarballs, 'build', folder || 'skillwright'));
    const integrity = `sha512-${hash('sha512', readFileSync(file), 'base64')}`;
    const place = { bin, optionalDependencies, bundleDependencies };
    dependencies[`${name}`] = `file:${file}`;
    packages[`node_modules/${name}`] = {
      ...{ version, resolved: `file:${file}`, integrity, ...place },
      dependencies: manifest['dependencies'],
    };
    for (const [runtime, version] of Object.entries(optionalDependencies ?? {})) {
      packages[`node_modules/${runtime}`] ??= { version, optional: true, ...systemOf(runtime) };
    }
  }
  const project = { name: 'of-a-user', version: '1.0.0', dependencies };
  const lock = { ...project, lockfileVersion: 3, packages: { '': project, ...packages } };
  installed.write('package.json', JSON.stringify(project));
  installed.write('package-lock.json', JSON.stringify(lock));
}

/** The system that a package with a Node is for, of its name, such as `@skillwright/node-linux-x64`. */
function systemOf(name: string): object {
  const [, system = '', cpu] = /-(darwin|linux|win)-(x64|arm64)$/.exec(name) ?? [];
  return { os: [system === 'win' ? 'win32' : system], cpu: [cpu] };
}

/** The package.json of a package that was packed, or another file of JSON. */
export function readPacked(folder: string, name = 'package.json'): Record<string, unknown> {
  return JSON.parse(readFileSync(join(folder, name), 'utf8'));
}

function runIn(
  cwd: string,
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  timeout = programMs,
): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const options = {
      ...{ cwd, env: { ...environment, ...env }, maxBuffer: 16 * 1024 * 1024 },
      timeout,
      killSignal: 'SIGKILL' as const,
    };
    execFile(program, [...args], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code ?? 1);
      resolve({ code, stdout, stderr });
    });
  });
}
