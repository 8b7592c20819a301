/**
 * MCP servers as commands: child processes that use standard input and output. Per process of the platform, each
 * organization has its own child of a source, which all of its calls share, because messages do not identify their call.
 * The child ends when it is idle, when its source changes, and with the platform. After a call without an answer, its
 * child gets no further calls. Once a server has asked a question, a child gets one call at a time. Of the platform's
 * environment it inherits only what is needed to find programs.
 */
import type { ChildProcess } from 'node:child_process';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { aborted } from '../../../kernel/aborted.ts';
import { withDeadline } from '../../../kernel/with-deadline.ts';
import { mayTake } from '../fair-share.ts';
import { RemoteFault, type RemoteSource } from '../remote-kind.ts';
import type { RemoteSkills } from '../state.ts';
import type { AccountUse } from './account-provider.ts';
import {
  type ClientOptions,
  type Connection,
  ServerClient,
  UnansweredCalls,
} from './server-client.ts';
import type { McpSecrets, McpSettings } from './settings.ts';

/** Bytes of one message. */
const messageBytesMax = 8 * 1024 * 1024;
/** Milliseconds in which a child has to start; `timeout_ms` where that is less. */
const startMs = 30_000;
const idleMs = 5 * 60_000;
/** Milliseconds in which a child has to end by itself. */
const endMs = 1_500;
const errorCharsMax = 500;
/** Children of one source: an organization has at most half of what the others leave free. */
const childrenMax = 40;

/** The organization of the call; null for a refresh of the server. */
type CommandUse = Pick<AccountUse, 'organizationId'>;

interface Child {
  readonly sourceId: string;
  /** The organization whose calls it serves; null before the first call. */
  organizationId: string | null;
  /** Its settings and secrets; another one is started when they change. */
  readonly described: string;
  readonly connected: Promise<Connection>;
  users: number;
  idle: NodeJS.Timeout | undefined;
  /** With any, the child takes no further calls. */
  readonly unanswered: UnansweredCalls;
}

/** The children of this process. */
export class Commands {
  readonly #version: string;
  readonly #remote: RemoteSkills;
  readonly #running = new Set<Child>();
  /** Sources that have asked a question. */
  readonly #asking = new Set<string>();

  /** `version` is that of the platform. */
  constructor(version: string, remote: RemoteSkills) {
    this.#version = version;
    this.#remote = remote;
  }

  /** The child's connection; `close` gives it back. */
  async connect(source: RemoteSource, use: CommandUse, signal: AbortSignal): Promise<Connection> {
    const child = this.#childFor(source, use);
    clearTimeout(child.idle);
    child.users += 1;
    const release = async () => {
      child.users -= 1;
      if (child.users > 0 || !this.#running.has(child)) return;
      if (child.unanswered.any) return await this.#drop(child);
      child.idle = setTimeout(() => void this.#drop(child), idleMs).unref();
    };
    try {
      const connection = await Promise.race([child.connected, aborted(signal)]);
      connection.broken.catch(() => void this.#drop(child));
      const close = () => {
        // The server may go on with a call that was given up, and speak of it.
        if (signal.aborted) child.unanswered.add();
        return release();
      };
      return { ...connection, close };
    } catch (error) {
      await release();
      if (!signal.aborted) await this.#drop(child);
      throw error;
    }
  }

  /** Ends the children of a source, or all. */
  async end(sourceId?: string): Promise<void> {
    const ended = [...this.#running].filter(
      (child) => sourceId === undefined || child.sourceId === sourceId,
    );
    await Promise.all(ended.map((child) => this.#drop(child)));
  }

  /** The child for a call of an organization: the shared one, or an idle one if the source asks questions. */
  #childFor(source: RemoteSource, { organizationId }: CommandUse): Child {
    const running = this.#running;
    const asking = this.#asking;
    const { id, name, settings, secrets } = source;
    const described = JSON.stringify([settings, secrets]);
    const children = [...running].filter(({ sourceId }) => sourceId === id);
    for (const one of children) if (one.described !== described) void this.#drop(one);
    const found = children.find((one) => {
      const isFree = one.users === 0 || !asking.has(id);
      const isOurs = organizationId === null || [null, organizationId].includes(one.organizationId);
      return one.described === described && isOurs && isFree && !one.unanswered.any;
    });
    if (found !== undefined) {
      found.organizationId ??= organizationId;
      return found;
    }
    const used = children.filter((one) => one.users > 0);
    // A refresh of the server is not counted for any organization.
    const own = organizationId === null ? [] : used.filter(isOf(organizationId));
    if (!mayTake({ own: own.length, all: used.length, max: childrenMax })) {
      const message = `${own.length} processes of ${name} are at work on other calls`;
      throw new RemoteFault(message, { code: 'upstream_unavailable', retryable: true });
    }
    const unused = children.find((one) => one.users === 0);
    if (unused !== undefined && children.length >= childrenMax) void this.#drop(unused);
    const child = this.#start(source, { organizationId, described });
    running.add(child);
    return child;
  }

  async #drop(child: Child): Promise<void> {
    this.#running.delete(child);
    clearTimeout(child.idle);
    await (await child.connected.catch(() => undefined))?.close();
  }

  #start(source: RemoteSource, of: Pick<Child, 'organizationId' | 'described'>): Child {
    const unanswered = new UnansweredCalls();
    const connected = startCommand(source, {
      source,
      version: this.#version,
      remote: this.#remote,
      unanswered,
      askingSources: this.#asking,
    });
    connected.catch(() => {});
    return { ...of, sourceId: source.id, connected, users: 0, idle: undefined, unanswered };
  }
}

const isOf =
  (organizationId: string) =>
  (child: Child): boolean =>
    child.organizationId === organizationId;

async function startCommand(source: RemoteSource, options: ClientOptions): Promise<Connection> {
  const { command, args, timeout_ms: timeoutMs } = source.settings as unknown as McpSettings;
  const { env = {} } = source.secrets as McpSecrets;
  const transport = new StdioClientTransport({
    command: command ?? '',
    args: [...args],
    env: { ...strippedEnvironment, ...env },
    stderr: 'pipe',
    maxBufferSize: messageBytesMax,
  });
  let output = '';
  transport.stderr?.on('data', (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(-errorCharsMax);
  });
  readInTurns(transport);
  const client = new ServerClient(options);
  client.watch(transport);
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {});
  const close = () => endChild(transport);
  const limitMs = Math.min(startMs, timeoutMs);
  const signal = AbortSignal.timeout(limitMs);
  try {
    await Promise.race([client.sdk.connect(transport, { signal }), client.broken, aborted(signal)]);
  } catch (cause) {
    await close();
    const late = `: it did not answer within ${limitMs / 1_000} s`;
    throw startFault(source.name, (cause === signal.reason ? late : '') + lastLine(output), cause);
  }
  client.sdk.onclose = () => {
    const message = `The command of ${source.name} has ended${lastLine(output)}`;
    ended.reject(new RemoteFault(message, { code: 'upstream_unavailable', retryable: true }));
  };
  const over = Promise.race([client.broken, ended.promise]);
  // The call for which it was started may have been given up meanwhile.
  over.catch(() => {});
  return { client, broken: over, close };
}

/**
 * Reads a chunk of the child's output in each turn of the event loop, so that other requests are answered while a child
 * floods it. The SDK reads all there is, and offers no way to pause it.
 */
function readInTurns(transport: StdioClientTransport): void {
  const start = transport.start.bind(transport);
  transport.start = async () => {
    await start();
    const { _process: child } = transport as unknown as { _process?: ChildProcess };
    const stdout = child?.stdout;
    stdout?.on('data', () => {
      stdout.pause();
      setImmediate(() => stdout.resume());
    });
  };
}

/** The SDK adds where programs are found and whose they are; these it would pass on too. */
const strippedEnvironment = { TERM: 'dumb', SHELL: '/bin/sh' };

function startFault(server: string, reason: string, cause: unknown): RemoteFault {
  const isMissing = (cause as { code?: unknown }).code === 'ENOENT';
  const why = isMissing ? ': there is no such program' : reason;
  return new RemoteFault(`The command of ${server} could not be started${why}`, {
    code: 'upstream_unavailable',
    retryable: !isMissing,
    cause,
  });
}

function lastLine(output: string): string {
  const line = output.trim().split('\n').at(-1)?.trim() ?? '';
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
