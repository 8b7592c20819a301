/**
 * Runs a tool that a model called: parses the call, runs it, records the result and reports it. A
 * failure becomes the tool's result for the model. Only a run that is being stopped has none.
 */

import { endsMidCharacter } from '../../kernel/cut-text.ts';
import { digestOf } from '../../kernel/digest.ts';
import type { RuleDecision } from '../agents/tool-rules.ts';
import { type Attempt, journalOf, memoryOf } from '../jobs/runs/attempt.ts';
import { refusalOf } from '../jobs/runs/called-skills.ts';
import { runToolSkill } from '../jobs/runs/tool-run.ts';
import { innerPart, type RunPart } from '../journal/run-part.ts';
import type { StepError } from '../journal/step-rows.ts';
import { namedIn } from './attachments.ts';
import { type ActiveGeneration, report, type ThinkingAttempt } from './attempt.ts';
import { excessOf } from './call-ends.ts';
import { heldContent } from './guard-records.ts';
import type { PlannedTool } from './recorded-generation.ts';
import { findResult } from './recorded-results.ts';
import { releaseResult } from './released.ts';
import { requireKey } from './run-agent.ts';
import { stopped, ThinkingError } from './thinking-error.ts';
import { type Asking, awaitApproval } from './tool-approvals.ts';
import { decideByRules, refusalBy } from './tool-decisions.ts';
import {
  contentOf,
  messageOf,
  type NamedFiles,
  noFiles,
  previewOf,
  previewOfJson,
  shownOutcome,
  type ToolOutcome,
} from './tool-results.ts';
import type { NearestTools } from './tool-search.ts';
import { failed, type Refused, waitFor } from './tool-waits.ts';
import type { SkillUse, ToolUse } from './tools.ts';
import { roomForFiles } from './window.ts';

/**
 * Runs a tool. It resolves before the result is recorded, so that the next turn can begin in the
 * same commit; `isRecorded` rejects with the journal's error. Rejects with a ThinkingError when the run
 * is stopped.
 */
export async function runTool(active: ActiveGeneration, tool: PlannedTool) {
  const { attempt, generation, box, part, guards } = active;
  const { n: step, call, name, left } = tool;
  const place = { step, call_id: call.id, tool: name };
  // If the run was suspended during the call, clients have already received this event.
  if (left?.isInterrupted !== false) {
    report(attempt, { type: 'tool_call', data: { ...place, input: previewOfJson(call.input) } });
  }
  // Another generation may have a call of the same id.
  const own = innerPart(part, step, `${generation.id}/${call.id}`);
  const excess = excessOf(call);
  const use = excess === null ? box.read(call) : { kind: 'refused' as const, message: excess };
  const outcome = withoutAmounts(await outcomeOf(active, tool, use, own), name);
  const named = await filesNamedBy(active, use, outcome);
  const { message, whole } = messageOf(attempt, tool, outcome, named);
  const isHeld = guards.judges('tool_result') && isFromOutside(use);
  const shown = shownOutcome(outcome);
  const isRecorded = attempt.generations.endTool(tool, {
    status: outcome.error === undefined ? 'completed' : 'failed',
    error: isHeld ? withoutText(outcome) : (outcome.error ?? null),
    message,
    content: isHeld ? heldContent : contentOf(call, name, shown),
    whole,
    isHeld,
    isDialogue: generation.isDialogue,
    memory: own.changes.list,
    messages: outcome.messages ?? [],
  });
  if (isHeld) {
    await isRecorded;
    const code = outcome.error?.code ?? null;
    const released = await releaseResult(active, tool, { message, whole, code });
    active.results.set(call.id, released);
    return { message: released, isRecorded: Promise.resolve() };
  }
  active.results.set(call.id, message);
  report(attempt, { type: 'tool_result', data: { ...place, ...previewOf(shown) } });
  return { message, isRecorded };
}

/** The error of a held tool for its step, which clients read. A message of the platform's own stays. */
function withoutText({ error, shown }: ToolOutcome): StepError | null {
  if (error === undefined || shown !== undefined) return error ?? null;
  return {
    ...error,
    message: 'Its message has the error, as the guards of the agent have left it',
  };
}

/** Whether a result may have what the agent has not seen: a search for tools, or a result that is read again, has not. */
function isFromOutside({ kind }: ToolUse): boolean {
  return kind !== 'refused' && kind !== 'result' && kind !== 'find';
}

/** The files that a skill or an agent has named in its output. */
async function filesNamedBy(
  active: ActiveGeneration,
  { kind }: ToolUse,
  { output }: ToolOutcome,
): Promise<NamedFiles> {
  if (kind !== 'skill' && kind !== 'agent') return noFiles;
  const { attempt, generation, box } = active;
  const { call, fallbacks } = generation;
  const room = roomForFiles(active, box.offers);
  return namedIn(attempt, output, {
    models: [call.model, ...fallbacks],
    signal: call.signal,
    room,
  });
}

/** Removes the remaining amounts of budgets from an error: only the operator may see them. */
function withoutAmounts(outcome: ToolOutcome, name: string): ToolOutcome {
  if (outcome.error?.code !== 'budget_exceeded') return outcome;
  const shown = `${name} could not finish: the tokens or the money that it may use are used up (budget_exceeded)`;
  return { ...outcome, shown };
}

async function outcomeOf(
  active: ActiveGeneration,
  tool: PlannedTool,
  use: ToolUse,
  own: RunPart,
): Promise<ToolOutcome> {
  const { parts, run } = active.attempt;
  const forbidden = await keyFault(active);
  if (forbidden !== null) return forbidden;
  switch (use.kind) {
    case 'refused':
      return failed('invalid_input', use.message);
    case 'memory':
      return askMemory(run, use, own);
    case 'file': {
      const read = await parts.skillFolders.read(active.generation.files, use.path, use.offset);
      return 'error' in read ? failed('not_found', read.error) : { output: read.text };
    }
    case 'result':
      return readResult(active, use);
    case 'find': {
      const output = await active.box.find(use.query, use.limit, nearestFor(active.attempt));
      return output === null ? failed('not_found', noneFound) : { output };
    }
    case 'skill':
      return runSkill(active, tool, use, own);
    case 'agent':
      return runAgent(active, tool, use, own);
  }
}

/** How tools are searched by meaning; null on a platform without an embedding model. */
function nearestFor({ run, toolMeaning }: ThinkingAttempt): NearestTools | null {
  const embedder = memoryOf(run).meaning()?.embedder;
  if (embedder === undefined) return null;
  const { organization_id: organizationId, agent_id: agentId } = run.job;
  const owning = { organizationId, agentId };
  return (tools, query) => toolMeaning.nearest(embedder, owning, tools, query);
}

const noneFound = 'No tool was found: try other words, or fewer';

/** The outcome where the key of the job is no longer valid. */
async function keyFault({ attempt: { parts, run } }: ActiveGeneration): Promise<Refused | null> {
  try {
    await requireKey(parts, run.job);
    return null;
  } catch (error) {
    if (!(error instanceof ThinkingError)) throw error;
    return failed('insufficient_scope', error.message);
  }
}

async function askMemory(
  run: Attempt,
  { verb, payload }: Extract<ToolUse, { kind: 'memory' }>,
  own: RunPart,
): Promise<ToolOutcome> {
  try {
    return { output: await memoryOf(run).ask(verb, payload, { ...own, isModel: true }) };
  } catch (error) {
    // An error that is not retryable breaks a rule, and its message is for the model.
    if ((error as { retryable?: unknown }).retryable !== false) throw error;
    return failed('invalid_input', (error as Error).message);
  }
}

/** A part of an earlier result, with a note of what follows it. */
async function readResult(
  { attempt: { generations }, results }: ActiveGeneration,
  { callId, offset, length }: Extract<ToolUse, { kind: 'result' }>,
): Promise<ToolOutcome> {
  const text = await findResult(generations, callId, results.get(callId));
  if (text === undefined) {
    const id = JSON.stringify(callId.slice(0, 200));
    return failed('not_found', `There is no result of a call ${id} in this conversation`);
  }
  const part = text.slice(offset, offset + length);
  const end = offset + part.length - (endsMidCharacter(part) && part.length > 1 ? 1 : 0);
  const left = text.length - end;
  const read = text.slice(offset, end).toWellFormed();
  if (left <= 0) return { output: read };
  return { output: `${read}\n[${left} more characters follow, from offset ${end}]` };
}

async function runSkill(
  active: ActiveGeneration,
  tool: PlannedTool,
  use: Extract<ToolUse, { kind: 'skill' }>,
  own: RunPart,
): Promise<ToolOutcome> {
  const { attempt, generation, scope } = active;
  const { skill, input } = use;
  const admitted = await admit(active, tool, use, own);
  if ('error' in admitted) return admitted;
  const isOnce = admitted.isApproved || tool.left?.isApproved === true;
  const wasInterrupted = tool.left?.isInterrupted === true;
  const call = { skill, input, isOnce, wasInterrupted };
  const result = await runToolSkill(attempt.run, call, own, generation.call.signal, scope);
  switch (result.kind) {
    case 'completed':
      return { output: JSON.parse(result.output), messages: result.messages };
    case 'failed':
      return { ...failed(result.code, result.message), messages: result.messages };
    case 'stopped':
      throw stopped();
  }
}

/** The call, with what a rule has decided about its approval. */
function decidedUse<Use extends SkillUse>(use: Use, decision: RuleDecision | null): Use & Asking {
  if (decision === null) return use;
  return { ...use, needsApproval: decision.then === 'ask', reason: decision.message ?? undefined };
}

/** Whether the call may be made, and whether a person has approved it just now. */
async function admit(
  active: ActiveGeneration,
  tool: PlannedTool,
  use: Extract<ToolUse, { kind: 'skill' | 'agent' }>,
  own: RunPart,
): Promise<Refused | { readonly isApproved: boolean }> {
  const { attempt } = active;
  const { run } = attempt;
  // Checked first, so that no person is asked to approve a call that cannot be made.
  const refused = await refusalOf(run, use.skill);
  if (refused !== null) return { error: refused };
  const decision = await decideByRules(active, tool, use);
  const forbiddenByRule = refusalBy(decision);
  if (forbiddenByRule !== null) return forbiddenByRule;
  const grant = await awaitApproval(active, tool, decidedUse(use, decision), own);
  if (grant === null) return { isApproved: false };
  if ('code' in grant) return { error: grant };
  // Checked again, because the wait for the approval may have taken days.
  const refusedNow = await refusalOf(run, use.skill);
  if (refusedNow !== null) return { error: refusedNow };
  const forbidden = await keyFault(active);
  if (forbidden !== null) return forbidden;
  await attempt.generations.startApproved(tool.n, grant.digest);
  return { isApproved: true };
}

/**
 * Gives another agent the task as a child job and waits for it. The job is recorded in the transaction of the wait, so
 * it is started once, however often the run is interrupted.
 */
async function runAgent(
  active: ActiveGeneration,
  tool: PlannedTool,
  use: Extract<ToolUse, { kind: 'agent' }>,
  own: RunPart,
): Promise<ToolOutcome> {
  const { run } = active.attempt;
  // No named step or wait of the tool's own has a place of this form.
  const key = digestOf(JSON.stringify([own.path, 'job of the call']));
  const hasBegun = tool.left !== undefined && (await journalOf(run).records()).byKey.has(key);
  if (!hasBegun) {
    const admitted = await admit(active, tool, use, own);
    if ('error' in admitted) return admitted;
  }
  const { agent, skill } = use;
  const payload = { skill, agent, input: JSON.parse(use.input) as unknown };
  const place = { key, name: `agent/${agent}`, nth: 1, parent: tool.n };
  const answer = await waitFor(active, { ...place, kind: 'run', payload });
  if ('error' in answer) return answer;
  const output = answer.output as { answer?: unknown };
  // A task without a schema has only the field `answer`.
  return { output: Object.keys(output).length === 1 ? (output.answer ?? output) : output };
}
