/**
 * Rules about the calls of an agent's tools: of the rules whose pattern matches the skill, or names the agent that gets a task, the first one whose condition
 * is true decides. Conditions are JSONata, checked when they are saved and evaluated in the sandbox.
 */
import type { Expressions } from '../../adapters/sandbox/expressions.ts';

/** What a rule decides: a person is asked, the call is refused, or made without a question. */
export const ruleOutcomes = ['ask', 'refuse', 'allow'] as const;
type RuleOutcome = (typeof ruleOutcomes)[number];

export const rulesMax = 50;
export const conditionCharactersMax = 2_000;
/** Fits the title of an approval beside the name of the tool. */
export const messageCharactersMax = 200;

export interface ToolRule {
  /** A pattern of skills, or `agent/<id>` for tasks that this agent gets. */
  readonly tools: string;
  /** JSONata; left out, the rule decides about every call of these tools. */
  readonly when?: string;
  readonly then: RuleOutcome;
  /** For the person who is asked, or for the model whose call is refused. */
  readonly message?: string;
}

/** A rule, with its number in the agent's rules. */
export interface NumberedRule extends ToolRule {
  /** From 1. */
  readonly number: number;
}

export const numberedRules = (rules: readonly ToolRule[]): NumberedRule[] =>
  rules.map((rule, i) => ({ ...rule, number: i + 1 }));

/** What was decided about a call, as its step keeps it. */
export interface RuleDecision {
  /** Of the rule in `tool_rules`, from 1; null where none decided. */
  readonly rule: number | null;
  readonly then: RuleOutcome;
  readonly message: string | null;
  /** Why the rule could not be evaluated, so that the call is refused; null otherwise. */
  readonly fault: string | null;
}

/** What a condition reads. */
const conditionNames = ['arguments', 'user', 'calls', 'spent'];

/** Throws `400 validation_error` for conditions that are no JSONata, or read what there is not. */
export async function requireRules(
  expressions: Expressions,
  organizationId: string,
  rules: readonly ToolRule[],
): Promise<void> {
  for (const [i, { when }] of rules.entries()) {
    if (when === undefined) continue;
    await expressions.check(organizationId, when, `tool_rules.${i}.when`, conditionNames);
  }
}
