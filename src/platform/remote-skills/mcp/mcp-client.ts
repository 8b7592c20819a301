/**
 * The client of MCP servers, on the SDK. Each refresh and each call over HTTP has its own connection, so runs share no
 * session. Promises limits on everything that a server sends: bytes, pages, tools and time.
 */
import type {
  CallToolResult,
  Client,
  ElicitResult,
  Progress,
  Tool,
} from '@modelcontextprotocol/client';
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import { GuardedFetch } from '../../../adapters/egress/fetch-through.ts';
import { isObject, type Json, objectOf } from '../../../kernel/json.ts';
import { jsonTextFault } from '../../../kernel/text.ts';
import type { AccountTokens } from '../accounts/tokens.ts';
import type {
  CalledTool,
  Discovered,
  LeftOutTool,
  RemoteRun,
  RemoteSource,
  RemoteTool,
  Viewer,
} from '../remote-kind.ts';
import { RemoteFault } from '../remote-kind.ts';
import { type AccountUse, accountFaultOf } from './account-provider.ts';
import { ClientCredentials } from './client-credentials.ts';
import type { CallOnConnection, Connection } from './client-of.ts';
import { Commands } from './commands.ts';
import { type ConnectionParts, connect } from './connection.ts';
import { discoverWithAccounts, type Found } from './discover-with-accounts.ts';
import { faultOf } from './faults.ts';
import {
  answersOf,
  inputRequired,
  questionOf,
  questionsInFault,
  questionsOf,
  requireOpened,
} from './questions.ts';
import { outputOf } from './results.ts';
import { putBack } from './set-aside.ts';
import { type McpSettings, takesAccounts } from './settings.ts';

/** Bytes of one response. */
const responseBytesMax = 8 * 1024 * 1024;
/** Characters of all tools of a server, as JSON. */
const toolsCharsMax = 8 * 1024 * 1024;
const toolsMax = 500;
const pagesMax = 100;
const instructionsCharsMax = 4_096;
/** Milliseconds of the longest timer. */
const timerMsMax = 2 ** 31 - 1;

/** Accounts with which a refresh asks in turn. */
const accountsMax = 5;

/** The name of the tool that reads resources. MCP tool names contain no colon, so it is unique. */
const readResource = 'read:resource';

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
  readonly #onToolsChanged: (sourceId: string) => void;
  /** By source: the organization whose account the last refresh used, in turn. */
  readonly #lastUsed = new Map<string, string>();

  constructor(
    allowed: AllowList,
    version: string,
    tokens: AccountTokens,
    onToolsChanged: (sourceId: string) => void,
  ) {
    this.#guarded = new GuardedFetch({
      allowed,
      schemes: ['https:', 'http:'],
      maxBytes: responseBytesMax,
    });
    const fetch: ConnectionParts['fetch'] = (url, init) => this.#guarded.fetch(url, init);
    this.#parts = { fetch, version, tokens, credentials: new ClientCredentials() };
    this.#commands = new Commands(version, onToolsChanged);
    this.#onToolsChanged = onToolsChanged;
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
        discover(connection, source, signal),
      );
    if (!takesAccounts(source.settings as unknown as McpSettings)) {
      const { about, ...view } = await discoverAs(null);
      return { views: [{ viewer: null, ...view }], asked: 'all', about };
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
      callTool(connection, { source, tool, input, run }),
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
      const hooks = { onToolsChanged: () => this.#onToolsChanged(source.id) };
      return await connect(this.#parts, source, { url, use, hooks }, signal);
    } catch (error) {
      throw await this.#faultOf({ ...request, signal }, error);
    }
  }

  async #faultOf({ source, use, signal }: Request, error: unknown): Promise<unknown> {
    const ofAccount = await accountFaultOf(this.#parts.tokens, source, use, error);
    return ofAccount ?? faultOf(source.name, error, signal);
  }
}

async function discover(
  { client }: Connection,
  { settings }: RemoteSource,
  signal: AbortSignal,
): Promise<Found> {
  const { timeout_ms: timeout } = settings as unknown as McpSettings;
  const offersTools = client.getServerCapabilities()?.tools !== undefined;
  const listed = offersTools ? await listTools(client, { signal, timeout }) : [];
  const tools: RemoteTool[] = [];
  const leftOut: LeftOutTool[] = [];
  for (const tool of listed) {
    const fault = jsonTextFault(JSON.stringify(tool));
    if (fault === null) tools.push(remoteToolOf(tool));
    else leftOut.push({ tool: tool.name, reason: `The description of ${tool.name} ${fault}` });
  }
  if (client.getServerCapabilities()?.resources) tools.push(resourceTool);
  return { tools, leftOut, about: aboutOf(client) };
}

/** `timeout` is the limit of each page. */
async function listTools(
  client: Client,
  options: { readonly signal: AbortSignal; readonly timeout: number },
): Promise<Tool[]> {
  const tools: Tool[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  let chars = 0;
  do {
    const params = cursor === undefined ? {} : { params: { cursor } };
    const page = putBack(await client.request({ method: 'tools/list', ...params }, options));
    if (tools.length + page.tools.length > toolsMax) {
      throw hostile(`offers more than ${toolsMax} tools`);
    }
    for (const tool of page.tools) tools.push(checkedTool(tool));
    cursor = page.nextCursor;
    chars += JSON.stringify(page.tools).length + (cursor?.length ?? 0);
    if (chars > toolsCharsMax) throw hostile(`describes its tools with more than 8 MiB`);
    if (cursor !== undefined && cursors.has(cursor)) throw hostile('repeats a page of its tools');
    if (cursor !== undefined) cursors.add(cursor);
    if (cursors.size >= pagesMax) throw hostile(`lists its tools on more than ${pagesMax} pages`);
  } while (cursor !== undefined);
  return tools;
}

/** Throws RemoteFault for what is no tool of the protocol. */
function checkedTool(tool: unknown): Tool {
  const { name, title, description, inputSchema } = objectOf(tool) ?? {};
  const isTextOrNone = (value: unknown) => value === undefined || typeof value === 'string';
  if (typeof name === 'string' && [title, description].every(isTextOrNone) && isObject(inputSchema))
    return tool as Tool;
  throw hostile('lists a tool without a name or an input schema');
}

const hostile = (what: string) => new RemoteFault(`The server ${what}; nothing of it was imported`);

function remoteToolOf(tool: Tool): RemoteTool {
  const annotations: Json = isObject(tool.annotations) ? tool.annotations : {};
  const isRead = annotations['readOnlyHint'] === true;
  return {
    tool: tool.name,
    title: tool.title ?? (typeof annotations['title'] === 'string' ? annotations['title'] : null),
    description: tool.description ?? '',
    input: tool.inputSchema,
    output: isObject(tool.outputSchema) ? tool.outputSchema : null,
    annotations,
    saysIdempotent: isRead || annotations['idempotentHint'] === true,
  };
}

const resourceTool: RemoteTool = {
  tool: readResource,
  title: 'Read resource',
  description: 'Reads a resource of the server by its URI.',
  input: {
    type: 'object',
    properties: { uri: { type: 'string', minLength: 1, maxLength: 2_048 } },
    required: ['uri'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: { contents: { type: 'array', items: { type: 'object' } } },
    required: ['contents'],
  },
  annotations: { readOnlyHint: true },
  saysIdempotent: true,
};

function aboutOf(client: Client): Json {
  const { name, version, title } = client.getServerVersion() ?? {};
  const text = (value: unknown) => (typeof value === 'string' ? value.slice(0, 200) : null);
  return {
    server: { name: text(name), version: text(version), title: text(title) },
    protocol: text(client.getNegotiatedProtocolVersion()),
    instructions: client.getInstructions()?.slice(0, instructionsCharsMax) ?? null,
  };
}

interface ToolCall {
  readonly source: RemoteSource;
  readonly tool: CalledTool;
  readonly input: unknown;
  readonly run: RemoteRun;
}

/** Calls a tool as one of the calls of the connection, which get the messages of the server meanwhile. */
async function callTool(connection: Connection, called: ToolCall): Promise<unknown> {
  const { source, tool, input, run } = called;
  const place = { service: source.name, tool: tool.name, input };
  const listening: CallOnConnection = {
    log: (message, level) => run.log(message, level),
    ask: (params) => {
      const answer = run.ask(questionOf('', params, place)) as Promise<ElicitResult>;
      // No question of a call that was given up is answered: the server has been sent its cancellation.
      return answer.catch((error) =>
        run.signal.aborted ? new Promise<never>(() => {}) : Promise.reject(error),
      );
    },
  };
  const end = connection.begin(listening);
  try {
    const result = putBack(await send(connection, called));
    return inputRequired(result) ? questionsOf(result, place) : outputIn(called, result);
  } catch (error) {
    const questions = questionsInFault(error, place);
    if (questions === undefined) throw error;
    return questions;
  } finally {
    end();
  }
}

async function send({ client }: Connection, { tool, input, run }: ToolCall): Promise<unknown> {
  const { name, input: inputSchema } = tool;
  const options = {
    signal: run.signal,
    // No timeout of the SDK: the run has its own limit, which is paused while a person is asked.
    timeout: timerMsMax,
    allowInputRequired: true,
    onprogress: ({ progress, total, message }: Progress) => {
      const fraction = total === undefined || total <= 0 ? 0 : progress / total;
      run.progress(fraction, message ?? (total === undefined ? String(progress) : undefined));
    },
  };
  const isModern = client.getProtocolEra() === 'modern';
  const more = {
    ...(isModern && { _meta: { 'io.modelcontextprotocol/logLevel': 'info' } }),
    ...(isModern && run.answered !== null && answersOf(run.answered)),
  };
  // A server of the 2025 revision needs the page opened and expects no answers in the repeated call.
  if (!isModern && run.answered !== null) requireOpened(run.answered);
  run.sending();
  if (name === readResource) {
    const { uri } = input as { uri: string };
    return client.request({ method: 'resources/read', params: { uri, ...more } }, options);
  }
  const toolDefinition = { name, inputSchema } as Tool;
  const params = { name, arguments: input as Json, ...more };
  return client.callTool(params, { ...options, toolDefinition });
}

function outputIn({ tool, run }: ToolCall, result: unknown): unknown {
  if (tool.name === readResource) return { contents: (result as { contents: unknown }).contents };
  return outputOf(tool, result as CallToolResult, (line) => run.log(line));
}
