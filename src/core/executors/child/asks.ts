/**
 * The questions of a run to its parent. The limits are checked here to give the skill clear errors, and
 * again in the parent. The code of a suspended run gets no answer, not even a refusal.
 */
import { permanentError } from '../../../kernel/permanent-error.ts';
import { jsonTextFault } from '../../../kernel/text.ts';
import { askBytesMax, asksMax } from '../limits.ts';
import { redactedJson } from '../redaction.ts';
import type { Part, Run } from './part.ts';
import { stepOf } from './step-scope.ts';

/** Asks the parent; rejects with its refusal, never throws. No answer comes after the run's end. */
export async function ask(
  part: Part,
  kind: string,
  payload: unknown,
  step = stepOf(part),
): Promise<unknown> {
  const written = JSON.stringify(payload) ?? 'null';
  // The digest of a step must stay whole; its name and its result are without secrets already.
  const json = kind === 'begin-step' ? written : redactedJson(part.run, written);
  const fault = jsonTextFault(json);
  if (fault !== null) throw permanentError(`a request ${fault}`);
  if (Buffer.byteLength(json) > askBytesMax) {
    throw permanentError(`a request may have ${askBytesMax / 1024} KiB of JSON`);
  }
  return askJson(part, kind, json, step);
}

/** Like `ask`, for JSON text that is known to be within the limits. */
export async function askJson(
  part: Part,
  kind: string,
  json: string,
  step = stepOf(part),
): Promise<unknown> {
  const { run, platform } = part;
  if (run.isOver) return refuseEnded(run);
  run.asks ??= new Map();
  if (run.asks.size >= asksMax)
    throw new Error(
      `at most ${asksMax} requests may wait at once; ctx.map takes many steps, some at a time`,
    );
  const id = nextAsk++;
  const answer = Promise.withResolvers<unknown>();
  run.asks.set(id, answer);
  run.asked += 1;
  platform.outbox.push(`["ask",${run.id},${id},${JSON.stringify(kind)},${json},${step}]`);
  return answer.promise;
}

let nextAsk = 1;

/**
 * Stops code that goes on after the end of its run. A suspended run is answered nothing, so that its code does
 * not take the suspension for a failure.
 */
export async function refuseEnded(run: Run): Promise<never> {
  if (run.isSuspended) return new Promise(() => {});
  throw new Error('this run has ended');
}
