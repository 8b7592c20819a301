#!/usr/bin/env node
/**
 * The command `skillwright`, for any Node from 20 on: finds the Node that the platform runs on, which is
 * installed together with it, and becomes that process. Where a process cannot become another (Windows,
 * Node before 22.15), it starts it and passes on signals and the exit code.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The platform's own flags: those of `npm start`, which a package does not have. scripts/deploy.test.ts compares them.
 * A young generation that has its size from the beginning is collected less often during the start. Most other flags of
 * V8 would make Node compile its own modules at each start (src/kernel/heap.ts sets those).
 */
const flags = ['--min-semi-space-size=8', '--max-semi-space-size=8'];
/** The oldest Node that runs it, where none is installed with it. */
const oldestNode = 26;

const parentLookMs = 500;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const load = createRequire(import.meta.url);
const args = process.argv.slice(2);
const isStart = args.length === 0 || (args.length === 1 && args[0] === 'start');
const entry = isStart ? join(root, 'src/start.js') : source('apps/cli/main');
const node = runtime();
if (node === null) {
  const wanted = `Skillwright needs Node ${oldestNode} or newer, and this is ${process.version}.`;
  console.error(
    `${wanted} Its own Node is not installed: install it again, with optional packages.`,
  );
  process.exitCode = 1;
} else {
  become(node, [...flags, entry, ...args]);
}

/** A module of the platform: compiled in a package, TypeScript in a checkout. */
function source(name) {
  const compiled = join(root, 'src', `${name}.js`);
  return existsSync(compiled) ? compiled : join(root, 'src', `${name}.ts`);
}

/** The Node that is installed with the platform, or this one if it is new enough. */
function runtime() {
  const { platform, arch } = process;
  const system = platform === 'win32' ? 'win' : platform;
  const own = `node-${system}-${arch}`;
  for (const name of [`@skillwright/${own}`, own, `node-bin-${system}-${arch}`, 'node']) {
    const file = program(name);
    if (file !== null) return file;
  }
  return Number(process.versions.node.split('.')[0]) >= oldestNode ? process.execPath : null;
}

/** The program of an installed package; null where there is none. */
function program(name) {
  try {
    const manifest = load.resolve(`${name}/package.json`);
    const { bin } = JSON.parse(readFileSync(manifest, 'utf8'));
    const file = join(dirname(manifest), bin.node);
    return existsSync(file) ? file : null;
  } catch {
    return null;
  }
}

/** npm and npx run a command in a shell, which ends at a signal and does not pass it on. */
function endWithParent(child) {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    child.kill('SIGTERM');
  }, parentLookMs);
  watch.unref();
}

/** How many listening sockets systemd has passed to this process. */
function inheritedSockets() {
  const { LISTEN_FDS: count, LISTEN_PID: pid } = process.env;
  return pid === String(process.pid) ? Number(count) : 0;
}

function become(file, argv) {
  // Node closes the sockets that it inherited when it becomes another program; a child can have them.
  const sockets = inheritedSockets();
  if (sockets === 0 && typeof process.execve === 'function' && process.platform !== 'win32') {
    try {
      process.execve(file, [file, ...argv], process.env);
    } catch {
      // For example with worker threads of a preloaded module.
    }
  }
  const stdio = Array(3 + sockets).fill('inherit');
  if (sockets > 0) delete process.env.LISTEN_PID;
  const child = spawn(file, argv, { stdio });
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2', 'SIGQUIT'];
  // A terminal sends its Ctrl-C to both processes; a second one would end the platform at once.
  const hasTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  const pass = (signal) => {
    if (signal !== 'SIGINT' || !hasTerminal) child.kill(signal);
  };
  for (const signal of signals) process.on(signal, pass);
  if (['start', 'dev', 'npx'].includes(process.env.npm_lifecycle_event ?? '')) endWithParent(child);
  child.on('error', (error) => {
    console.error(`${file} cannot be started: ${error.message}`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal ?? 'SIGTERM'] ?? 0);
  });
}
