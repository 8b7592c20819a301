/** Runs a skill as a tool: with its own time limit and error, otherwise as a part of the attempt. */
import type { RunHandle, RunHandlers, RunOutcome } from '../../executors/run.ts';
import type { StepFailure } from '../../journal/journal-steps.ts';
import type { RunPart } from '../../journal/run-part.ts';
import type { WaitScope } from '../../journal/wait-scope.ts';
import { PartChanges } from '../../memories/part-changes.ts';
import { skillKeyParts } from '../../skills/registry.ts';
import { timeLimitOf } from '../../skills/time-limits.ts';
import { calledPlacesOf, NoPlaceError, noteRefusal } from '../gates/called-places.ts';
import type { RunMessage } from '../settle-effects.ts';
import { failureOf, type JobError } from '../states.ts';
import { type Attempt, memoryOf, remember } from './attempt.ts';
import { handlersOf } from './run-parts.ts';
import { findSettings } from './run-settings.ts';
import { unloadMs } from './run-waits.ts';

/** Runs of a tool that end with an unattributed executor death, before the tool call fails. */
const displacedMax = 3;

/** The end of a skill that ran as a tool, and its messages to the conversation. */
export type SkillResult = (
  | { readonly kind: 'completed'; readonly output: string }
  | ({ readonly kind: 'failed' } & StepFailure)
  | { readonly kind: 'stopped' }
) & { readonly messages?: readonly RunMessage[] };

/** A skill to run as a tool. */
export interface SkillCall {
  /** `category/version/name`. */
  readonly skill: string;
  /** JSON text that its schema allows. */
  readonly input: string;
  /** Whether the skill must not be started again when its executor dies: a person has approved one start. */
  readonly isOnce: boolean;
  /** Whether an earlier claim was lost or failed while the call was open, so it may have taken effect. */
  readonly wasInterrupted: boolean;
}

/** Waits until the gates of the skill have places for it, and runs it. */
export async function runToolSkill(
  attempt: Attempt,
  call: SkillCall,
  part: RunPart,
  signal: AbortSignal,
  scope: WaitScope,
): Promise<SkillResult> {
  const places = calledPlacesOf(attempt);
  const waiting = scope.work();
  try {
    await places.take(call.skill, part, signal);
  } catch (error) {
    if (signal.aborted) return { kind: 'stopped' };
    if (error instanceof NoPlaceError)
      return { kind: 'failed', code: error.code, message: error.message };
    throw error;
  } finally {
    waiting();
  }
  try {
    return await runWithPlaces(attempt, call, part, signal, scope);
  } finally {
    await places.give(part.step);
  }
}

async function runWithPlaces(
  attempt: Attempt,
  { skill: name, input, isOnce, wasInterrupted }: SkillCall,
  part: RunPart,
  signal: AbortSignal,
  scope: WaitScope,
): Promise<SkillResult> {
  const { runs, job } = attempt;
  const context = { ...attempt.context, path: part.path };
  const skill = runs.skills.definition(job.organization_id, ...skillKeyParts(name));
  if (skill === undefined) {
    const message = `No definition of the skill ${name} is loaded here`;
    return { kind: 'failed', code: 'skill_execution_failed', message };
  }
  const found = await findSettings(runs, job, name);
  if (found && 'missing' in found) {
    const code = 'missing_credentials';
    return { kind: 'failed', code, message: found.missing, retryable: false };
  }
  if (wasInterrupted && skill.remoteSourceId !== null && skill.maxAttempts === 1) {
    return { kind: 'failed', code: 'worker_lost', message: calledBefore };
  }
  const timeoutMs = timeLimitOf(skill, input);
  const request = { skill: name, input, context, timeoutMs, ...(found && { settings: found }) };
  for (let tries = 1; ; tries++) {
    if (signal.aborted) return { kind: 'stopped' };
    const run = newToolRun(attempt, part, scope);
    const handle = runs.executors.run({ ...request, alone: tries === displacedMax }, run.handlers);
    const abort = () => stop(handle);
    signal.addEventListener('abort', abort, { once: true });
    const outcome = await handle.outcome;
    signal.removeEventListener('abort', abort);
    // Requests that it did not await count as well.
    await Promise.all(run.requests);
    if (outcome.kind === 'displaced' && tries < displacedMax && !isOnce) {
      if (run.changes.list.length > 0) await memoryOf(attempt).undo(run.changes.list);
      continue;
    }
    part.changes?.add(...run.changes.list);
    if (outcome.kind === 'failed') {
      const { code, message, stack } = outcome;
      const failure = { job_id: job.id, skill: name, error: { code, message }, stack };
      runs.context.log.info(failure, 'a tool failed');
      if (outcome.retryAfterMs !== undefined)
        await noteRefusal(attempt, name, outcome.retryAfterMs);
    }
    return { ...resultOf(outcome, isOnce), messages: run.messages };
  }
}

/**
 * Stops a tool together with the run that called it. A tool that only waits is unloaded: its code does
 * not run, so it could not stop, and its executor would be killed after the grace period.
 */
function stop(handle: RunHandle): void {
  handle.suspend();
  const timer = setTimeout(() => {
    handle.abort('the run that called it was stopped');
  }, unloadMs);
  void handle.outcome.then(() => clearTimeout(timer));
}

/** One run of a tool, with the effects that are discarded if it is run again. */
interface ToolRun {
  readonly handlers: RunHandlers;
  /** Of memory. */
  readonly changes: PartChanges;
  /** Requests under way. */
  readonly requests: Set<Promise<unknown>>;
  readonly messages: RunMessage[];
}

function newToolRun(attempt: Attempt, part: RunPart, within: WaitScope): ToolRun {
  const changes = new PartChanges(null);
  const requests = new Set<Promise<unknown>>();
  const messages: RunMessage[] = [];
  const { onReport, onAsk } = handlersOf({
    attempt,
    part: { ...part, changes },
    messages,
    within,
  });
  const handlers: RunHandlers = {
    onReport,
    onAsk: (...question) => remember(requests, onAsk(...question)),
  };
  return { handlers, changes, requests, messages };
}

function resultOf(outcome: RunOutcome, isOnce: boolean): SkillResult {
  switch (outcome.kind) {
    case 'completed':
      return outcome;
    case 'aborted':
    case 'waiting':
      return { kind: 'stopped' };
    case 'displaced':
      return { kind: 'failed', code: 'worker_lost', message: isOnce ? diedOnce : diedAlways };
    default:
      return {
        kind: 'failed',
        ...(failureOf(outcome) as JobError),
        retryable: outcome.kind !== 'failed' || outcome.retryable,
      };
  }
}

const calledBefore =
  'An earlier attempt was ended during the call, so it may have taken effect. The tool is not known to be one that may be called twice, and was not called again';
const diedAlways = 'Its executor died again and again';
const diedOnce =
  'Its executor died, so it may have taken effect. Its approval is used up, and it was not started again';
