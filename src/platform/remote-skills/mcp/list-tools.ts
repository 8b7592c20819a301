/**
 * Lists the tools of a server, as the platform imports them. Promises limits on everything that the server lists: pages,
 * tools and characters.
 */
import type { Client, Tool } from '@modelcontextprotocol/client';
import { isObject, type Json, objectOf } from '../../../kernel/json.ts';
import { jsonTextFault } from '../../../kernel/text.ts';
import {
  type LeftOutTool,
  RemoteFault,
  type RemoteSource,
  type RemoteTool,
} from '../remote-kind.ts';
import { readResource } from './call-tool.ts';
import type { Found } from './discover-with-accounts.ts';
import { putBack } from './set-aside.ts';
import type { McpSettings } from './settings.ts';

/** Characters of all tools of a server, as JSON. */
const toolsCharsMax = 8 * 1024 * 1024;
const toolsMax = 500;
const pagesMax = 100;
const instructionsCharsMax = 4_096;

/** The tools of a server and what it says of itself. Throws RemoteFault for a server that lists too much, or no tools. */
export async function listTools(
  client: Client,
  { settings }: RemoteSource,
  signal: AbortSignal,
): Promise<Found> {
  const { timeout_ms: timeout } = settings as unknown as McpSettings;
  const offersTools = client.getServerCapabilities()?.tools !== undefined;
  const listed = offersTools ? await listPages(client, { signal, timeout }) : [];
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
async function listPages(
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
