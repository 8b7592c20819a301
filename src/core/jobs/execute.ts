/**
 * Execute: checks a request to run a skill and hands it to accept. The checks have the order of
 * docs/decisions/order-of-checks.md: skill and agent (404), scope (403), input (400), then state (422).
 */
import { createHash } from 'node:crypto';
import type { Handle } from '../../adapters/database/database.ts';
import type { JobStatus } from '../../adapters/database/tables.ts';
import { type Caller, hasScopes, requireScopes } from '../../kernel/caller.ts';
import { type Issue, invalid, notFound, PlatformError } from '../../kernel/errors.ts';
import { isId } from '../../kernel/ids.ts';
import { firstPriority } from '../../kernel/priority.ts';
import { canonicalJson } from '../../kernel/text.ts';
import type { AgentFields } from '../agents/agent-rows.ts';
import { type AgentState, type Agents, defaultAgentId } from '../agents/agents.ts';
import { taskSkill } from '../agents/called-agents.ts';
import type { Config } from '../config/config.ts';
import type { Context } from '../context/context.ts';
import type { Conversations } from '../conversations/conversations.ts';
import type { ExecutorPool } from '../executors/pool.ts';
import type { Files } from '../files/files.ts';
import { filesOfInput } from '../files/references.ts';
import type { Skill, SkillRegistry } from '../skills/registry.ts';
import type { Acceptance, AcceptedJob, Acceptor, WorkRequest } from './accept.ts';
import { findByIdempotencyKey } from './idempotency.store.ts';
import { type IdempotencyKey, idempotencyMs } from './idempotency.ts';
import { waitingBytesMax, waitingMax } from './in-conversation/conversation-gates.ts';
import { jobKeyText, timingWith } from './job-keys/job-keys.ts';
import { refuseTiming, type TimingNames, timingText } from './timing.ts';
import { timingNames } from './timing-headers.ts';

/** A skill and an agent that a caller may use. */
export interface Target {
  readonly skill: Skill;
  readonly agentId: string;
  /** The conversation to continue. */
  readonly conversationId?: string | undefined;
  readonly isPaused: boolean;
  /** That of jobs whose requests give none: its place in `priorities`. */
  readonly priority: number;
}

/** The other parts of a request to run a skill; the first are recorded with its job. */
export interface ExecutionOptions
  extends Pick<
    WorkRequest,
    | 'userId'
    | 'userName'
    | 'isForUser'
    | 'triggerType'
    | 'priority'
    | 'timing'
    | 'concurrencyKey'
    | 'jobKey'
    | 'conversationMode'
  > {
  /** The field of the request's body that the input is; by default the input is the body. */
  readonly inputField?: string;
  /** Fields of the agent that the job has instead of the saved ones. */
  readonly overrides?: AgentFields;
  /** Makes repeats of the request one job. */
  readonly idempotency?:
    | {
        /** The owner of the key: the id of an API key or of a trigger. */
        readonly owner: string;
        readonly key: string;
        /** Equal for equal requests; by default of the skill, the agent, the input, the conversation and the options. */
        readonly fingerprint?: string;
      }
    | undefined;
}

export interface ExecutionParts {
  readonly skills: SkillRegistry;
  readonly agents: Agents;
  readonly conversations: Conversations;
  readonly acceptor: Acceptor;
  readonly files: Files;
  /** Starts an executor if there is none, while a request is read, checked and recorded. */
  readonly pool?: Pick<ExecutorPool, 'warm'> | null | undefined;
}

export class Execution {
  readonly #context: Context;
  readonly #parts: ExecutionParts;

  constructor(context: Context, parts: ExecutionParts) {
    this.#context = context;
    this.#parts = parts;
  }

  /**
   * Finds the target of a request, or refuses with 404 or 403; `readIds` is called once the skill is found.
   * A promise only when the database is read.
   */
  findTarget(
    caller: Caller,
    path: { category: string; version: string; skillName: string },
    readIds: () => { agentId?: string | undefined; conversationId?: string | undefined },
  ): Target | Promise<Target> {
    const { category, version, skillName } = path;
    const skill = this.#parts.skills.active(caller.organizationId, category, version, skillName);
    const { agentId = defaultAgentId, conversationId } = readIds();
    const withState = ({ status, priority: given }: AgentState): Target => {
      requireScopes(caller.scopes, skill.requiredScopes);
      if (skill.remoteSourceId === null) this.#parts.pool?.warm();
      const [isPaused, priority] = [status === 'paused', firstPriority(given)];
      return { skill, agentId, conversationId, isPaused, priority };
    };
    const state = this.#parts.agents.stateOf(caller.organizationId, agentId);
    if (conversationId === undefined) {
      return state instanceof Promise ? state.then(withState) : withState(state);
    }
    return findConversation(
      this.#context,
      this.#parts,
      caller,
      agentId,
      conversationId,
      state,
    ).then(withState);
  }

  /** Finds the target of a task for an agent. */
  async findTaskTarget(
    caller: Caller,
    agentId: string,
    conversationId: string | undefined,
  ): Promise<Target> {
    const [category, version, skillName] = taskSkill;
    const path = { category, version, skillName };
    return this.findTarget(caller, path, () => ({ agentId, conversationId }));
  }

  /**
   * Finds the target of a trial of an agent. A trial changes the agent for one run, so it needs the scopes of a change:
   * throws `403` for a caller that lacks them.
   */
  async findTrialTarget(
    caller: Caller,
    agentId: string,
    conversationId: string | undefined,
  ): Promise<Target> {
    const target = await this.findTaskTarget(caller, agentId, conversationId);
    await this.#parts.agents.requireWritable(caller, agentId);
    return target;
  }

  /** Accepts a run of the target with this input, or returns the job of an earlier equal request. */
  async execute(
    caller: Caller,
    target: Target,
    input: unknown,
    options: ExecutionOptions,
  ): Promise<Executed> {
    const work = await this.#buildWork(caller, target, input, options, timingNames);
    try {
      await this.#refuseAtThisMoment(work, target, input, options, timingNames);
    } catch (refusal) {
      // A repeat of a request accepted before the pause, or before its x-run-at, still gets the earlier job.
      const { idempotency } = work;
      const { database, clock } = this.#context;
      const earlier = idempotency && (await replayOf(database.read, clock.now(), idempotency));
      if (!earlier) throw refusal;
      return executedOf(earlier);
    }
    return executedOf(await this.#parts.acceptor.accept(work), target.conversationId);
  }

  /** The job that an earlier request with this key and fingerprint has made; `execute` checks again in its transaction. */
  async findReplay(key: IdempotencyKey): Promise<AcceptedJob | undefined> {
    const { database, clock } = this.#context;
    const earlier = await replayOf(database.read, clock.now(), key);
    return earlier?.kind === 'replayed' ? earlier.job : undefined;
  }

  /**
   * The work of a request, for the caller to accept together with others; throws as `execute`. `names` are the fields of
   * its times.
   */
  async workOf(
    caller: Caller,
    target: Target,
    input: unknown,
    options: ExecutionOptions,
    names: TimingNames,
  ): Promise<WorkRequest> {
    const work = await this.#buildWork(caller, target, input, options, names);
    await this.#refuseAtThisMoment(work, target, input, options, names);
    return work;
  }

  /** Throws for what depends on the moment of the request: files (`400`), times that have passed, a paused agent (`422`). */
  async #refuseAtThisMoment(
    work: WorkRequest,
    target: Target,
    input: unknown,
    { inputField }: ExecutionOptions,
    names: TimingNames,
  ): Promise<void> {
    const named = filesOfInput(input, target.skill.taskField);
    if (named.length > 0) await requireFiles(this.#parts.files, work, named, inputField);
    refusePassedOrPaused(work, target, this.#context, names);
  }

  async #buildWork(
    caller: Caller,
    { skill, agentId, conversationId, priority }: Target,
    input: unknown,
    options: ExecutionOptions,
    names: TimingNames,
  ): Promise<WorkRequest> {
    const { inputField, overrides, userId, isForUser = false, triggerType, jobKey } = options;
    const timing = timingWith(jobKey, options.timing, names.runAt);
    requireFileScope(this.#context.config, caller, skill, input);
    refuseInvalid(skill, input, inputField);
    if (overrides) {
      await this.#parts.agents.requireOverridable(caller, agentId, overrides);
    }
    const agentOverrides = overrides && JSON.stringify(overrides);
    if (conversationId !== undefined && !skill.continuesConversations) {
      throw invalid('x-conversation-id', `is not for ${skill.name}, which begins its own`);
    }
    if (conversationId !== undefined && jobKey !== undefined) {
      throw invalid('x-conversation-id', 'must not be sent together with x-job-key');
    }
    const idempotency = options.idempotency && {
      fingerprint: fingerprintOf(
        skill,
        agentId,
        input,
        `${conversationId ?? ''}${agentOverrides ?? ''}${optionsText(options)}`,
      ),
      ...options.idempotency,
    };
    // Field by field: copying objects costs a microsecond for each request.
    return {
      organizationId: caller.organizationId,
      apiKeyId: caller.keyId,
      agentId,
      userId,
      userName: options.userName,
      isForUser,
      triggerType,
      skill,
      maxAttempts: skill.maxAttempts,
      priority: options.priority ?? priority,
      input: JSON.stringify(input),
      agentOverrides,
      retryOf: null,
      conversationId,
      conversationMode: options.conversationMode,
      idempotency,
      jobKey,
      timing,
      concurrencyKey: options.concurrencyKey,
    };
  }
}

/**
 * The options as part of the fingerprint of a request. Those that are not given are no part of it: a repeat of a request
 * without them has the fingerprint that versions gave it which did not know them. One with a user, whom earlier versions
 * left out, is refused once the process has been upgraded.
 */
function optionsText(options: ExecutionOptions): string {
  const { timing, jobKey, priority, conversationMode, userName, concurrencyKey } = options;
  const ofTiming = timing === undefined ? '' : timingText(timing);
  const ofKey = jobKey === undefined ? '' : jobKeyText(jobKey);
  const ofPriority = priority === undefined ? '' : `\npriority ${priority}`;
  const ofMode = conversationMode === undefined ? '' : `\nmode ${conversationMode}`;
  const ofUser = options.isForUser ? `\nuser ${options.userId}` : '';
  const ofName = userName === undefined ? '' : `\nname ${userName}`;
  const ofPlace = concurrencyKey === undefined ? '' : `\nconcurrency ${concurrencyKey}`;
  return ofTiming + ofKey + ofPriority + ofMode + ofUser + ofName + ofPlace;
}

/**
 * Throws `403` where the caller may not read conversations: the model of a run that continues one repeats its messages.
 */
export function requireConversationScope({ apiKeyPermissions }: Config, { scopes }: Caller): void {
  if (apiKeyPermissions === 'strict') requireScopes(scopes, ['conversations']);
}

/** Throws `403` where the caller may not read files, and the input names some: the model of its run repeats them. */
export function requireFileScope(
  config: Config,
  caller: Caller,
  { taskField }: Skill,
  input: unknown,
): void {
  if (mayReadFiles(config, caller)) return;
  if (filesOfInput(input, taskField).some(isId)) requireScopes(caller.scopes, ['files']);
}

/** Whether the caller may read the files of its organization. */
export const mayReadFiles = ({ apiKeyPermissions }: Config, { scopes }: Caller) =>
  apiKeyPermissions !== 'strict' || hasScopes(scopes, ['files']);

/** Returns the agent's state; throws `404` unless the conversation is the agent's. */
async function findConversation(
  { config }: Context,
  { agents, conversations }: ExecutionParts,
  caller: Caller,
  agentId: string,
  id: string,
  state: AgentState | Promise<AgentState>,
): Promise<AgentState> {
  const known = await state;
  requireConversationScope(config, caller);
  const found = await conversations.find(caller.organizationId, id);
  if (found.agent_id !== agentId) throw notFound('Conversation');
  await agents.findSince(caller.organizationId, agentId, found.created_at);
  return known;
}

/**
 * Throws `400` for files that the run could not use: neither ids of files of the organization and the user, nor urls. Whose
 * conversation goes on is known once the request is accepted.
 */
async function requireFiles(
  files: Files,
  { organizationId, userId, isForUser, conversationId }: WorkRequest,
  named: readonly string[],
  inputField: string | undefined,
): Promise<void> {
  const user = isForUser === true ? userId : conversationId === undefined ? null : undefined;
  const usable = await files.usable(organizationId, user, named);
  const at = named.findIndex((name) => !(isId(name) ? usable.has(name) : isAddress(name)));
  if (at === -1) return;
  const issue = isId(named[at] ?? '')
    ? 'is the id of no file that this task may use: it may be deleted, expired, or the file of another user'
    : 'must be the id of a file, or a url that begins with http:// or https://';
  throw invalid([inputField, 'files', at].filter((part) => part !== undefined).join('.'), issue);
}

const isAddress = (text: string) => /^https?:\/\//i.test(text) && URL.canParse(text);

/** Throws for times that have passed (`400`), and a paused agent (`422`). */
function refusePassedOrPaused(
  { timing }: WorkRequest,
  { isPaused, agentId }: Target,
  { clock }: Context,
  names: TimingNames,
): void {
  if (timing !== undefined) refuseTiming(timing, clock.now(), names);
  if (isPaused) throw agentPaused(agentId);
}

/** What an earlier request with the key makes of this one; undefined where there is none. */
export async function replayOf(
  reader: Handle,
  now: number,
  { owner, key, fingerprint }: IdempotencyKey,
): Promise<Continued | undefined> {
  const forgotten_before = now - idempotencyMs;
  const name = { owner, idempotency_key: key };
  const earlier = await findByIdempotencyKey(reader, { ...name, forgotten_before });
  if (earlier === undefined) return undefined;
  return earlier.fingerprint === fingerprint
    ? { kind: 'replayed', job: earlier }
    : { kind: 'key_reused' };
}

/** `409 conflict` with the mode skip. */
export function otherUsersKey(): PlatformError {
  return new PlatformError(
    'conflict',
    "The job of this key that has not ended is another user's: wait for its end, or put the user into the key",
  );
}

/** `422 agent_paused`. */
export function agentPaused(agentId: string): PlatformError {
  return new PlatformError('agent_paused', `The agent ${agentId} is paused and takes no new work`);
}

/** Throws `400 validation_error` for an input that the skill's schema refuses. */
export function refuseInvalid(skill: Skill, input: unknown, parent?: string): void {
  if (input === undefined) {
    const details = [{ field: 'body', issue: 'is required: send the input of the skill as JSON' }];
    throw new PlatformError('validation_error', 'The request has no body', { details });
  }
  const issues = skill.input.issuesOf(input);
  if (issues === null) return;
  const details = parent === undefined ? issues : below(parent, issues);
  const [first] = details;
  const what = first === undefined ? '' : `: ${first.field} ${first.issue}`;
  throw new PlatformError('validation_error', `The input does not fit the skill's schema${what}`, {
    details,
  });
}

/** The issues of a value that is the field `parent` of a body. */
function below(parent: string, issues: readonly Issue[]): Issue[] {
  return issues.map(({ field, issue }) => ({
    field: field === 'body' ? parent : `${parent}.${field}`,
    issue,
  }));
}

function fingerprintOf(skill: Skill, agentId: string, input: unknown, options: string): string {
  return createHash('sha256')
    .update(`${skill.id}\n${agentId}\n${canonicalJson(input)}${options}`)
    .digest('hex');
}

/**
 * `422 job_not_retryable` for a record that is not resumed, `409 conflict` for a conversation with an active run (docs/decisions/conversations.md), or of another user.
 * Throws nothing for other acceptances.
 */
function refuseContinuing(acceptance: Acceptance, id: string): asserts acceptance is Continued {
  if (acceptance.kind === 'conversation_active') {
    throw new PlatformError(
      'conflict',
      `Another run of the conversation ${id} has not ended: wait for it, cancel it, or send x-conversation-mode: queue, steer or interrupt`,
    );
  }
  if (acceptance.kind === 'conversation_full') {
    throw new PlatformError(
      'conflict',
      `As many messages wait in the conversation ${id} as may: ${waitingMax}, or ${waitingBytesMax} bytes. Wait for one of them, or cancel one`,
    );
  }
  if (acceptance.kind === 'superseded') {
    throw new PlatformError(
      'job_not_retryable',
      `The conversation ${id} has gone on since, or another job goes on from this one: resume the last job of the conversation, or run this one again from the beginning`,
    );
  }
  if (acceptance.kind === 'other_user') {
    throw new PlatformError(
      'conflict',
      `The conversation ${id} is another user's, and does not go on for this one: check whose it is before the request, or begin a new one`,
    );
  }
}

type Continued = Exclude<
  Acceptance,
  { kind: 'conversation_active' | 'conversation_full' | 'other_user' | 'superseded' }
>;

/** How a request to run a skill was answered. */
export interface Executed {
  readonly job: AcceptedJob & { readonly status?: JobStatus };
  /** Whether an earlier equal request has made the job. */
  readonly isReplay: boolean;
  /** What its key did: the job has taken an earlier one's place, is an earlier one, or is that with another input. */
  readonly keyResult?: 'replaced' | 'skipped' | 'debounced' | undefined;
}

/** What an acceptance makes of a request; throws for one that refuses it. */
export function executedOf(acceptance: Acceptance, conversationId = ''): Executed {
  refuseContinuing(acceptance, conversationId);
  if (acceptance.kind === 'key_reused') {
    throw new PlatformError(
      'idempotency_key_reused',
      'This Idempotency-Key was used for another request within the last 24 hours',
    );
  }
  if (acceptance.kind === 'other_users_key') throw otherUsersKey();
  const { kind, job } = acceptance;
  if (kind === 'skipped' || kind === 'debounced') return { job, isReplay: false, keyResult: kind };
  const keyResult = kind === 'accepted' && acceptance.replaces ? 'replaced' : undefined;
  return { job, isReplay: kind === 'replayed', keyResult };
}
