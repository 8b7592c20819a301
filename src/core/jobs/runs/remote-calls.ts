/** Skills of services outside that the code of a run calls: the platform makes the call, as a step of the run. */

import { objectOf } from '../../../kernel/json.ts';
import { issuesText } from '../../../kernel/json-schema.ts';
import { permanentError } from '../../../kernel/permanent-error.ts';
import type { RunHandlers } from '../../executors/run.ts';
import type { RunPart } from '../../journal/run-part.ts';
import { skillKeyParts } from '../../skills/registry.ts';
import { failureOf } from '../states.ts';
import type { Attempt } from './attempt.ts';

/** A call within an open step of the run. */
interface RemoteCall {
  readonly payload: unknown;
  /** The part of the run that the step is. */
  readonly part: RunPart;
  readonly signal: AbortSignal;
  readonly handlers: RunHandlers;
}

/** Calls the skill and returns its output. Rejects like a question of a run. */
export async function callRemote(
  { runs, job, context }: Attempt,
  { payload, part, signal, handlers }: RemoteCall,
): Promise<unknown> {
  const { skill: name, input } = objectOf(payload) ?? {};
  const key = typeof name === 'string' ? name : '';
  const skill = runs.skills.definition(job.organization_id, ...skillKeyParts(key));
  if (skill === undefined || skill.remoteSourceId === null) {
    throw permanentError(`there is no skill ${key}`);
  }
  // The question may be one that the code of the run has made up.
  if (!(await runs.admission.mayCall(job, key)))
    throw permanentError(`this run may not call ${key}`);
  const issues = skill.input.issuesOf(input);
  if (issues !== null) {
    throw permanentError(`the input of ${key} breaks its schema: ${issuesText(issues)}`);
  }
  const { timeoutMs } = skill;
  const request = { skill: key, input: JSON.stringify(input), timeoutMs };
  const handle = runs.executors.run(
    { ...request, context: { ...context, path: part.path } },
    handlers,
  );
  const abort = () => {
    // A call that only waits for a person goes on once the run that made it is loaded again.
    handle.suspend();
    handle.abort('the run that called it was stopped');
  };
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  const outcome = await handle.outcome;
  signal.removeEventListener('abort', abort);
  if (outcome.kind === 'completed') return JSON.parse(outcome.output);
  const { code, message } = failureOf(outcome) ?? stopped;
  const retryable = outcome.kind === 'failed' ? outcome.retryable : skill.maxAttempts > 1;
  throw Object.assign(new Error(message), { code, retryable });
}

const stopped = { code: 'skill_execution_failed', message: 'The call was stopped' };
