/**
 * Servers that are commands: child processes that speak on their standard input and output. A process of the platform
 * has at most one child of a source, which all its calls share; it ends when it was not used for a while, when its
 * source changes, and with the platform. Its environment has nothing of the platform's but where programs are found.
 */
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { aborted } from '../../kernel/aborted.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';
import { RemoteFault, type RemoteSource } from '../remote-kind.ts';
import { type Connection, newClient } from './client-of.ts';
import type { McpSecrets, McpSettings } from './settings.ts';

/** Bytes of one message. */
const messageBytesMax = 8 * 1024 * 1024;
const startMs = 30_000;
const idleMs = 5 * 60_000;
/** Milliseconds in which a child has to end by itself. */
const endMs = 1_500;
const errorCharsMax = 500;

export interface Commands {
  /** The child's connection; `close` gives it back. */
  connect(source: RemoteSource, signal: AbortSignal): Promise<Connection>;
  /** Ends the child of a source, or all. */
  end(sourceId?: string): Promise<void>;
}

interface Child {
  /** Its settings and secrets; another one is started when they change. */
  readonly described: string;
  readonly connected: Promise<Connection>;
  users: number;
  idle: NodeJS.Timeout | undefined;
  /** Requests that were given up, whose answers may still come. */
  readonly late: { count: number };
}

export function createCommands(version: string): Commands {
  const children = new Map<string, Child>();
  const drop = async (sourceId: string, child: Child) => {
    if (children.get(sourceId) === child) children.delete(sourceId);
    clearTimeout(child.idle);
    await (await child.connected.catch(() => undefined))?.close();
  };
  return {
    async connect(source, signal) {
      const described = JSON.stringify([source.settings, source.secrets]);
      const known = children.get(source.id);
      if (known !== undefined && known.described !== described) await drop(source.id, known);
      const child = children.get(source.id) ?? start(source, version, described);
      children.set(source.id, child);
      clearTimeout(child.idle);
      child.users += 1;
      const release = async () => {
        child.users -= 1;
        if (signal.aborted) child.late.count += 1;
        if (child.users > 0) return;
        child.idle = setTimeout(() => void drop(source.id, child), idleMs).unref();
      };
      try {
        const connection = await Promise.race([child.connected, aborted(signal)]);
        const forget = () => void drop(source.id, child);
        connection.broken.catch(forget);
        return { ...connection, close: release };
      } catch (error) {
        await release();
        if (!signal.aborted) await drop(source.id, child);
        throw error;
      }
    },
    async end(sourceId) {
      const ended = [...children].filter(([id]) => sourceId === undefined || id === sourceId);
      await Promise.all(ended.map(([id, child]) => drop(id, child)));
    },
  };
}

function start(source: RemoteSource, version: string, described: string): Child {
  const late = { count: 0 };
  const connected = startCommand(source, version, late);
  connected.catch(() => {});
  return { described, connected, users: 0, idle: undefined, late };
}

async function startCommand(
  source: RemoteSource,
  version: string,
  late: Child['late'],
): Promise<Connection> {
  const { command, args } = source.settings as unknown as McpSettings;
  const { env = {} } = source.secrets as McpSecrets;
  const transport = new StdioClientTransport({
    ...{ command: command ?? '', args: [...args], env: { ...strippedEnvironment, ...env } },
    ...{ stderr: 'pipe', maxBufferSize: messageBytesMax },
  });
  let said = '';
  transport.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString('utf8')).slice(-errorCharsMax);
  });
  const { client, broken } = newClient(
    source.name,
    version,
    () => late.count > 0 && late.count-- > 0,
  );
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {});
  const close = () => endChild(transport);
  try {
    await Promise.race([
      client.connect(transport, { signal: AbortSignal.timeout(startMs) }),
      broken,
    ]);
  } catch (cause) {
    await close();
    throw startFault(source.name, said, cause);
  }
  client.onclose = () => {
    const message = `The command of ${source.name} has ended${lastLine(said)}`;
    ended.reject(new RemoteFault(message, { code: 'upstream_unavailable', retryable: true }));
  };
  return { client, broken: Promise.race([broken, ended.promise]), close };
}

/** The SDK adds where programs are found and whose they are; these it would pass on too. */
const strippedEnvironment = { TERM: 'dumb', SHELL: '/bin/sh' };

function startFault(server: string, said: string, cause: unknown): RemoteFault {
  const isMissing = (cause as { code?: unknown }).code === 'ENOENT';
  const why = isMissing ? ': there is no such program' : lastLine(said);
  return new RemoteFault(`The command of ${server} could not be started${why}`, {
    code: 'upstream_unavailable',
    retryable: !isMissing,
    cause,
  });
}

function lastLine(said: string): string {
  const line = said.trim().split('\n').at(-1)?.trim() ?? '';
  return line === '' ? '' : `; it said last: ${line}`;
}

/** Asks the child to end, and kills it when it does not. */
async function endChild(transport: StdioClientTransport): Promise<void> {
  const { pid } = transport;
  const ended = () => true;
  const hasEnded = await withDeadline(transport.close().then(ended, ended), endMs);
  if (hasEnded || pid === null) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
