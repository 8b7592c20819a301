/**
 * The endpoint of the Model Context Protocol for Node's requests. This module loads the SDK, so it is loaded
 * at the first request (mcp.routes.ts).
 */
import { hkdfSync } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  createRequestStateCodec,
  InMemoryServerEventBus,
} from '@modelcontextprotocol/server';
import type { SkillRegistry } from '../skills/registry.ts';
import { createProseSkills, type ProseSkillsDeps } from './prose-skills.ts';
import type { CallState } from './questions.ts';
import { createServer, type McpServerDeps, type Sender, senderOf } from './server.ts';
import { createTools } from './tool-list.ts';

/** How long a person has to answer a question at their client. */
const answerS = 7 * 24 * 60 * 60;
/** Subscriptions in one process; each is one of the event streams of its key. */
const subscriptionsMax = 10_000;

export interface EndpointDeps extends Omit<McpServerDeps, 'states' | 'list' | 'tasks' | 'prose'> {
  readonly list: Omit<McpServerDeps['list'], 'tools'> & { readonly skills: SkillRegistry };
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
  const { skills } = given.list;
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
  const { calls: jobCalls, keptMs } = given;
  const deps: McpServerDeps = {
    ...given,
    states,
    list: { ...given.list, tools: createTools(skills) },
    prose: createProseSkills({ ...given.prose, skills, log: given.about.log }),
    tasks: { calls: jobCalls, skills, taskKey: keyFor('tasks'), keptMs },
  };
  const { log } = deps.about;
  const options = {
    bus: new InMemoryServerEventBus(),
    maxSubscriptions: subscriptionsMax,
    onerror: (err: Error) => log.debug({ err }, 'a request to /mcp was refused'),
  };
  const create = (context: Parameters<typeof createServer>[1]) => createServer(deps, context);
  const plain = createMcpHandler(create, options);
  // A call may take long: its stream is kept alive, and the client sees at once that the call is under way.
  const calls = createMcpHandler(create, { ...options, responseMode: 'sse' });
  const subscriptions = createMcpHandler(create, options);
  skills.onChange(() => {
    subscriptions.notify.toolsChanged();
    subscriptions.notify.resourcesChanged();
  });
  // Other requests are answered until the server has drained.
  deps.stopping.addEventListener('abort', () => void subscriptions.close());
  const handlers = {
    plain: toNodeHandler(plain),
    'tools/call': toNodeHandler(calls),
    'subscriptions/listen': toNodeHandler(subscriptions),
  };
  return (request, response, body, sender) => {
    const method = (body as { method?: unknown } | null)?.method;
    const kind = method === 'tools/call' || method === 'subscriptions/listen' ? method : 'plain';
    const { caller, metadataUrl: resourceMetadataUrl } = sender;
    const { keyId: clientId, scopes } = caller;
    const auth = {
      token: '',
      clientId,
      scopes: [...scopes],
      resourceMetadataUrl,
      extra: { sender },
    };
    return handlers[kind](Object.assign(request, { auth }) as never, response, body);
  };
}
