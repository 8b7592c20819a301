/**
 * The extension Tasks (SEP-2663): a call that takes long is answered with a handle of its job, with which the client
 * reads its state. The job was committed before the handle is made, so a handle is always known. A handle is the id of the
 * job and a code that only the platform can make, for the organization of the job alone.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { InputRequests } from '@modelcontextprotocol/server';
import type { Jobs } from '../../core/jobs/jobs.ts';
import { lookupOf, type SkillRegistry } from '../../core/skills/registry.ts';
import { type Caller, hasScopes } from '../../kernel/caller.ts';
import { invalid, notFound, PlatformError } from '../../kernel/errors.ts';
import type { ToolCalls } from './calls.ts';
import { canAnswer, canAsk, decideAnswered, formsOf } from './questions.ts';
import { errorOf, resultOf } from './results.ts';

export const tasksExtension = 'io.modelcontextprotocol/tasks';

/** How often a client may read the state of a task. */
const pollIntervalMs = 1_000;
const idBytes = 16;
const codeBytes = 16;

type Job = Awaited<ReturnType<Jobs['get']>>;

/** The calls that are answered with a handle of their job. */
export class Tasks {
  readonly #calls: ToolCalls;
  readonly #skills: SkillRegistry;
  readonly #key: Buffer;
  readonly #keptMs: number;

  /** `key` makes the handles and is the same in all processes; an ended job is kept for `keptMs`. */
  constructor(calls: ToolCalls, skills: SkillRegistry, key: Buffer, keptMs: number) {
    this.#calls = calls;
    this.#skills = skills;
    this.#key = key;
    this.#keptMs = keptMs;
  }

  /** The answer to a call whose job goes on. */
  async create({ organizationId }: Caller, jobId: string) {
    const job = await this.#calls.jobs.get(organizationId, jobId);
    return { resultType: 'task', ...this.#viewOf(organizationId, job), status: 'working' };
  }

  /** The state of a task, with its result, its error or its questions. */
  async get(caller: Caller, capabilities: unknown, taskId: string) {
    const { organizationId } = caller;
    const job = await this.#calls.jobs.get(organizationId, this.#jobOf(organizationId, taskId));
    const task = this.#viewOf(organizationId, job);
    switch (job.status) {
      case 'cancelled':
        return { ...task, status: 'cancelled' };
      case 'completed':
      case 'failed': {
        const error = errorOf(job);
        if (error !== undefined) return { ...task, status: 'failed', error };
        const skill = this.#skills.definition(...lookupOf(organizationId, job));
        const files = await this.#calls.files.blocksOf(caller, job);
        return { ...task, status: 'completed', result: resultOf(skill, job, files) };
      }
      default: {
        const inputRequests = await this.#questionsOf(caller, capabilities, job.job_id);
        const isAsking = Object.keys(inputRequests).length > 0;
        return isAsking
          ? { ...task, status: 'input_required', inputRequests }
          : { ...task, status: 'working' };
      }
    }
  }

  /** Decides the answered approvals. The others stay pending. */
  async update(
    caller: Caller,
    taskId: string,
    answers: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const jobId = this.#jobOf(caller.organizationId, taskId);
    await this.#calls.jobs.find(caller.organizationId, jobId);
    if (!hasScopes(caller.scopes, ['approvals'])) {
      throw new PlatformError('insufficient_scope', 'The scope approvals is needed to decide');
    }
    const questions = await this.#calls.pendingQuestions(caller.organizationId, jobId);
    const asked = Object.fromEntries(questions.map(({ approval_id: id }) => [id, id]));
    const { refusals } = await decideAnswered(this.#calls.approvals, caller, { asked }, answers);
    const [refused] = refusals.values();
    if (refused !== undefined) throw invalid('inputResponses', `do not fit the form: ${refused}`);
  }

  /** Cancels the job of a task; a job that has ended is not changed. */
  async cancel({ organizationId }: Caller, taskId: string): Promise<void> {
    await this.#calls.abandon(organizationId, this.#jobOf(organizationId, taskId));
  }

  async #questionsOf(caller: Caller, capabilities: unknown, jobId: string): Promise<InputRequests> {
    if (!canAnswer(caller, capabilities)) return {};
    const questions = await this.#calls.pendingQuestions(caller.organizationId, jobId);
    return formsOf(questions.filter(canAsk(capabilities)), (one) => one.approval_id);
  }

  #viewOf(organizationId: string, job: Job) {
    const { job_id, created_at, started_at, finished_at, progress } = job;
    const id = Buffer.from(job_id.replaceAll('-', ''), 'hex');
    const code = this.#codeOf(organizationId, job_id);
    return {
      taskId: Buffer.concat([id, code]).toString('base64url'),
      createdAt: created_at,
      lastUpdatedAt: finished_at ?? started_at ?? created_at,
      ttlMs: this.#keptMs,
      pollIntervalMs,
      ...(progress?.note ? { statusMessage: progress.note } : {}),
    };
  }

  /** The id of the job of a handle; `404 not_found` for a handle that the platform has not made for the organization. */
  #jobOf(organizationId: string, taskId: string): string {
    const bytes = Buffer.from(taskId, 'base64url');
    if (bytes.length !== idBytes + codeBytes) throw notFound('Task');
    const hex = bytes.toString('hex', 0, idBytes);
    const jobId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    const code = bytes.subarray(idBytes);
    if (!timingSafeEqual(code, this.#codeOf(organizationId, jobId))) throw notFound('Task');
    return jobId;
  }

  #codeOf(organizationId: string, jobId: string): Buffer {
    const code = createHmac('sha256', this.#key).update(`${organizationId}\0${jobId}`).digest();
    return code.subarray(0, codeBytes);
  }
}
