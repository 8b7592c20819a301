/**
 * The platforms that run already: whether one has the data directory, and who listens on the port that a start
 * would use. A platform can be reached by a socket in its data directory, which is named after its `PORT`.
 */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as elapsed } from 'node:timers/promises';
import type { DirectoryUse } from '../../../adapters/database/inspect.ts';
import type { Config } from '../../../core/config/config.ts';
import type { Io } from '../io.ts';

const healthMs = 3_000;
const connectMs = 1_000;
const socketPattern = /^replace-(\d+)\.sock$/;

/** Who listens on the address. */
export type Occupant =
  | { readonly kind: 'none' | 'another program' }
  | { readonly kind: 'platform'; readonly status: string; readonly version: string }
  | { readonly kind: 'refused'; readonly code: string };

export interface Running {
  /** Whether a process has the data directory. */
  readonly use: DirectoryUse;
  /** `PORT` of each platform that uses the data directory, as far as its socket tells. */
  readonly ports: readonly number[];
  readonly occupant: Occupant;
}

export async function findRunning(config: Config, io: Pick<Io, 'fetch'>): Promise<Running> {
  const { dataDir, host, port } = config;
  const [use, ports, occupant] = await Promise.all([
    useOf(config),
    portsOf(dataDir),
    occupantOf(host, port, (...to) => io.fetch(...to)),
  ]);
  return { use, ports, occupant };
}

/** Whether the platform on the port uses this data directory; where no socket tells, it is taken for that one. */
export function isOwnPlatform({ port }: Config, { use, ports, occupant }: Running): boolean {
  if (use !== 'taken') return false;
  return ports.includes(port) || (ports.length === 0 && occupant.kind === 'platform');
}

async function useOf({ dataDir, isEmbedded }: Config): Promise<DirectoryUse> {
  if (!isEmbedded) return 'free';
  const { directoryUse } = await import('../../../adapters/database/inspect.ts');
  return directoryUse(dataDir);
}

async function portsOf(dataDir: string): Promise<number[]> {
  const ports = namesIn(dataDir).flatMap((name) => {
    const [, port] = socketPattern.exec(name) ?? [];
    return port === undefined ? [] : [Number(port)];
  });
  const answers = await Promise.all(
    ports.map((port) => isListening(join(dataDir, `replace-${port}.sock`))),
  );
  return ports.filter((_port, i) => answers[i]);
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** A process that was killed leaves its socket behind. */
async function isListening(path: string): Promise<boolean> {
  const socket = createConnection(path);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  const deadline = new AbortController();
  const late = elapsed(connectMs, false, { signal: deadline.signal }).catch(() => false);
  try {
    return await Promise.race([promise, late]);
  } finally {
    deadline.abort();
    socket.destroy();
  }
}

async function occupantOf(host: string, port: number, fetch: Io['fetch']): Promise<Occupant> {
  const error = await failureToListen(host, port);
  if (error === null) return { kind: 'none' };
  if (error.code !== 'EADDRINUSE') return { kind: 'refused', code: error.code ?? error.message };
  const address = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  const at = address.includes(':') ? `[${address}]` : address;
  const health = await healthOf(`http://${at}:${port}/health`, fetch);
  return health === null ? { kind: 'another program' } : { kind: 'platform', ...health };
}

async function failureToListen(host: string, port: number): Promise<NodeJS.ErrnoException | null> {
  const server = createServer();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
    return null;
  } catch (error) {
    return error as NodeJS.ErrnoException;
  } finally {
    server.close();
  }
}

async function healthOf(
  url: string,
  fetch: Io['fetch'],
): Promise<{ status: string; version: string } | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(healthMs) });
    const { status, version } = (await response.json()) as Record<string, unknown>;
    return typeof status === 'string' && typeof version === 'string' ? { status, version } : null;
  } catch {
    return null;
  }
}
