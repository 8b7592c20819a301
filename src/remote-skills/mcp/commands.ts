/**
 * Servers that are commands: child processes that speak on their standard input and output. A process of the platform
 * has one child of a source, which all its calls share; it ends when it was not used for a while, when its source
 * changes, and with the platform. Once a server has asked a question, a child takes one call at a time and others get
 * further children, because nothing says in which call a child asks. Its environment has nothing of the platform's but where programs are found.
 */
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { aborted } from '../../kernel/aborted.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';
import { RemoteFault, type RemoteSource } from '../remote-kind.ts';
import { type ClientHooks, type Connection, newClient } from './client-of.ts';
import type { Transports } from './connection.ts';
import type { McpSecrets, McpSettings } from './settings.ts';

/** Bytes of one message. */
const messageBytesMax = 8 * 1024 * 1024;
const startMs = 30_000;
const idleMs = 5 * 60_000;
/** Milliseconds in which a child has to end by itself. */
const endMs = 1_500;
const errorCharsMax = 500;
/** Children of one source. */
const childrenMax = 20;

export interface Commands {
  /** The child's connection; `close` gives it back. */
  connect(source: RemoteSource, signal: AbortSignal): Promise<Connection>;
  /** Ends the child of a source, or all. */
  end(sourceId?: string): Promise<void>;
}

interface Child {
  readonly sourceId: string;
  /** Its settings and secrets; another one is started when they change. */
  readonly described: string;
  readonly connected: Promise<Connection>;
  users: number;
  idle: NodeJS.Timeout | undefined;
  /** Requests that were given up, whose answers may still come. */
  readonly late: { count: number };
}

interface CommandsState extends Pick<Transports, 'version' | 'onToolsChanged'> {
  /** Those that calls share, by source. */
  readonly shared: Map<string, Child>;
  /** All of them. */
  readonly running: Set<Child>;
  /** Sources that have asked a question. */
  readonly asking: Set<string>;
}

export function createCommands(deps: Pick<Transports, 'version' | 'onToolsChanged'>): Commands {
  const { version, onToolsChanged } = deps;
  const state: CommandsState = {
    ...{ version, onToolsChanged: (id) => onToolsChanged(id) },
    ...{ shared: new Map(), running: new Set(), asking: new Set() },
  };
  return {
    connect: (source, signal) => connect(state, source, signal),
    async end(sourceId) {
      const ended = [...state.running].filter(
        (child) => sourceId === undefined || child.sourceId === sourceId,
      );
      await Promise.all(ended.map((child) => drop(state, child)));
    },
  };
}

async function connect(
  state: CommandsState,
  source: RemoteSource,
  signal: AbortSignal,
): Promise<Connection> {
  const child = await childFor(state, source);
  clearTimeout(child.idle);
  child.users += 1;
  const release = async () => {
    child.users -= 1;
    if (signal.aborted) child.late.count += 1;
    if (child.users > 0) return;
    if (!state.running.has(child)) return;
    // A call that was given up may still ask, and would ask in the name of the next one.
    if (signal.aborted && state.asking.has(source.id)) return await drop(state, child);
    child.idle = setTimeout(() => void drop(state, child), idleMs).unref();
  };
  try {
    const connection = await Promise.race([child.connected, aborted(signal)]);
    connection.broken.catch(() => void drop(state, child));
    return { ...connection, close: release };
  } catch (error) {
    await release();
    if (!signal.aborted) await drop(state, child);
    throw error;
  }
}

/** The child that all calls share; of a source that asks one without a call. */
async function childFor(state: CommandsState, source: RemoteSource): Promise<Child> {
  const { shared, running, asking } = state;
  const { id, name, settings, secrets } = source;
  const described = JSON.stringify([settings, secrets]);
  const known = shared.get(id);
  if (known !== undefined && known.described !== described) await drop(state, known);
  const isShared = !asking.has(id);
  const children = [...running].filter(({ sourceId }) => sourceId === id);
  const free = children.find((one) => one.users === 0 && one.described === described);
  const found = isShared ? shared.get(id) : free;
  if (found !== undefined) return found;
  if (children.length >= childrenMax) {
    const message = `${childrenMax} calls of ${name} are under way, each in a process of its own`;
    throw new RemoteFault(message, { code: 'upstream_unavailable', retryable: true });
  }
  const child = start(state, source, described);
  running.add(child);
  if (isShared) shared.set(id, child);
  return child;
}

async function drop({ shared, running }: CommandsState, child: Child): Promise<void> {
  running.delete(child);
  if (shared.get(child.sourceId) === child) shared.delete(child.sourceId);
  clearTimeout(child.idle);
  await (await child.connected.catch(() => undefined))?.close();
}

function start(state: CommandsState, source: RemoteSource, described: string): Child {
  const late = { count: 0 };
  const { id } = source;
  const connected = startCommand(source, state.version, {
    isLate: () => late.count > 0 && late.count-- > 0,
    onAsked() {
      state.asking.add(id);
      state.shared.delete(id);
    },
    onToolsChanged: () => state.onToolsChanged(id),
  });
  connected.catch(() => {});
  return { sourceId: id, described, connected, users: 0, idle: undefined, late };
}

async function startCommand(
  source: RemoteSource,
  version: string,
  hooks: ClientHooks,
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
  const { client, calls, broken } = newClient(source.name, version, hooks);
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
  return { client, calls, broken: Promise.race([broken, ended.promise]), close };
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
