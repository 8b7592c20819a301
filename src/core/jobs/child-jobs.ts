/**
 * The wait for a job that a run starts with `ctx.run`, or whose model gives another agent a task. The child is accepted in the transaction that
 * records the step of its parent, so it is started once, however often the parent is executed again. All
 * checks are made then, and none when a repeated attempt finds the step. `families.ts` has
 * the effects of a child's end on its parent, and of a parent's end on its children.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { waitMaxMs } from '../../kernel/step-bounds.ts';
import type { Agents } from '../agents/agents.ts';
import { userNameIn } from '../agents/instruction-values.ts';
import { listJobsAbove } from '../journal/agent-tree-queries.ts';
import type { JournalJob } from '../journal/step-rows.ts';
import { deadlineAfter, type WaitKindVerbs } from '../journal/wait-kinds.ts';
import { type Skill, type SkillRegistry, skillKeyParts } from '../skills/registry.ts';
import type { Acceptor, WorkRequest } from './accept.ts';
import { findParent } from './families.store.ts';
import type { JobRow } from './jobs.store.ts';
import type { Admission } from './turns/admission.ts';

/** Jobs that one job may start, in all its attempts. */
const childrenMax = 1_000;
/** Jobs above a job. */
const depthMax = 8;
/** Agents above an agent that is given a task by another. */
const agentsMax = 4;
/** Characters of the name of a skill. */
const nameMax = 300;

/** What a run requests, and what its digest is made of. */
interface ChildRequest {
  readonly skill: string;
  readonly input: unknown;
  /** The agent that runs it, where a model gives another one a task; the run's own code cannot say it. */
  readonly agent?: string;
}

type BegunWait = Parameters<WaitKindVerbs['begin']>[1];

/** The wait for a job that a run starts. */
export class ChildJobs implements WaitKindVerbs {
  readonly skills: SkillRegistry;
  readonly agents: Agents;
  readonly admission: Admission;
  readonly acceptor: Acceptor;

  constructor(parts: {
    readonly skills: SkillRegistry;
    readonly agents: Agents;
    readonly admission: Admission;
    readonly acceptor: Acceptor;
  }) {
    this.skills = parts.skills;
    this.agents = parts.agents;
    this.admission = parts.admission;
    this.acceptor = parts.acceptor;
  }

  read(payload: Readonly<Record<string, unknown>>, _job: JournalJob, now: number) {
    const { skill, input, agent } = payload;
    if (typeof skill !== 'string' || skill.length > nameMax) {
      throw permanentError('a child run needs the name of a skill: category/version/name');
    }
    const request: ChildRequest = {
      skill,
      input: input ?? null,
      ...(typeof agent === 'string' && { agent }),
    };
    return { input: request, dueAt: deadlineAfter(waitMaxMs, now) };
  }

  begin(tx: Transaction, wait: BegunWait): Promise<null> {
    return startChild(this, tx, wait);
  }

  /** The child job goes on: it has its own time limits, and its output may be useful. */
  async expire() {
    return overdue;
  }

  /** The end of the parent has cancelled its children. */
  async abandon() {}
}

const overdue = {
  error: {
    code: 'skill_timeout',
    message: 'The child job did not end within 365 days',
    retryable: false,
  },
};

async function startChild(children: ChildJobs, tx: Transaction, wait: BegunWait): Promise<null> {
  const { job, n } = wait;
  const request = wait.input as ChildRequest;
  const skill = await usableSkill(children, tx, job, request.skill);
  refuseInvalid(skill, request);
  if (request.agent !== undefined) await requireAgent(children, tx, job, request.agent);
  const parent = await findParent(tx, { id: job.id });
  if (parent === undefined) throw new Error(`The job ${job.id} is gone.`);
  if (parent.depth >= depthMax) {
    throw permanentError(
      `the job ${job.id} is ${depthMax} jobs below the first one, so it may not start another`,
    );
  }
  if (Number(parent.children) >= childrenMax) {
    throw permanentError(
      `the job ${job.id} has started ${childrenMax} jobs, and may not start more`,
    );
  }
  await children.acceptor.acceptWithin(tx, [childOf(job, n, parent, skill, request)]);
  return null;
}

async function usableSkill(
  { skills, admission }: ChildJobs,
  tx: Transaction,
  job: JournalJob,
  name: string,
): Promise<Skill> {
  const skill = skills.findActive(job.organization_id, ...skillKeyParts(name));
  if (skill === undefined) throw permanentError(`there is no active skill ${name}`);
  if (!(await admission.mayCall(job, name, tx))) {
    throw permanentError(
      `this run may not start ${name}: its API key is revoked or lacks a scope of the skill`,
    );
  }
  return skill;
}

function refuseInvalid(skill: Skill, { skill: name, input }: ChildRequest): void {
  const [issue] = skill.input.issuesOf(input) ?? [];
  if (issue === undefined) return;
  throw permanentError(
    `the input does not fit the schema of ${name}: ${issue.field} ${issue.issue}`,
  );
}

/**
 * Refuses an agent that is not there or is paused, one that works on the task already, and too many of them. The agents'
 * fields say so before, but may have changed since.
 */
async function requireAgent(
  { agents }: ChildJobs,
  tx: Transaction,
  job: JournalJob,
  agent: string,
): Promise<void> {
  const status = await agents.statusIn(tx, job.organization_id, agent);
  if (status === undefined) throw permanentError(`there is no agent ${agent}`);
  if (status === 'paused') throw permanentError(`the agent ${agent} is paused`);
  const jobs = await listJobsAbove(tx, job.id);
  const above = [...new Set(jobs.map(({ agent_id }) => agent_id))];
  if (above.includes(agent)) {
    const way = [...above.toReversed(), agent].join(' → ');
    throw permanentError(`the agent ${agent} works on this task already: ${way}`);
  }
  if (above.length > agentsMax) {
    throw permanentError(`${above.length} agents have passed the task on, which is the most`);
  }
}

/** Like its parent in all but the skill, and the agent where it is another; with a conversation of its own. */
function childOf(
  job: JournalJob,
  step: number,
  parent: Pick<
    JobRow,
    'user_id' | 'for_user' | 'depth' | 'priority' | 'concurrency_key' | 'instruction_values'
  >,
  skill: Skill,
  { input, agent }: ChildRequest,
): WorkRequest {
  return {
    organizationId: job.organization_id,
    apiKeyId: job.api_key_id,
    agentId: agent ?? job.agent_id,
    userId: parent.user_id,
    userName: userNameIn(parent),
    isForUser: parent.for_user === 1,
    triggerType: 'api',
    skill,
    maxAttempts: skill.maxAttempts,
    priority: parent.priority,
    concurrencyKey: parent.concurrency_key ?? undefined,
    input: JSON.stringify(input),
    retryOf: null,
    parent: { jobId: job.id, step, depth: parent.depth },
  };
}
