/**
 * Lets a new process take the place of this one without a moment in which the port is closed. The command
 * `start --replace` asks for it on a socket in the data directory. The new process inherits the listening
 * socket, so connections that neither process accepts wait in the kernel. It loads first; then this process, if its
 * stores are for one process alone, waits for a moment without long runs, stops and gives way. In a cluster both answer until the new one is ready.
 * Promises that a new process that does not load changes nothing.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import {
  type ReplaceAnswer,
  type ReplaceRequest,
  replaceSocket,
} from '../../core/config/replacement.ts';
import { makeDirectory } from '../../kernel/directory.ts';
import type { Logger } from '../../kernel/log.ts';
import { nodeArguments } from '../../kernel/node-program.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';
import type { App } from './app.ts';
import { replacesVariable, type SuccessorMessage } from './predecessor.ts';

/** A request has the environment of a process. */
const requestBytesMax = 1_024 * 1_024;
const requestMs = 5_000;
/** Milliseconds for the new process to load, beyond the time that skills have. */
const loadMarginMs = 60_000;
/** Milliseconds for the new process to open its stores, with the migrations of its version. */
const readyMs = 10 * 60_000;

interface Replaceable {
  readonly app: App;
  readonly config: { dataDir: string; port: number; skillLoadMs: number };
  /** Whether another process may use the stores at the same time. */
  readonly isShared: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
}

/** Takes requests; a platform that cannot goes on without. Resolves when it listens. */
export async function offerReplacement(running: Replaceable): Promise<void> {
  const { config, log } = running;
  const path = replaceSocket(config);
  let isBusy = false;
  const server = createServer((socket) => {
    socket.on('error', (err) => log.debug({ err }, 'a request for a replacement was cut'));
    const handle = async () => {
      if (isBusy) return answer(socket, refused('another replacement is under way'));
      isBusy = true;
      await takeRequest(running, server, socket).finally(() => {
        isBusy = false;
      });
    };
    handle().catch((err: unknown) => log.error({ err }, 'a replacement failed'));
  });
  server.unref();
  try {
    makeDirectory(config.dataDir);
    await listenOn(server, path);
    // Its file is left behind where the process is killed; the next one removes it.
    process.once('exit', () => server.close());
  } catch (err) {
    log.debug({ err }, 'start --replace cannot reach this process');
  }
}

/** Of one data directory and port there is one platform: a file that is there is of one that has gone. */
async function listenOn(server: Server, path: string): Promise<void> {
  await rm(path, { force: true });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen(path, resolve);
  await promise;
}

function refused(reason: string): ReplaceAnswer {
  return { status: 'refused', reason };
}

function answer(socket: Socket, content: ReplaceAnswer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.once('close', () => resolve());
  socket.end(`${JSON.stringify(content)}\n`, resolve);
  return promise;
}

async function takeRequest(running: Replaceable, server: Server, socket: Socket): Promise<void> {
  const request = await readRequest(socket);
  const obstacle = obstacleOf(running);
  if (request === null || obstacle !== null) {
    await answer(socket, refused(obstacle ?? 'the request is not understood'));
    return;
  }
  await replace(running, request, server, socket);
}

/** Why the end of this process would end the new one too; null where it would not. */
function obstacleOf({ environment }: Replaceable): string | null {
  if (environment['SYSTEMD_EXEC_PID'] === String(process.pid)) {
    return 'the platform is a service of systemd, which would end the new process too: give the unit a socket and restart it (docs/operations.md)';
  }
  if (process.pid === 1) {
    return 'the platform is the first process of a container, which would end the new process too: start a new container (docs/operations.md)';
  }
  return null;
}

/** The first line; null when it is no request. */
async function readRequest(socket: Socket): Promise<ReplaceRequest | null> {
  let text = '';
  const read = async () => {
    for await (const chunk of socket.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      text += chunk;
      if (text.includes('\n') || text.length > requestBytesMax) return;
    }
  };
  await withDeadline(read(), requestMs);
  try {
    const { program, args, cwd, env } = JSON.parse(text) as Partial<ReplaceRequest>;
    const isWhole = typeof program === 'string' && Array.isArray(args) && typeof cwd === 'string';
    return isWhole && env !== undefined ? { program, args, cwd, env } : null;
  } catch {
    return null;
  }
}

async function replace(
  running: Replaceable,
  request: ReplaceRequest,
  server: Server,
  socket: Socket,
): Promise<void> {
  const { app, isShared, log } = running;
  const child = startSuccessor(request, app.listeningFd());
  const messages = listenTo(child);
  log.info(
    { successor: child.pid, cwd: request.cwd },
    'a new process is to take the place of this one',
  );
  const loaded = await withDeadline(messages.first, running.config.skillLoadMs + loadMarginMs);
  if (loaded?.state !== 'loaded') {
    child.kill('SIGKILL');
    const reason = loaded?.state === 'failed' ? loaded.reason : 'it did not load in time';
    log.error({ reason }, 'the new process did not start; this one goes on');
    return answer(socket, refused(reason));
  }
  if (!isShared) {
    // Runs that begin after the stop wait for the end of those under way.
    const young = app.untilRunsAreYoung().then(() => null);
    const early = await Promise.race([young, messages.second]);
    if (early?.state === 'failed') {
      log.error({ reason: early.reason }, 'the new process has ended; this one goes on');
      return answer(socket, refused(early.reason));
    }
  }
  // The new process makes a socket of that name.
  server.close();
  if (!isShared) await app.stop();
  child.send('start');
  const end = await withDeadline(messages.second, readyMs);
  if (end?.state === 'failed') {
    log.error({ reason: end.reason }, 'the new process did not start');
    if (isShared) {
      await offerReplacement(running);
      return answer(socket, refused(end.reason));
    }
    startAgain(running);
    await answer(socket, refused(`${end.reason} (the earlier program was started again)`));
  } else {
    log.info({ successor: child.pid }, 'the new process has taken over');
    await answer(socket, { status: 'replaced', pid: child.pid ?? 0 });
    await app.stop();
  }
  process.exit(0);
}

/** Its output goes where that of this process goes. It has no terminal, so the end of a shell does not reach it. */
function startSuccessor({ program, args, cwd, env }: ReplaceRequest, fd: number): ChildProcess {
  const { LISTEN_PID: _, ...rest } = env;
  return spawn(program, args, {
    cwd,
    env: { ...rest, LISTEN_FDS: '1', [replacesVariable]: String(process.pid) },
    stdio: ['ignore', 'inherit', 'inherit', fd, 'ipc'],
    detached: true,
  });
}

/** Starts the program of this process again, whose stores and port are closed. */
function startAgain({ environment }: Replaceable): void {
  const { LISTEN_FDS: _count, LISTEN_PID: _pid, ...env } = environment;
  const args = [...nodeArguments(process.execArgv), ...process.argv.slice(1)];
  spawn(process.execPath, args, {
    env: { ...env, [replacesVariable]: undefined },
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  }).unref();
}

/** The first and the second message of the new process; its end counts as a failure. */
function listenTo(child: ChildProcess): Record<'first' | 'second', Promise<SuccessorMessage>> {
  const first = Promise.withResolvers<SuccessorMessage>();
  const second = Promise.withResolvers<SuccessorMessage>();
  const take = (message: SuccessorMessage) => {
    if (message.state !== 'loaded') second.resolve(message);
    first.resolve(message);
  };
  const lost = (reason: string) => take({ state: 'failed', reason });
  child.on('message', (message) => take(message as SuccessorMessage));
  child.on('error', ({ message }) => lost(message));
  child.on('exit', (code, signal) => lost(`the new process ended with ${signal ?? code}`));
  return { first: first.promise, second: second.promise };
}
