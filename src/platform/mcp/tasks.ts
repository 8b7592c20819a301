/**
 * The extension Tasks (SEP-2663): a call that takes long is answered with a handle of its job, which the client asks
 * about. The job was committed before the handle is made, so a handle is always known. A handle is the id of the
 * job and a code that only the platform can make, for the organization of the job alone.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { InputRequests } from '@modelcontextprotocol/server';
import type { Jobs } from '../../core/jobs/jobs.ts';
import { lookupOf, type SkillRegistry } from '../../core/skills/registry.ts';
import { type Caller, hasScopes } from '../../kernel/caller.ts';
import { invalid, notFound, PlatformError } from '../../kernel/errors.ts';
import { abandon, type CallsDeps, pendingQuestions } from './calls.ts';
import { canAnswer, canAsk, decideAnswered, formsOf } from './questions.ts';
import { errorOf, resultOf } from './results.ts';

export const tasksExtension = 'io.modelcontextprotocol/tasks';

/** How often a client may ask. */
const pollIntervalMs = 1_000;
const idBytes = 16;
const codeBytes = 16;

export interface TasksDeps {
  readonly calls: CallsDeps & { readonly jobs: Pick<Jobs, 'get'> };
  readonly skills: Pick<SkillRegistry, 'definition'>;
  /** What handles are made with; the same in all processes. */
  readonly taskKey: Buffer;
  /** How long an ended job is kept. */
  readonly keptMs: number;
}

type Job = Awaited<ReturnType<Jobs['get']>>;

/** The answer to a call whose job goes on. */
export async function createTask(deps: TasksDeps, { organizationId }: Caller, jobId: string) {
  const job = await deps.calls.jobs.get(organizationId, jobId);
  return { resultType: 'task', ...taskOf(deps, organizationId, job), status: 'working' };
}

/** The state of a task, with its result, its error or its questions. */
export async function getTask(
  deps: TasksDeps,
  caller: Caller,
  capabilities: unknown,
  taskId: string,
) {
  const { organizationId } = caller;
  const job = await deps.calls.jobs.get(organizationId, jobOfTask(deps, organizationId, taskId));
  const task = taskOf(deps, organizationId, job);
  switch (job.status) {
    case 'cancelled':
      return { ...task, status: 'cancelled' };
    case 'completed':
    case 'failed': {
      const error = errorOf(job);
      if (error !== undefined) return { ...task, status: 'failed', error };
      const skill = deps.skills.definition(...lookupOf(organizationId, job));
      return { ...task, status: 'completed', result: resultOf(skill, job) };
    }
    default: {
      const inputRequests = await questionsOf(deps, caller, capabilities, job.job_id);
      const isAsking = Object.keys(inputRequests).length > 0;
      return isAsking
        ? { ...task, status: 'input_required', inputRequests }
        : { ...task, status: 'working' };
    }
  }
}

/** Decides the answered approvals. The others stay pending. */
export async function updateTask(
  deps: TasksDeps,
  caller: Caller,
  taskId: string,
  answers: Readonly<Record<string, unknown>>,
): Promise<void> {
  const jobId = jobOfTask(deps, caller.organizationId, taskId);
  await deps.calls.jobs.find(caller.organizationId, jobId);
  if (!hasScopes(caller.scopes, ['approvals'])) {
    throw new PlatformError('insufficient_scope', 'The scope approvals is needed to decide');
  }
  const questions = await pendingQuestions(deps.calls, caller.organizationId, jobId);
  const asked = Object.fromEntries(questions.map(({ approval_id: id }) => [id, id]));
  const { refusals } = await decideAnswered(deps.calls, caller, { asked }, answers);
  const [refused] = refusals.values();
  if (refused !== undefined) throw invalid('inputResponses', `do not fit the form: ${refused}`);
}

/** Cancels the job of a task; a job that has ended is not changed. */
export async function cancelTask(deps: TasksDeps, caller: Caller, taskId: string): Promise<void> {
  const { organizationId } = caller;
  await abandon(deps.calls, organizationId, jobOfTask(deps, organizationId, taskId));
}

async function questionsOf(
  { calls }: TasksDeps,
  caller: Caller,
  capabilities: unknown,
  jobId: string,
): Promise<InputRequests> {
  if (!canAnswer(caller, capabilities)) return {};
  const questions = await pendingQuestions(calls, caller.organizationId, jobId);
  return formsOf(questions.filter(canAsk(capabilities)), (one) => one.approval_id);
}

function taskOf(deps: TasksDeps, organizationId: string, job: Job) {
  const { created_at, started_at, finished_at, progress } = job;
  return {
    taskId: taskOfJob(deps, organizationId, job.job_id),
    createdAt: created_at,
    lastUpdatedAt: finished_at ?? started_at ?? created_at,
    ttlMs: deps.keptMs,
    pollIntervalMs,
    ...(progress?.note ? { statusMessage: progress.note } : {}),
  };
}

function taskOfJob(deps: TasksDeps, organizationId: string, jobId: string): string {
  const id = Buffer.from(jobId.replaceAll('-', ''), 'hex');
  return Buffer.concat([id, codeOf(deps, organizationId, jobId)]).toString('base64url');
}

/** The id of the job of a handle; `404 not_found` for a handle that the platform has not made for the organization. */
function jobOfTask(deps: TasksDeps, organizationId: string, taskId: string): string {
  const bytes = Buffer.from(taskId, 'base64url');
  if (bytes.length !== idBytes + codeBytes) throw notFound('Task');
  const hex = bytes.toString('hex', 0, idBytes);
  const jobId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  const code = bytes.subarray(idBytes);
  if (!timingSafeEqual(code, codeOf(deps, organizationId, jobId))) throw notFound('Task');
  return jobId;
}

function codeOf({ taskKey }: TasksDeps, organizationId: string, jobId: string): Buffer {
  const code = createHmac('sha256', taskKey).update(`${organizationId}\0${jobId}`).digest();
  return code.subarray(0, codeBytes);
}
