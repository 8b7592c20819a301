/**
 * The server of one request of the Model Context Protocol, on its SDK: which methods there are, and the verb behind
 * each. The SDK speaks the protocol's revisions, and makes a server for each request, so it keeps no state.
 */

import {
  type CallToolRequest,
  type CallToolResult,
  type InputRequiredResult,
  inputRequired,
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
import type { Json } from '../../kernel/json.ts';
import { agentOfTool, agentTool } from './agent-tools.ts';
import type { CallOptions, ToolCalls } from './calls.ts';
import { ClientNotices } from './client-notices.ts';
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
import { type Sender, senderOf } from './sender.ts';
import { addTaskMethods, capabilitiesOf, declaresTasks, requireTasks } from './task-methods.ts';
import { type Tasks, tasksExtension } from './tasks.ts';
import type { ToolList } from './tool-list.ts';
import { inputOf, mayCall, type SkillTool } from './tools.ts';

/** How long a client may keep a list of tools. It is notified when the list changes. */
const listTtlMs = 60_000;

/** A call that takes longer becomes a task, for clients that know tasks. */
const taskAfterMs = 2_000;

/** What the servers of all requests share. */
export interface ServerParts {
  readonly list: ToolList;
  readonly calls: ToolCalls;
  /** Signs the states that travel with clients. */
  readonly states: RequestStateCodec<CallState>;
  readonly tasks: Tasks;
  /** The skills that clients read and follow themselves. */
  readonly prose: SkillsExtension;
  readonly version: string;
  /** Aborts when the platform stops: calls that wait are answered, and their jobs go on. */
  readonly stopping: AbortSignal;
}

/** The SDK's validation is not used, because no tools are registered with it. */
const noValidator = {
  getValidator: () => () => ({ valid: true, data: undefined, errorMessage: undefined }) as never,
};

/** One request: its methods, made for its sender. */
export class RequestServer {
  readonly #parts: ServerParts;
  readonly #sender: Sender;
  readonly #isModern: boolean;

  constructor(parts: ServerParts, { era, authInfo }: McpRequestContext) {
    this.#parts = parts;
    this.#sender = senderOf(authInfo);
    this.#isModern = era === 'modern';
  }

  /** The server of the SDK, with the methods of the platform. */
  create(): McpServer {
    const { list, tasks, prose, states, version } = this.#parts;
    const { caller, isProse, hasAllVersions } = this.#sender;
    const mcp = new McpServer(
      { name: 'skillwright', title: 'Skillwright', version },
      {
        capabilities: {},
        jsonSchemaValidator: noValidator,
        cacheHints: {
          'tools/list': { ttlMs: listTtlMs, cacheScope: 'private' },
          'prompts/list': { ttlMs: listTtlMs, cacheScope: 'public' },
        },
        requestState: { verify: states.verify },
        inputRequired: { legacyShim: false },
      },
    );
    const { server } = mcp;
    if (isProse) prose.attach(mcp);
    server.registerCapabilities({
      // Clients of earlier revisions have no stream on which they could be notified.
      tools: this.#isModern ? { listChanged: true } : {},
      prompts: {},
      logging: {},
      ...(this.#isModern ? { extensions: { [tasksExtension]: {} } } : {}),
    });
    if (this.#isModern) addTaskMethods(server, tasks, caller);
    // Clients request prompts even of a server that has none.
    server.setRequestHandler('prompts/list', () => ({ prompts: [] }));
    server.setRequestHandler('tools/list', async ({ params }) => {
      const page = await list.page(caller, { cursor: params?.cursor, hasAllVersions });
      if (page === undefined) throw invalidParams('Invalid cursor: begin again without one');
      return page as never;
    });
    server.setRequestHandler('tools/call', async (request, ctx) => {
      const result = await this.#callTool(request, ctx);
      if (!('content' in result)) return result;
      const schema = this.#tool(request.params.name)?.listed.outputSchema;
      // In revisions before 2026-07-28 an output that is no object is wrapped.
      return server.projectCallToolResult(result as CallToolResult, schema);
    });
    // The SDK calls these two before it gives a call to its handler.
    mcp.toolInputSchemaJson = (name) => this.#tool(name)?.listed.inputSchema;
    mcp.resolveScopeChallenge = ({ request }) => {
      const needed = neededScopes(list, caller.organizationId, request);
      if (hasScopes(caller.scopes, needed)) return undefined;
      const [first = '', ...others] = needed;
      return { scopes: [first, ...others] };
    };
    return mcp;
  }

  #tool(name: string): SkillTool | undefined {
    return this.#parts.list.toolsOf(this.#sender.caller.organizationId).byName.get(name);
  }

  async #callTool(
    { params }: CallToolRequest,
    ctx: ServerContext,
  ): Promise<CallToolResult | InputRequiredResult> {
    const { calls } = this.#parts;
    const { caller } = this.#sender;
    try {
      const { tool, agentId } = await this.#requireTool(params.name);
      if (tool.skill.mcp?.task === 'required') requireTasks(ctx);
      const state = ctx.mcpReq.requestState<CallState>();
      if (state === undefined) {
        const options = { ...this.#optionsOf(ctx), ...(agentId && { agentId }) };
        const job = await calls.begin(caller, tool, inputOf(tool, params.arguments), options);
        return await this.#follow(tool, job.id, ctx);
      }
      await this.#requireJobOf(tool, state.job);
      const answers = ctx.mcpReq.inputResponses ?? {};
      const decided = await decideAnswered(calls.approvals, caller, state, answers);
      if (!decided.isDismissed) return await this.#follow(tool, state.job, ctx, decided.refusals);
      return errorResult(
        `The question was closed without an answer. The job ${state.job} waits for a decision.`,
      );
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      return refusedCall(error);
    }
  }

  /** The tool of a name, and the agent that it is, if it is one; throws for an unknown one. */
  async #requireTool(name: string): Promise<{ tool: SkillTool; agentId?: string }> {
    const { skills, agents } = this.#parts.list;
    const { caller } = this.#sender;
    const known = this.#tool(name);
    if (known !== undefined) {
      if (mayCall(caller, known)) return { tool: known };
      throw invalidParams(`This key lacks a scope of ${name}`);
    }
    const agentId = agentOfTool(name);
    const skill = activeTaskSkill(skills, caller.organizationId);
    if (agentId === undefined || skill === undefined) throw invalidParams(`Unknown tool: ${name}`);
    // Checked before the lookup, so that a key without the scope cannot find out which agents exist.
    if (!hasScopes(caller.scopes, skill.requiredScopes)) {
      throw invalidParams('This key lacks a scope of the tools that are agents');
    }
    try {
      const agent = await agents.find(caller.organizationId, agentId);
      return { tool: agentTool(agent, skill), agentId };
    } catch (error) {
      const isUnknown = error instanceof PlatformError && error.code === 'not_found';
      throw isUnknown ? invalidParams(`Unknown tool: ${name}`) : error;
    }
  }

  /** The options in `_meta`, else those of the HTTP request. */
  #optionsOf({ mcpReq }: ServerContext): CallOptions {
    const { options } = this.#sender;
    const textIn = (name: string) => {
      const value = (mcpReq._meta as Record<string, unknown> | undefined)?.[`skillwright/${name}`];
      const isText = typeof value === 'string' && value !== '' && value.length <= 255;
      if (value === undefined || isText) return value;
      throw invalidParams(`_meta skillwright/${name} must be a text of 1 to 255 characters`);
    };
    return {
      agentId: textIn('agent_id') ?? options.agentId,
      userId: textIn('user_id') ?? options.userId,
      conversationId: textIn('conversation_id'),
      idempotencyKey: textIn('idempotency_key') ?? options.idempotencyKey,
    };
  }

  /** A state is that of a call of this tool. */
  async #requireJobOf({ skill }: SkillTool, id: string): Promise<void> {
    const job = await this.#parts.calls.jobs.find(this.#sender.caller.organizationId, id);
    if (job.skill_category !== skill.category || job.skill_name !== skill.name) {
      throw invalidParams('The requestState is that of another tool');
    }
  }

  /** Waits for a job as long as its client does. In the revision 2026-07-28, a client that goes cancels it. */
  async #follow(
    tool: SkillTool,
    jobId: string,
    ctx: ServerContext,
    refusals?: Refusals,
  ): Promise<CallToolResult | InputRequiredResult> {
    const { calls, states, stopping, tasks } = this.#parts;
    const { caller } = this.#sender;
    const isModern = this.#isModern;
    const gone = ctx.mcpReq.signal;
    const capabilities = capabilitiesOf(ctx);
    const task = isModern && declaresTasks(ctx) ? tool.skill.mcp?.task : 'never';
    const asTask = () => tasks.create(caller, jobId) as Promise<object> as Promise<CallToolResult>;
    if (task === 'always' || task === 'required') return await asTask();
    const soon = task === 'never' ? [] : [AbortSignal.timeout(taskAfterMs)];
    const followed = await calls.follow(caller.organizationId, jobId, {
      signal: AbortSignal.any([gone, stopping, ...soon]),
      notices: new ClientNotices(ctx, isModern),
      asks: isModern && canAnswer(caller, capabilities) ? canAsk(capabilities) : undefined,
    });
    if (followed?.kind === 'ended') {
      return await this.#endOf(caller, tool, followed.job);
    }
    if (followed?.kind === 'asks') {
      const { state, inputRequests } = questionsAsked(jobId, followed.questions, refusals);
      return inputRequired({ inputRequests, requestState: await states.mint(state, ctx) });
    }
    if (gone.aborted && isModern) await calls.abandon(caller.organizationId, jobId);
    else if (task !== 'never') return await asTask();
    throw new ProtocolError(
      ProtocolErrorCode.InternalError,
      'The platform is stopping; the job goes on',
      { error: 'service_unavailable', job_id: jobId },
    );
  }

  /** The result of a job that has ended; throws where the platform has failed. */
  async #endOf(caller: Caller, { skill }: SkillTool, job: EndedJob) {
    const error = errorOf(job);
    if (error !== undefined) throw new ProtocolError(error.code, error.message, error.data);
    return resultOf(skill, job, await this.#parts.calls.files.blocksOf(caller, job));
  }
}

/** The scopes without which a request is refused, whatever it names; known before it is parsed further. */
function neededScopes(
  list: ToolList,
  organizationId: string,
  { method, params }: { readonly method: string; readonly params?: Json | undefined },
): readonly string[] {
  if (method === 'tasks/update') return ['approvals'];
  if (method !== 'tools/call') return [];
  const name = String(params?.['name']);
  const known = list.toolsOf(organizationId).byName.get(name)?.skill;
  const ofAgent =
    agentOfTool(name) === undefined ? undefined : activeTaskSkill(list.skills, organizationId);
  const skill = known ?? ofAgent;
  return skill?.requiredScopes ?? [];
}
