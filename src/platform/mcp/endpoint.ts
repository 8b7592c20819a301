/**
 * The endpoint of the Model Context Protocol for Node's requests. This module loads the SDK, so it is loaded
 * at the first request (lazy-endpoint.ts).
 */
import { hkdfSync } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  createRequestStateCodec,
  type McpRequestContext,
} from '@modelcontextprotocol/server';
import type { AgentChanges } from '../../core/agents/agent-changes.ts';
import type { Agents } from '../../core/agents/agents.ts';
import type { Context } from '../../core/context/context.ts';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import { type CallSlices, ToolCalls } from './calls.ts';
import { ProseFolders } from './prose-folders.ts';
import { proseSkills } from './prose-skills.ts';
import type { CallState } from './questions.ts';
import { type Sender, senderOf } from './sender.ts';
import { RequestServer, type ServerParts } from './server.ts';
import { Subscriptions } from './subscriptions.ts';
import { Tasks } from './tasks.ts';
import { ToolList } from './tool-list.ts';

/** How long a person has to answer a question at their client. */
const answerS = 7 * 24 * 60 * 60;
const dayMs = 24 * 60 * 60 * 1000;

/** The slices that clients of the protocol reach. */
export interface McpSlices extends CallSlices {
  readonly skills: SkillRegistry;
  readonly agents: Agents;
  readonly agentChanges: AgentChanges;
}

/** The process that serves the protocol. */
export interface McpProcess {
  readonly version: string;
  /** Null in a process that runs no skills. */
  readonly executors: ExecutorPool | null;
  /** What the states of calls are signed with; the same in all processes. */
  readonly secret: string | Buffer;
  /** Aborts when the platform stops. */
  readonly stopping: AbortSignal;
}

type NodeHandler = ReturnType<typeof toNodeHandler>;

export class McpEndpoint {
  readonly #subscriptions: Subscriptions;
  readonly #plain: NodeHandler;
  /** A call may take long: its stream is kept alive, and the client sees at once that the call is under way. */
  readonly #calls: NodeHandler;

  constructor(context: Context, slices: McpSlices, process: McpProcess) {
    const { log } = context;
    const { skills, agentChanges } = slices;
    const parts = partsOf(context, slices, process);
    const onerror = (err: Error) => log.debug({ err }, 'a request to /mcp was refused');
    const create = (request: McpRequestContext) => new RequestServer(parts, request).create();
    this.#plain = toNodeHandler(createMcpHandler(create, { onerror }));
    this.#calls = toNodeHandler(createMcpHandler(create, { onerror, responseMode: 'sse' }));
    const subscriptions = new Subscriptions(create, onerror);
    this.#subscriptions = subscriptions;
    skills.onChange(({ organizations }) => subscriptions.skillsChanged(organizations));
    agentChanges.listen((organizationId) => subscriptions.agentsChanged(organizationId));
    // Other requests are answered until the server has drained.
    process.stopping.addEventListener('abort', () => subscriptions.close());
  }

  answer(request: IncomingMessage, response: ServerResponse, body: unknown, sender: Sender) {
    const { method } = (body ?? {}) as { method?: unknown };
    const { caller, metadataUrl: resourceMetadataUrl } = sender;
    const auth = {
      token: '',
      clientId: caller.keyId,
      scopes: [...caller.scopes],
      resourceMetadataUrl,
      extra: { sender },
    };
    const handle = this.#handlerOf(method, caller.organizationId);
    return handle(Object.assign(request, { auth }) as never, response, body);
  }

  #handlerOf(method: unknown, organizationId: string): NodeHandler {
    if (method === 'subscriptions/listen') return this.#subscriptions.handlerOf(organizationId);
    return method === 'tools/call' ? this.#calls : this.#plain;
  }
}

function partsOf(context: Context, slices: McpSlices, process: McpProcess): ServerParts {
  const { skills, agents } = slices;
  const keyFor = (use: string) =>
    Buffer.from(hkdfSync('sha256', process.secret, '', `skillwright mcp ${use}`, 32));
  const calls = new ToolCalls(context, slices);
  const keptMs = context.config.retentionDays * dayMs;
  return {
    list: new ToolList(skills, agents),
    calls,
    states: createRequestStateCodec<CallState>({
      key: keyFor('request state'),
      ttlSeconds: answerS,
      bind: ({ http }) => {
        const { organizationId, keyId } = senderOf(http?.authInfo).caller;
        return `${organizationId}\0${keyId}`;
      },
    }),
    tasks: new Tasks(calls, skills, keyFor('tasks'), keptMs),
    prose: proseSkills(context, skills, new ProseFolders(context, process.executors)),
    version: process.version,
    stopping: process.stopping,
  };
}
