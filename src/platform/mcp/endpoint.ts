/**
 * The endpoint of the Model Context Protocol for Node's requests. This module loads the SDK, so it is loaded
 * at the first request (mcp.routes.ts).
 */
import { hkdfSync } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, createRequestStateCodec } from '@modelcontextprotocol/server';
import type { AgentChanges } from '../../core/agents/agent-changes.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import type { CallsDeps } from './calls.ts';
import { createProseSkills, type ProseSkillsDeps } from './prose-skills.ts';
import type { CallState } from './questions.ts';
import { createServer, type McpServerDeps, type Sender, senderOf } from './server.ts';
import { createSubscriptions } from './subscriptions.ts';
import { createTools } from './tool-list.ts';

/** How long a person has to answer a question at their client. */
const answerS = 7 * 24 * 60 * 60;

export interface EndpointDeps extends Pick<McpServerDeps, 'process'> {
  readonly calls: CallsDeps;
  readonly list: Omit<McpServerDeps['list'], 'tools'> & {
    readonly skills: SkillRegistry;
    readonly agentChanges: AgentChanges;
  };
  /** What the states of calls are signed with; the same in all processes. */
  readonly secret: string | Buffer;
  /** How long an ended job is kept. */
  readonly keptMs: number;
  readonly prose: Omit<ProseSkillsDeps, 'skills' | 'log'>;
}

export type Endpoint = (
  request: IncomingMessage,
  response: ServerResponse,
  body: unknown,
  sender: Sender,
) => Promise<void>;

export function createEndpoint(given: EndpointDeps): Endpoint {
  const { skills, agentChanges } = given.list;
  const keyFor = (use: string) =>
    Buffer.from(hkdfSync('sha256', given.secret, '', `skillwright mcp ${use}`, 32));
  const states = createRequestStateCodec<CallState>({
    key: keyFor('request state'),
    ttlSeconds: answerS,
    bind: ({ http }) => {
      const { organizationId, keyId } = senderOf(http?.authInfo).caller;
      return `${organizationId}\0${keyId}`;
    },
  });
  const deps: McpServerDeps = {
    process: given.process,
    calls: { ...given.calls, states },
    list: { ...given.list, tools: createTools(skills) },
    prose: createProseSkills({ ...given.prose, skills, log: given.process.log }),
    tasks: { calls: given.calls, skills, taskKey: keyFor('tasks'), keptMs: given.keptMs },
  };
  const { log } = deps.process;
  const options = {
    onerror: (err: Error) => log.debug({ err }, 'a request to /mcp was refused'),
  };
  const create = (context: Parameters<typeof createServer>[1]) => createServer(deps, context);
  const plain = createMcpHandler(create, options);
  // A call may take long: its stream is kept alive, and the client sees at once that the call is under way.
  const calls = createMcpHandler(create, { ...options, responseMode: 'sse' });
  const subscriptions = createSubscriptions(create, options.onerror);
  skills.onChange(({ organizations }) => subscriptions.skillsChanged(organizations));
  agentChanges.listen((organizationId) => subscriptions.agentsChanged(organizationId));
  // Other requests are answered until the server has drained.
  deps.process.stopping.addEventListener('abort', () => subscriptions.close());
  const handlers = { plain: toNodeHandler(plain), 'tools/call': toNodeHandler(calls) };
  const handlerOf = (method: unknown, organizationId: string) => {
    if (method === 'subscriptions/listen') return subscriptions.handlerOf(organizationId);
    return handlers[method === 'tools/call' ? method : 'plain'];
  };
  return (request, response, body, sender) => {
    const { method } = (body ?? {}) as { method?: unknown };
    const { caller, metadataUrl: resourceMetadataUrl } = sender;
    const { keyId: clientId, scopes } = caller;
    const auth = {
      token: '',
      clientId,
      scopes: [...scopes],
      resourceMetadataUrl,
      extra: { sender },
    };
    const handle = handlerOf(method, caller.organizationId);
    return handle(Object.assign(request, { auth }) as never, response, body);
  };
}
