/**
 * What the rules of an agent decide about the call of a tool. The decision is on record before the tool starts, so that a
 * repeated attempt decides the same, whatever the rules say meanwhile. A rule that cannot be evaluated refuses the call.
 */
import { isUnavailable, PlatformError } from '../../kernel/errors.ts';
import { usdOf } from '../../kernel/money.ts';
import { userNameIn } from '../agents/instruction-values.ts';
import type { NumberedRule, RuleDecision } from '../agents/tool-rules.ts';
import { findUseOfTool } from '../journal/step-queries.ts';
import { jobsOnRecord } from '../journal/taken-over.ts';
import type { ActiveGeneration } from './attempt.ts';
import { pause } from './pace/pause.ts';
import type { PlannedTool } from './recorded-generation.ts';
import { failed, type Refused } from './tool-waits.ts';
import type { SkillUse } from './tools.ts';

/** Longest time of one decision, with all its conditions, and with waiting while others are evaluated. */
const decisionMs = 30_000;
const retryMs = 500;

/** The decision about a call; null where no rule concerns the tool. */
export async function decideByRules(
  active: ActiveGeneration,
  tool: PlannedTool,
  use: SkillUse,
): Promise<RuleDecision | null> {
  if (tool.left?.decision) return tool.left.decision;
  if (use.rules.length === 0) return null;
  const decision = await firstDecision(active, tool, use);
  await active.attempt.generations.recordDecision(tool.n, decision);
  return decision;
}

/** The refusal for the model; null for a call that may be made. */
export function refusalBy(decision: RuleDecision | null): Refused | null {
  if (decision?.then !== 'refuse') return null;
  const { rule, message, fault } = decision;
  if (fault !== null) {
    return failed(
      'tool_refused',
      `The call was not made, because rule ${rule} of the agent ${fault}`,
    );
  }
  return failed(
    'tool_refused',
    `The call was not made: ${message ?? `rule ${rule} of the agent refuses it`}`,
  );
}

async function firstDecision(
  active: ActiveGeneration,
  tool: PlannedTool,
  use: SkillUse,
): Promise<RuleDecision> {
  const needsContext = use.rules.some(({ when }) => when !== undefined);
  const context = needsContext ? await contextOf(active, tool, use) : {};
  const endsAt = performance.now() + decisionMs;
  for (const rule of use.rules) {
    const { number, then, message = null } = rule;
    const held = await holds(active, rule, context, endsAt);
    if (held === true) return { rule: number, then, message, fault: null };
    if (held !== false) return { rule: number, then: 'refuse', message: null, fault: held.fault };
  }
  const then = use.needsApproval ? 'ask' : 'allow';
  return { rule: null, then, message: null, fault: null };
}

const late = { fault: 'could not be evaluated in time' };

/** Whether a rule decides; a fault, as the end of a sentence, where that cannot be said. */
async function holds(
  { attempt, generation }: ActiveGeneration,
  { number, when }: NumberedRule,
  context: object,
  endsAt: number,
): Promise<boolean | { readonly fault: string }> {
  if (when === undefined) return true;
  const { expressions } = attempt.parts;
  const { organization_id } = attempt.run.job;
  const { signal } = generation.call;
  while (performance.now() < endsAt) {
    try {
      const field = `tool_rules.${number - 1}.when`;
      const value = await expressions.evaluate(organization_id, when, context, field);
      if (value === true) return true;
      if (value === false || value === undefined || value === null) return false;
      return { fault: 'gives neither true nor false' };
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      if (!isUnavailable(error)) return { fault: `failed: ${faultOf(error)}` };
      await pause(retryMs, signal);
    }
  }
  return late;
}

const faultOf = ({ extras, message }: PlatformError) => extras.details?.[0]?.issue ?? message;

/** What conditions read. */
async function contextOf(
  { attempt }: ActiveGeneration,
  { n, name }: PlannedTool,
  { input }: SkillUse,
): Promise<object> {
  const { run, parts } = attempt;
  const { job } = run;
  const calls = { job_id: job.id, n, name, on_record: jobsOnRecord(job) };
  const use = await findUseOfTool(parts.context.database.read, calls);
  return {
    arguments: JSON.parse(input) as unknown,
    user: { id: job.for_user === 1 ? job.user_id : null, name: userNameIn(job) ?? null },
    calls: Number(use?.calls ?? 0),
    spent: { tokens: Number(use?.tokens ?? 0), usd: usdOf(Number(use?.cost ?? 0)) },
  };
}
