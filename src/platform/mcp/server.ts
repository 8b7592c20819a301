/**
 * The server of one request of the Model Context Protocol, on its SDK: which methods there are, and the verb behind
 * each. The SDK speaks the protocol's revisions, and makes a server for each request, so it keeps no state.
 */
import {
  type CallToolRequest,
  type CallToolResult,
  type InputRequiredResult,
  type McpRequestContext,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { SkillsExtension } from '@modelcontextprotocol/server/ext/skills';
import { activeTaskSkill } from '../../core/agents/called-agents.ts';
import { type Caller, hasScopes } from '../../kernel/caller.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { objectOf } from '../../kernel/json.ts';
import type { Logger } from '../../kernel/log.ts';
import { agentOfTool, agentTool } from './agent-tools.ts';
import { abandon, begin, type CallOptions, type CallsDeps, follow } from './calls.ts';
import { neededScopes } from './needed-scopes.ts';
import { invalidParams, refusedCall } from './protocol-errors.ts';
import {
  type CallState,
  canAnswer,
  canAsk,
  decideAnswered,
  questionsAsked,
  type Refusals,
} from './questions.ts';
import { type EndedJob, errorOf, errorResult, resultOf } from './results.ts';
import { addTaskMethods, capabilitiesOf, declaresTasks, requireTasks } from './task-methods.ts';
import { createTask, type TasksDeps, tasksExtension } from './tasks.ts';
import { listTools, type ToolListDeps } from './tool-list.ts';
import { inputOf, mayCall, type SkillTool } from './tools.ts';

/** How long a client may keep a list of tools. It is notified when the list changes. */
const listTtlMs = 60_000;

/** A call that takes longer becomes a task, for clients that know tasks. */
const taskAfterMs = 2_000;

export interface McpServerDeps {
  readonly list: ToolListDeps;
  readonly calls: CallsDeps & { readonly states: RequestStateCodec<CallState> };
  readonly tasks: TasksDeps;
  /** The skills that clients read and follow themselves. */
  readonly prose: Pick<SkillsExtension, 'attach'>;
  readonly process: {
    readonly version: string;
    readonly log: Logger;
    /** Aborts when the platform stops: calls that wait are answered, and their jobs go on. */
    readonly stopping: AbortSignal;
  };
}

/** What the HTTP request says of its sender, as the SDK carries it. */
export interface Sender {
  readonly caller: Caller;
  readonly options: Pick<CallOptions, 'agentId' | 'userId' | 'idempotencyKey'>;
  /** Where a client reads which credentials the endpoint takes. */
  readonly metadataUrl: string;
  /** Whether lists have each version of a skill under its own name. */
  readonly hasAllVersions: boolean;
  /** Whether the request may be about skills to read; other requests are served without loading them. */
  readonly isProse: boolean;
}

/** The sender of a request, as set by the route. */
export function senderOf(authInfo: { extra?: Record<string, unknown> } | undefined): Sender {
  return authInfo?.extra?.['sender'] as Sender;
}

/** The SDK's validation is not used, because no tools are registered with it. */
const noValidator = {
  getValidator: () => () => ({ valid: true, data: undefined, errorMessage: undefined }) as never,
};

export function createServer(deps: McpServerDeps, { era, authInfo }: McpRequestContext): McpServer {
  const sender = senderOf(authInfo);
  const tools = () => deps.list.tools(sender.caller.organizationId);
  const mcp = new McpServer(
    { name: 'skillwright', title: 'Skillwright', version: deps.process.version },
    {
      capabilities: {},
      jsonSchemaValidator: noValidator,
      cacheHints: {
        'tools/list': { ttlMs: listTtlMs, cacheScope: 'private' },
        'prompts/list': { ttlMs: listTtlMs, cacheScope: 'public' },
      },
      requestState: { verify: deps.calls.states.verify },
      inputRequired: { legacyShim: false },
    },
  );
  const { server } = mcp;
  if (sender.isProse) deps.prose.attach(mcp);
  server.registerCapabilities({
    tools: { listChanged: true },
    prompts: {},
    logging: {},
    ...(era === 'modern' ? { extensions: { [tasksExtension]: {} } } : {}),
  });
  if (era === 'modern') addTaskMethods(server, deps.tasks, sender.caller);
  // Clients ask for prompts even of a server that has none.
  server.setRequestHandler('prompts/list', () => ({ prompts: [] }));
  server.setRequestHandler('tools/list', async ({ params }) => {
    const { hasAllVersions } = sender;
    const asked = { cursor: params?.cursor, hasAllVersions };
    const page = await listTools(deps.list, sender.caller, asked);
    if (page === undefined) throw invalidParams('Invalid cursor: begin again without one');
    return page as never;
  });
  server.setRequestHandler('tools/call', async (request, ctx) => {
    const result = await callTool({ ...deps, sender, isModern: era === 'modern' }, request, ctx);
    if (!('content' in result)) return result;
    const schema = tools().byName.get(request.params.name)?.listed.outputSchema;
    // In revisions before 2026-07-28 an output that is no object is wrapped.
    return server.projectCallToolResult(result as CallToolResult, schema);
  });
  // The SDK asks these two before it gives a call to its handler.
  mcp.toolInputSchemaJson = (name) => tools().byName.get(name)?.listed.inputSchema;
  mcp.resolveScopeChallenge = ({ request }) => {
    const needed = neededScopes(deps.list, sender.caller.organizationId, request);
    if (hasScopes(sender.caller.scopes, needed)) return undefined;
    const [first = '', ...others] = needed;
    return { scopes: [first, ...others] };
  };
  return mcp;
}

interface Calling extends McpServerDeps {
  readonly sender: Sender;
  readonly isModern: boolean;
}

async function callTool(
  calling: Calling,
  { params }: CallToolRequest,
  ctx: ServerContext,
): Promise<CallToolResult | InputRequiredResult> {
  const { caller } = calling.sender;
  try {
    const { tool, agentId } = await toolNamed(calling, params.name);
    if (tool.skill.mcp?.task === 'required') requireTasks(ctx);
    const state = ctx.mcpReq.requestState<CallState>();
    if (state === undefined) {
      const options = { ...callOptions(calling, ctx), ...(agentId && { agentId }) };
      const job = await begin(
        calling.calls,
        caller,
        tool,
        inputOf(tool, params.arguments),
        options,
      );
      return await followCall(calling, tool, job.id, ctx);
    }
    await requireJobOf(calling, tool, state.job);
    const answers = ctx.mcpReq.inputResponses ?? {};
    const { isDismissed, refusals } = await decideAnswered(calling.calls, caller, state, answers);
    if (!isDismissed) return await followCall(calling, tool, state.job, ctx, refusals);
    return errorResult(
      `The question was closed without an answer. The job ${state.job} waits for a decision.`,
    );
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    return refusedCall(error);
  }
}

/** The tool of a name, and the agent that it is, if it is one; throws for an unknown one. */
async function toolNamed(
  { list, sender: { caller } }: Calling,
  name: string,
): Promise<{ tool: SkillTool; agentId?: string }> {
  const known = list.tools(caller.organizationId).byName.get(name);
  if (known !== undefined) {
    if (mayCall(caller, known)) return { tool: known };
    throw invalidParams(`This key lacks a scope of ${name}`);
  }
  const agentId = agentOfTool(name);
  const skill = activeTaskSkill(list.skills, caller.organizationId);
  if (agentId === undefined || skill === undefined) throw invalidParams(`Unknown tool: ${name}`);
  // Checked before the lookup, so that a key without the scope cannot find out which agents exist.
  if (!hasScopes(caller.scopes, skill.requiredScopes)) {
    throw invalidParams('This key lacks a scope of the tools that are agents');
  }
  try {
    const agent = await list.agents.find(caller.organizationId, agentId);
    return { tool: agentTool(agent, skill), agentId };
  } catch (error) {
    const isUnknown = error instanceof PlatformError && error.code === 'not_found';
    throw isUnknown ? invalidParams(`Unknown tool: ${name}`) : error;
  }
}

/** What the HTTP request and `_meta` ask for; `_meta` comes first. */
function callOptions({ sender }: Calling, { mcpReq }: ServerContext): CallOptions {
  const textIn = (name: string) => {
    const value = (mcpReq._meta as Record<string, unknown> | undefined)?.[`skillwright/${name}`];
    if (value === undefined || (typeof value === 'string' && value !== '' && value.length <= 255)) {
      return value as string | undefined;
    }
    throw invalidParams(`_meta skillwright/${name} must be a text of 1 to 255 characters`);
  };
  return {
    agentId: textIn('agent_id') ?? sender.options.agentId,
    userId: textIn('user_id') ?? sender.options.userId,
    conversationId: textIn('conversation_id'),
    idempotencyKey: textIn('idempotency_key') ?? sender.options.idempotencyKey,
  };
}

/** A state is that of a call of this tool. */
async function requireJobOf(
  { calls, sender }: Calling,
  tool: SkillTool,
  id: string,
): Promise<void> {
  const job = await calls.jobs.find(sender.caller.organizationId, id);
  const { category, name } = tool.skill;
  if (job.skill_category !== category || job.skill_name !== name) {
    throw invalidParams('The requestState is that of another tool');
  }
}

/** Waits for a job as long as its client does. In the revision 2026-07-28, a client that goes cancels it. */
async function followCall(
  calling: Calling,
  tool: SkillTool,
  jobId: string,
  ctx: ServerContext,
  refusals?: Refusals,
): Promise<CallToolResult | InputRequiredResult> {
  const { calls, sender, isModern } = calling;
  const { caller } = sender;
  const gone = ctx.mcpReq.signal;
  const capabilities = capabilitiesOf(ctx);
  const task = isModern && declaresTasks(ctx) ? tool.skill.mcp?.task : 'never';
  const asTask = () =>
    createTask(calling.tasks, caller, jobId) as Promise<object> as Promise<CallToolResult>;
  if (task === 'always' || task === 'required') return await asTask();
  const soon = task === 'never' ? [] : [AbortSignal.timeout(taskAfterMs)];
  const followed = await follow(calls, caller.organizationId, jobId, {
    signal: AbortSignal.any([gone, calling.process.stopping, ...soon]),
    onProgress: progressTo(ctx),
    onLog: logTo(ctx, isModern),
    asks: isModern && canAnswer(caller, capabilities) ? canAsk(capabilities) : undefined,
  });
  if (followed?.kind === 'ended') return endOf(tool, followed.job);
  if (followed?.kind === 'asks') {
    const { state, result } = questionsAsked(jobId, followed.questions, refusals);
    return result(await calls.states.mint(state, ctx));
  }
  if (gone.aborted && isModern) await abandon(calls, caller.organizationId, jobId);
  else if (task !== 'never') return await asTask();
  throw new ProtocolError(
    ProtocolErrorCode.InternalError,
    'The platform is stopping; the job goes on',
    { error: 'service_unavailable', job_id: jobId },
  );
}

/** The result of a job that has ended; throws where the platform has failed. */
function endOf({ skill }: SkillTool, job: EndedJob): CallToolResult {
  const error = errorOf(job);
  if (error !== undefined) throw new ProtocolError(error.code, error.message, error.data);
  return resultOf(skill, job);
}

/** Sends the log of a run to a client: one of this revision says with each call whether it reads it. */
function logTo({ mcpReq }: ServerContext, isModern: boolean) {
  const level = objectOf(mcpReq.envelope)?.['io.modelcontextprotocol/logLevel'];
  if (isModern && level === undefined) return undefined;
  return (line: Readonly<Record<string, unknown>>): void => {
    mcpReq.log('info', line).catch(() => {});
  };
}

/** Sends progress to a client that asked for it. It only ever increases, as the protocol wants. */
function progressTo({ mcpReq }: ServerContext) {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let last = -1;
  return ({ fraction, note }: { fraction: number; note: string | null }): void => {
    if (fraction <= last) return;
    last = fraction;
    const params = { progressToken, progress: fraction, total: 1 };
    const message = note === null ? {} : { message: note };
    // A client that has gone gets none.
    mcpReq
      .notify({ method: 'notifications/progress', params: { ...params, ...message } })
      .catch(() => {});
  };
}
