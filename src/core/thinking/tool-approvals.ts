/**
 * Approvals of the calls of tools: a person is asked before the tool starts. An approval is for exactly one
 * call, with its arguments, and is used up in the commit that starts the tool. So an approved tool that was
 * interrupted does not start again: it may already have taken effect.
 */

import { dayMs } from '../../kernel/clock.ts';
import { digestOf } from '../../kernel/digest.ts';
import { isObject } from '../../kernel/json.ts';
import { titleCharsMax } from '../../kernel/step-bounds.ts';
import { journalOf } from '../jobs/runs/attempt.ts';
import type { RunPart } from '../journal/run-part.ts';
import type { StepError } from '../journal/step-rows.ts';
import type { ActiveGeneration } from './attempt.ts';
import type { PlannedTool } from './recorded-generation.ts';
import { waitFor } from './tool-waits.ts';
import type { SkillUse } from './tools.ts';

/** How long a person has to decide. */
const timeoutMs = 7 * dayMs;

/** Why a rule has a person asked. */
export interface Asking {
  readonly reason?: string | undefined;
}

/** A call that may need an approval; `agent` is the agent that the skill gives a task. */
type ApprovableUse = SkillUse & Asking & { readonly agent?: string };

/** The skill or the agent that is called, as the person and the model see it. */
const nameOf = ({ skill, agent }: ApprovableUse) =>
  agent === undefined ? skill : `agent/${agent}`;

/** What a wait for an approval gives. */
interface ApprovalDecision {
  readonly approved: boolean;
  readonly by: object | null;
  readonly reason: string | null;
}

/** An approval that was given, with which the tool is to start. */
export interface Grant {
  /** Of the call. */
  readonly digest: string;
}

/**
 * Waits for the decision if the call needs one. Resolves with the approval, with null if the call needs none or has
 * already started with one, or with a refusal for the model.
 */
export async function awaitApproval(
  active: ActiveGeneration,
  { n, left }: PlannedTool,
  use: ApprovableUse,
  own: RunPart,
): Promise<Grant | StepError | null> {
  const { run } = active.attempt;
  // Differs from the key of any step or wait that the tool itself can create.
  const key = digestOf(JSON.stringify([own.path, 'approval of the call']));
  // If a person was already asked, the answer counts even if the agent's patterns have changed since.
  const wasAsked = left !== undefined && (await journalOf(run).records()).byKey.has(key);
  if (!use.needsApproval && !wasAsked) return null;
  if (left?.isApproved) return left.isInterrupted ? used(nameOf(use)) : null;
  const decision = await ask(active, n, key, use);
  if ('code' in decision) return decision;
  if (!decision.approved) return refusal(nameOf(use), decision);
  return { digest: digestOf(JSON.stringify([nameOf(use), use.input])) };
}

/** Asks, and waits for the decision. */
async function ask(
  active: ActiveGeneration,
  n: number,
  key: string,
  use: ApprovableUse,
): Promise<ApprovalDecision | StepError> {
  const name = nameOf(use);
  const value = JSON.parse(use.input) as unknown;
  const payload = {
    title: titleOf(name, use.reason),
    // `link` in details is shown as a link. A model must not set it.
    details: isObject(value) && !Object.hasOwn(value, 'link') ? value : { input: value },
    timeoutMs,
  };
  // A person cannot be asked about some calls, for example because their arguments are too long.
  const decided = await waitFor(active, {
    key,
    kind: 'approval',
    name,
    nth: 1,
    parent: n,
    payload,
  });
  return 'error' in decided ? decided.error : (decided.output as ApprovalDecision);
}

const titleOf = (name: string, reason: string | undefined) =>
  [...(reason === undefined ? `Call ${name}?` : `Call ${name}? ${reason}`)]
    .slice(0, titleCharsMax)
    .join('');

function refusal(skill: string, { by, reason }: ApprovalDecision): StepError {
  if (by === null) {
    const days = timeoutMs / dayMs;
    return {
      code: 'approval_expired',
      message: `The call of ${skill} needs the approval of a person, and there was no decision within ${days} days`,
    };
  }
  const why = reason === null ? 'without a reason' : `with the reason: ${reason}`;
  return { code: 'approval_rejected', message: `A person rejected the call of ${skill}, ${why}` };
}

function used(skill: string): StepError {
  return {
    code: 'approval_used',
    message: `The approved call of ${skill} had started and was interrupted, so it may have taken effect. Its approval is used up, and it was not started again`,
  };
}
