/**
 * The wait for a job that a run starts with `ctx.run`. The child is accepted in the transaction that
 * records the step of its parent, so it is started once, however often the parent is executed again. All
 * checks are made then, and none when a repeated attempt finds the step. What the end of a child means to
 * its parent, and the other way round, is in `families.ts`.
 */
import type { Transaction } from '../database/database.ts';
import type { JournalJob } from '../journal/step-rows.ts';
import { deadlineAfter, type WaitKindVerbs } from '../journal/wait-kinds.ts';
import { permanentError } from '../kernel/permanent-error.ts';
import { waitMaxMs } from '../kernel/step-bounds.ts';
import { type Skill, type SkillRegistry, skillKeyParts } from '../skills/registry.ts';
import type { Accept, WorkRequest } from './accept.ts';
import type { Admission } from './admission.ts';
import { findParent } from './child-jobs.store.ts';

/** Jobs that one job may start, in all its attempts. */
const childrenMax = 1_000;
/** Jobs above a job. */
const depthMax = 8;
/** Characters of the name of a skill. */
const nameMax = 300;

export interface ChildJobsDeps {
  readonly skills: Pick<SkillRegistry, 'findActive'>;
  readonly mayCall: Admission['mayCall'];
  readonly accept: Pick<Accept, 'within'>;
}

/** What a run asks for, and what its digest is made of. */
interface Wanted {
  readonly skill: string;
  readonly input: unknown;
}

type BegunWait = Parameters<WaitKindVerbs['begin']>[1];

export function createChildJobs(deps: ChildJobsDeps): WaitKindVerbs {
  return {
    read: ({ skill, input }, _job, now) => {
      if (typeof skill !== 'string' || skill.length > nameMax) {
        throw permanentError('a child run needs the name of a skill: category/version/name');
      }
      return {
        input: { skill, input: input ?? null } satisfies Wanted,
        dueAt: deadlineAfter(waitMaxMs, now),
      };
    },
    begin: (tx, wait) => begin(deps, tx, wait),
    // The child goes on: it has its own time limits, and what it does may be of use.
    expire: async () => overdue,
    // The end of the parent has cancelled its children.
    async abandon() {},
  };
}

const overdue = {
  error: {
    code: 'skill_timeout',
    message: 'The child job did not end within 365 days',
    retryable: false,
  },
};

async function begin(deps: ChildJobsDeps, tx: Transaction, wait: BegunWait): Promise<null> {
  const { job, n } = wait;
  const wanted = wait.input as Wanted;
  const skill = await usableSkill(deps, tx, job, wanted.skill);
  refuseInvalid(skill, wanted);
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
  await deps.accept.within(tx, [childOf(job, n, parent, skill, wanted.input)]);
  return null;
}

async function usableSkill(
  { skills, mayCall }: ChildJobsDeps,
  tx: Transaction,
  job: JournalJob,
  name: string,
): Promise<Skill> {
  const skill = skills.findActive(...skillKeyParts(name));
  if (skill === undefined) throw permanentError(`there is no active skill ${name}`);
  if (!(await mayCall(job, name, tx))) {
    throw permanentError(
      `this run may not start ${name}: its API key is revoked or lacks a scope of the skill`,
    );
  }
  return skill;
}

function refuseInvalid(skill: Skill, { skill: name, input }: Wanted): void {
  const [issue] = skill.inputIssues(input) ?? [];
  if (issue === undefined) return;
  throw permanentError(
    `the input does not fit the schema of ${name}: ${issue.field} ${issue.issue}`,
  );
}

/** Like its parent in all but the skill; with a conversation of its own. */
function childOf(
  job: JournalJob,
  step: number,
  parent: { user_id: string; depth: number },
  skill: Skill,
  input: unknown,
): WorkRequest {
  return {
    organizationId: job.organization_id,
    apiKeyId: job.api_key_id,
    agentId: job.agent_id,
    userId: parent.user_id,
    triggerType: 'api',
    skill,
    maxAttempts: skill.maxAttempts,
    input: JSON.stringify(input),
    retryOf: null,
    parent: { jobId: job.id, step, depth: parent.depth },
  };
}
