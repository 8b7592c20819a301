/**
 * The client of MCP servers, on the SDK. Each refresh and each call over HTTP has its own connection, so runs share no
 * session. Promises limits on everything that a server sends: bytes, pages, tools and time.
 */
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import { GuardedFetch } from '../../../adapters/egress/fetch-through.ts';
import type { AccountTokens } from '../accounts/tokens.ts';
import type { CalledTool, Discovered, RemoteSource, Viewer } from '../remote-kind.ts';
import type { RemoteRun } from '../remote-run.ts';
import type { RemoteSkills } from '../state.ts';
import { type AccountUse, accountFaultOf } from './account-provider.ts';
import { ToolCall } from './call-tool.ts';
import { ClientCredentials } from './client-credentials.ts';
import { Commands } from './commands.ts';
import { type ConnectionParts, connect } from './connection.ts';
import { discoverWithAccounts } from './discover-with-accounts.ts';
import { faultOf } from './faults.ts';
import { listTools } from './list-tools.ts';
import type { Connection } from './server-client.ts';
import { type McpSettings, takesAccounts } from './settings.ts';

/** Bytes of one response. */
const responseBytesMax = 8 * 1024 * 1024;
/** Accounts with which a refresh asks in turn. */
const accountsMax = 5;

/** A request over one connection. */
interface Request {
  readonly source: RemoteSource;
  readonly use: AccountUse;
  readonly signal: AbortSignal;
}

export class McpClient {
  readonly #guarded: GuardedFetch;
  readonly #parts: ConnectionParts;
  readonly #commands: Commands;
  /** By source: the organization whose account the last refresh used, in turn. */
  readonly #lastUsed = new Map<string, string>();

  constructor(allowed: AllowList, version: string, tokens: AccountTokens, remote: RemoteSkills) {
    this.#guarded = new GuardedFetch({
      allowed,
      schemes: ['https:', 'http:'],
      maxBytes: responseBytesMax,
    });
    const fetch: ConnectionParts['fetch'] = (url, init) => this.#guarded.fetch(url, init);
    const credentials = new ClientCredentials();
    this.#parts = { fetch, version, tokens, credentials, remote };
    this.#commands = new Commands(version, remote);
  }

  /** Discovers the tools of a server: without an account, with that of `organizationId`, and with some of the others. */
  async discover(
    source: RemoteSource,
    signal: AbortSignal,
    organizationId: string | null,
  ): Promise<Discovered> {
    const { tokens } = this.#parts;
    const discoverAs = (viewer: Viewer) =>
      this.#request({ source, use: { organizationId: viewer }, signal }, (connection) =>
        listTools(connection.client.sdk, source, signal),
      );
    if (!takesAccounts(source.settings as unknown as McpSettings)) {
      const { about, ...view } = await discoverAs(null);
      return { views: [{ viewer: null, ...view }], knownViewers: 'all', about };
    }
    const inTurn = await tokens.organizationsAt(source, {
      after: this.#lastUsed.get(source.id) ?? '',
      limit: accountsMax,
    });
    const last = inTurn.at(-1);
    if (last !== undefined) this.#lastUsed.set(source.id, last);
    const hasOwn = organizationId !== null && (await tokens.hasTokens(source, organizationId));
    const organizations = new Set([...(hasOwn ? [organizationId] : []), ...inTurn]);
    return discoverWithAccounts([...organizations], discoverAs);
  }

  call(source: RemoteSource, tool: CalledTool, input: unknown, run: RemoteRun): Promise<unknown> {
    const { organizationId, signal } = run;
    const use = { organizationId, onToken: (token: string) => run.addSecret(token) };
    return this.#request({ source, use, signal }, (connection) =>
      new ToolCall(source, tool, input, run).send(connection.client),
    );
  }

  /** Ends the commands of a source that was changed or removed; without an id, those of all sources and all connections. */
  async close(sourceId?: string): Promise<void> {
    if (sourceId !== undefined) this.#lastUsed.delete(sourceId);
    await this.#commands.end(sourceId);
    if (sourceId === undefined) await this.#guarded.close();
  }

  /** Sends over a connection and closes it. What fails is a RemoteFault, or the reason of the signal. */
  async #request<T>(request: Request, send: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.#connect(request);
    try {
      return await Promise.race([send(connection), connection.broken]);
    } catch (error) {
      throw await this.#faultOf(request, error);
    } finally {
      await connection.close();
    }
  }

  /** Connects within `timeout_ms`: to the end of the initialization of the protocol. */
  async #connect(request: Request): Promise<Connection> {
    const { source, use } = request;
    const { url, timeout_ms: timeoutMs } = source.settings as unknown as McpSettings;
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
    try {
      // The start of a command has the same limit. It serves other calls too, so this call's signal does not end it.
      if (url === null) return await this.#commands.connect(source, use, request.signal);
      return await connect(this.#parts, source, { url, use }, signal);
    } catch (error) {
      throw await this.#faultOf({ ...request, signal }, error);
    }
  }

  async #faultOf({ source, use, signal }: Request, error: unknown): Promise<unknown> {
    const ofAccount = await accountFaultOf(this.#parts.tokens, source, use, error);
    return ofAccount ?? faultOf(source.name, error, signal);
  }
}
