/**
 * The built files of the console. When the sources have changed since the last build, a starting platform
 * builds them in separate processes, which together with it stay below 500 MB. The platform serves other
 * requests meanwhile; the page of the console says that it is being built, and pages that are open still get their
 * parts. An installation without the sources, for example an image, contains built files.
 */
import { type ExecFileException, execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { PlatformError } from '../../kernel/errors.ts';
import type { Logger } from '../../kernel/log.ts';

const execute = promisify(execFile);
const directory = join(import.meta.dirname, '../../../console');
const built = join(directory, 'dist');
/** The file, among the built ones, with the fingerprint of their sources. */
const stampName = '.built-from';
const buildTimeoutMs = 120_000;
/** How long the files of earlier builds are kept. */
const keptMs = 7 * 24 * 3_600_000;
/** V8 then collects garbage before its heap grows, which halves that of Vite; half of this is enough. */
const heapFlags = ['--max-semi-space-size=1', '--max-old-space-size=150', '--single-threaded-gc'];
/**
 * For the allocator of the bundler: no huge pages, which are mostly empty, and freed memory goes back at once.
 * Without these a build takes a third more.
 */
const allocation = {
  MIMALLOC_ALLOW_THP: '0',
  MIMALLOC_PURGE_DELAY: '10',
  RAYON_NUM_THREADS: '1',
};

/** The files of the console that a platform serves. */
export class ConsoleFiles {
  readonly #log: Logger;
  #isBegun = false;
  #isBuilding = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Begins to build the files if they are stale: once the platform is ready, so that its start is not delayed. */
  prepare(): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    const building = buildIfStale(this.#log);
    this.#isBuilding = building !== null;
    void building?.then(() => {
      this.#isBuilding = false;
    });
  }

  /**
   * The directory of the built files; for the page null while they are being built. Throws `503` when there are none.
   */
  directoryFor(use: 'page' | 'part'): string | null {
    this.prepare();
    if (!this.#isBuilding) return directoryOfFiles();
    if (use === 'page') return null;
    if (isThere()) return built;
    throw new PlatformError('service_unavailable', 'The console is being built: try again', {
      retryAfter: 2,
    });
  }
}

/**
 * Builds the files if they are stale, and returns their directory. Throws `503` when there are none.
 * @public For scripts/console-build.ts.
 */
export async function buildConsole(log: Logger): Promise<string> {
  await buildIfStale(log);
  return directoryOfFiles();
}

/** Null when the files are fresh. Never rejects: when the build fails, older files are served. */
function buildIfStale(log: Logger): Promise<void> | null {
  const failed = (error: unknown) =>
    log.error({ reason: (error as Error).message }, 'the console could not be built');
  try {
    const fingerprint = fingerprintOfSources();
    if (fingerprint === null || isBuiltFrom(fingerprint)) return null;
    return build(fingerprint, log).catch(failed);
  } catch (error) {
    failed(error);
    return null;
  }
}

function directoryOfFiles(): string {
  if (isThere()) return built;
  const reason =
    viteProgram() === null
      ? 'its build tools are not installed (npm install --omit=dev leaves them out). Run npm install, or build it elsewhere with scripts/console-build.ts and keep console/dist here'
      : 'the log has the reason';
  throw new PlatformError('service_unavailable', `The console is not built: ${reason}`, {
    retryAfter: 60,
  });
}

const isThere = () => existsSync(join(built, 'index.html'));

function isBuiltFrom(fingerprint: string): boolean {
  const stamp = join(built, stampName);
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === fingerprint;
}

/** The fingerprint of all sources; null when the sources or the bundler are missing. */
function fingerprintOfSources(): string | null {
  if (viteProgram() === null) return null;
  const names = ['index.html', 'package.json', 'tsconfig.json', 'vite.config.ts', 'compress.ts'];
  // Not `globSync`, whose parser of patterns takes longer than the files.
  const folders = ['src', 'public'].filter((folder) => existsSync(join(directory, folder)));
  const sources = folders.flatMap((folder) =>
    readdirSync(join(directory, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:tsx?|css|svg|js)$/.test(name))
      .map((name) => join(folder, name))
      .sort(),
  );
  const lock = join(directory, '../package-lock.json');
  const hash = createHash('sha256');
  for (const name of [...names, ...sources]) {
    const file = join(directory, name);
    if (!existsSync(file)) return null;
    hash.update(`${name}\n`).update(readFileSync(file));
  }
  if (existsSync(lock)) hash.update(readFileSync(lock));
  return hash.digest('hex');
}

/** The path of the bundler; null when it is not installed. */
function viteProgram(): string | null {
  try {
    const manifest = createRequire(join(directory, 'package.json')).resolve('vite/package.json');
    return join(dirname(manifest), 'bin/vite.js');
  } catch {
    return null;
  }
}

async function build(fingerprint: string, log: Logger): Promise<void> {
  const program = viteProgram() as string;
  const begun = performance.now();
  log.info('building the console: its sources are new since the last start');
  removeAbandonedBuilds();
  // A directory for each build, so that two processes that start together do not share one.
  const fresh = mkdtempSync(`${built}.`);
  try {
    const args = [program, 'build', '--outDir', fresh, '--emptyOutDir', '--logLevel', 'error'];
    await runBuild([...heapFlags, ...args], directory);
    // In a process of its own: encoders keep their memory, and the bundler has its own until it ends.
    await runBuild([join(directory, 'compress.ts'), fresh], directory);
    chmodSync(fresh, 0o755);
    writeFileSync(join(fresh, stampName), fingerprint);
    keepRecent(fresh);
    replace(fresh);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  log.info({ seconds: Math.round((performance.now() - begun) / 100) / 10 }, 'the console is built');
}

/** Deletes the directories of builds that were killed; no build takes as long. */
function removeAbandonedBuilds(): void {
  for (const name of globSync('dist.*', { cwd: directory })) {
    const path = join(directory, name);
    const changed = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;
    if (Date.now() - changed > 2 * buildTimeoutMs) rmSync(path, { recursive: true, force: true });
  }
}

/**
 * Keeps the files of recent builds for a while: open pages load parts of the console later, also pages
 * that another process served during an upgrade.
 */
function keepRecent(fresh: string): void {
  for (const name of globSync('assets/*', { cwd: built })) {
    const [old, copy] = [join(built, name), join(fresh, name)];
    const isRecent = Date.now() - statSync(old).mtimeMs < keptMs;
    if (isRecent && !existsSync(copy)) cpSync(old, copy, { preserveTimestamps: true });
  }
}

/** Replaces the old files. Another process may do the same with the same files at the same time. */
function replace(fresh: string): void {
  const old = `${fresh}.old`;
  mkdirSync(built, { recursive: true });
  renameSync(built, old);
  try {
    renameSync(fresh, built);
  } catch (error) {
    if (!isThere()) throw error;
  } finally {
    rmSync(old, { recursive: true, force: true });
  }
}

/** Runs a program of Node that builds. Throws with the end of its output, as plain text. */
export async function runBuild(args: readonly string[], cwd: string): Promise<void> {
  const building = execute(process.execPath, args, {
    cwd,
    timeout: buildTimeoutMs,
    // Without the platform's secrets.
    env: { PATH: process.env['PATH'] ?? '', NODE_ENV: 'production', NO_COLOR: '1', ...allocation },
  });
  // The end of this process also ends the build.
  const kill = () => building.child.kill('SIGKILL');
  process.once('exit', kill);
  try {
    await building;
  } catch (error) {
    const { code, signal, stdout, stderr } = error as ExecFileException;
    const output = stripVTControlCharacters(`${stdout}${stderr}`).slice(-4_000).trim();
    // Without the cause, whose message and fields have the same output.
    throw new Error(`The build ended with ${code ?? signal}: ${output}`);
  } finally {
    process.off('exit', kill);
  }
}
