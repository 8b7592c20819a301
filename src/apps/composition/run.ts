/** Runs the platform as a process: opens its stores, starts it, and stops it on a signal. */

import { closeSync, openSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import closeWithGrace from 'close-with-grace';
import { type AdminSecret, adminSecretOf } from '../../core/config/admin-secret.ts';
import {
  type Config,
  ConfigError,
  examineConfig,
  misspeltSettings,
} from '../../core/config/config.ts';
import { encryptionKeyOf } from '../../core/config/encryption-key.ts';
import { inheritedListener } from '../../core/config/listen-fd.ts';
import { operatorMessage } from '../../core/config/operator-message.ts';
import { runningVersion } from '../../core/config/version.ts';
import { type ExecutorPool, startExecutorPool } from '../../core/executors/pool.ts';
import type { PoolOptions } from '../../core/executors/pool-options.ts';
import type { LoadPlan } from '../../core/skills/sources/load-plan.ts';
import { compactHeapSoon, limitHeapGrowth } from '../../kernel/heap.ts';
import { createLogger, type Logger } from '../../kernel/log.ts';
import { ConsoleFiles } from '../console/files.ts';
import type { App } from './app.ts';
import { type Predecessor, predecessorOf } from './predecessor.ts';
import { loadStores, openStores } from './stores.ts';

/** After the runs' grace: time for their end, the last writes, the connections. */
const stopMarginMs = 4_000;

const parentCheckMs = 500;

/** After the start, for a first run; longer only holds memory. */
const unusedMs = 5_000;

interface RunMode {
  /** Whether saved skills are reloaded at once, whatever changed. */
  readonly isAuthoring?: boolean;
  /** Whether this is a bundle of the sources. */
  readonly isBundled?: boolean;
  /** Whether this start is made to record its compiled code. */
  readonly isRecorded?: boolean;
}

/** Starts everything; ends the process with one clear sentence when it cannot. */
export async function run(environment: NodeJS.ProcessEnv, mode: RunMode = {}): Promise<void> {
  const predecessor = predecessorOf(environment);
  // Before the start, which may take longer than the parent lives.
  if (['start', 'dev', 'npx'].includes(environment['npm_lifecycle_event'] ?? '')) stopWithParent();
  try {
    await start(configOf(environment), environment, mode, predecessor);
  } catch (error) {
    const reason = operatorMessage(error);
    process.stderr.write(`${reason}\n`);
    await predecessor?.failed(reason);
    process.exit(1);
  }
}

/** Throws a ConfigError that names every fault, also that of a directory which is not there. */
function configOf(environment: NodeJS.ProcessEnv): Config {
  const { config, faults } = examineConfig(environment);
  const missing = missingSkillsDir(config);
  const messages = faults.map(({ message }) => message);
  if (messages.length > 0) throw new ConfigError(messages.concat(missing ?? []));
  return config;
}

function missingSkillsDir({ skillsDir, roles }: Config): string | null {
  if (skillsDir === null || !roles.has('worker') || isDirectory(skillsDir)) return null;
  return `SKILLS_DIR=${skillsDir}: there is no such directory`;
}

/**
 * npm and npx run a command in a shell, and a shell that gets a signal does not pass it on. Where it has gone
 * the start was meant to end, and an orphan would hold the port and the data directory.
 */
function stopWithParent(): void {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, parentCheckMs);
  watch.unref();
}

async function start(
  config: Config,
  environment: NodeJS.ProcessEnv,
  { isAuthoring = false, isBundled = false, isRecorded = false }: RunMode,
  predecessor: Predecessor | null,
): Promise<void> {
  const log = await loggerOf(config);
  const compileCache = environment['NODE_COMPILE_CACHE'];
  for (const { name, nearest } of misspeltSettings(environment)) {
    log.warn({ variable: name, nearest }, `${name} is not a setting; did you mean ${nearest}?`);
  }
  let app: App | undefined;
  closeWithGrace(
    { delay: config.shutdownGraceMs + stopMarginMs, logger: false, skip: ['SIGHUP'] },
    async ({ err }) => {
      if (err) log.fatal({ err }, 'an error that nothing caught; stopping');
      else log.info('stopping');
      // During the start there is no work to finish: the next start finds all that is recorded.
      await app?.stop();
    },
  );
  const runsSkills = config.roles.has('worker');
  const loadSkills = (plan: Promise<LoadPlan> | null = null, giveUp: AbortSignal | null = null) =>
    startExecutors(config, { compileCache, log, plan, giveUp });
  const dev = isAuthoring && runsSkills ? await import('./dev.ts') : null;
  const authored = dev?.authoredSkills(loadSkills) ?? null;
  const executors = runsSkills ? (authored?.load() ?? loadSkills()) : Promise.resolve(null);
  // The first failure ends the process; a failure of the other is then ignored.
  executors.catch(() => {});
  const adminSecret = adminSecretOf(config.adminSecret, config.dataDir);
  // At once, even if this start fails later: no later start shows it.
  if (adminSecret.isNew) show(adminSecret, config.dataDir);
  const { encryptionKey, dataDir, isEmbedded } = config;
  if (predecessor !== null) {
    const [pool] = await Promise.all([executors, import('./app.ts'), loadStores(config)]);
    await predecessor.mayStart();
    // Its executor may have ended meanwhile, and runs come at once.
    pool?.warm();
  }
  const [{ startApp }, stores] = await Promise.all([import('./app.ts'), openStores(config, log)]);
  const version = runningVersion();
  const consoleFiles = config.roles.has('api') ? new ConsoleFiles(log) : null;
  app = await startApp({
    config,
    version,
    adminSecret: adminSecret.value,
    encryptionKey: encryptionKeyOf(encryptionKey, dataDir, isEmbedded, (file) =>
      log.info({ file }, 'made the key that stored credentials are encrypted with: keep a copy'),
    ),
    ...stores,
    executors: await executors,
    reloadExecutors: () => authored?.load() ?? loadSkills(),
    isAuthoring,
    listenFd: inheritedListener(environment, process.pid),
    ...(consoleFiles && { consoleFiles }),
    log,
  });
  limitHeapGrowth();
  reloadOnSignal(app, log);
  const { offerReplacement } = await import('./replacement.ts');
  await offerReplacement({ app, config, isShared: config.redisUrl !== null, environment, log });
  void predecessor?.started();
  await logReady({ config, version, address: app.address }, log);
  if (config.skillsDir !== null && authored !== null) {
    const print = (text: string) => void process.stdout.write(text);
    dev?.reloadOnSave(app.reloads, authored, print, config.skillsDir);
  }
  compactHeapSoon();
  if (!isBundled && isBundlerInstalled()) {
    log.info(
      'this start ran the sources: npm install, or node scripts/bundle.ts, bundles them, and a start of a bundle takes half the time',
    );
  }
  if (!isRecorded) consoleFiles?.prepare();
}

/** `npm install --omit=dev` leaves it out. */
function isBundlerInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve('rolldown');
    return true;
  } catch {
    return false;
  }
}

/** For a person where standard output is a terminal, as JSON anywhere else. */
async function loggerOf({ logLevel }: Config): Promise<Logger> {
  if (!process.stdout.isTTY) return createLogger(logLevel);
  const { readableLog } = await import('./readable-log.ts');
  const print = (text: string) => void process.stdout.write(text);
  return createLogger(logLevel, readableLog(print, process.cwd()));
}

/** SIGHUP reloads the skills, of all processes of a cluster; from a terminal that was closed it ends the process. */
function reloadOnSignal({ reloads }: App, log: Logger): void {
  const hasTerminal = process.stdin.isTTY;
  process.on('SIGHUP', () => {
    if (hasTerminal && isTerminalGone()) {
      process.kill(process.pid, 'SIGTERM');
      return;
    }
    log.info('SIGHUP: reloading the skills');
    // How it ends is logged by each process that reloads.
    reloads
      .reloadAll('signal')
      .then(({ status, reason }) => {
        if (status === 'refused') log.warn({ reason }, 'SIGHUP: not all skills were reloaded');
      })
      .catch((err: unknown) => log.warn({ err }, 'SIGHUP: no reload was begun'));
  });
}

function isTerminalGone(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return false;
  } catch {
    return true;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function startExecutors(
  config: Config,
  {
    compileCache,
    ...options
  }: Pick<PoolOptions, 'log' | 'plan' | 'giveUp'> & { compileCache: string | undefined },
): Promise<ExecutorPool> {
  const catalog = join(import.meta.dirname, '../../core/skills/catalog');
  const missing = missingSkillsDir(config);
  if (missing !== null) throw new Error(missing);
  return startExecutorPool({
    size: config.executors,
    memoryMb: config.executorMemoryMb,
    ...idleTimesOf(config),
    loadMs: config.skillLoadMs,
    inspectPort: config.executorInspectPort,
    skillsDirs: [catalog, ...(config.skillsDir === null ? [] : [config.skillsDir])],
    env: {
      SKILLS_ALLOW_CIDRS: config.skillsAllowCidrs ?? '',
      NODE_COMPILE_CACHE: compileCache ?? '',
    },
    ...options,
  });
}

/** With 0 the executors stay. */
function idleTimesOf({ executorsIdleSeconds }: Config): Pick<PoolOptions, 'idleMs' | 'unusedMs'> {
  if (executorsIdleSeconds === 0) return { idleMs: null, unusedMs: null };
  const idleMs = executorsIdleSeconds * 1000;
  return { idleMs, unusedMs: Math.min(idleMs, unusedMs) };
}

/** Prints a new secret at every log level; the logger would redact it. */
function show({ value }: AdminSecret, dataDir: string): void {
  const file = join(dataDir, 'admin-secret');
  const line = process.stdout.isTTY
    ? `\n  Admin secret  ${value}   (shown once, kept in ${file})`
    : JSON.stringify({
        level: 30,
        time: Date.now(),
        admin_secret: value,
        msg: 'first start: keep this admin secret',
      });
  process.stdout.write(`${line}\n`);
}

/** Reports the start: readable in a terminal, otherwise as a line of JSON. */
async function logReady(
  facts: { config: Config; version: string; address: string },
  log: Logger,
): Promise<void> {
  const { config, version, address } = facts;
  if (process.stdout.isTTY) {
    const { greeting } = await import('./greeting.ts');
    const isSecretInFile = config.adminSecret === null;
    process.stdout.write(`${greeting({ ...facts, isSecretInFile })}\n`);
    return;
  }
  const where = config.isEmbedded ? { data_dir: config.dataDir } : { roles: [...config.roles] };
  log.info({ address, version, ...where }, 'Skillwright is ready');
}
