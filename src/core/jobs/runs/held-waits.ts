/**
 * Waits for a person while a call of a service outside is held. The run stays loaded, because the connection cannot be
 * put on record; its slot is given to another job. The clients of the job get an event, because its status stays
 * `active`.
 */

import { digestOf } from '../../../kernel/digest.ts';
import { objectOf } from '../../../kernel/json.ts';
import { permanentError } from '../../../kernel/permanent-error.ts';
import { heldKey } from '../../journal/records.ts';
import type { RunPart } from '../../journal/run-part.ts';
import type { WaitScope } from '../../journal/wait-scope.ts';
import { type Attempt, recordsOf, streamOf, yieldSlot } from './attempt.ts';
import { type WaitAnswer, waitsOf } from './run-waits.ts';

/** Code units of a name. */
const nameMax = 400;

export async function holdForPerson(
  attempt: Attempt,
  { path, step }: RunPart,
  payload: unknown,
  scope: WaitScope,
  signal: AbortSignal,
): Promise<WaitAnswer> {
  const { name, digest, nth, title, details, fields, timeoutMs } = objectOf(payload) ?? {};
  // The question may be one that the code of a run has made up.
  if (typeof name !== 'string' || name.length > nameMax || !Number.isSafeInteger(nth)) {
    throw permanentError('this is no wait that a run may ask for');
  }
  // The place of the question among those of the call.
  const key = heldKey(digestOf(JSON.stringify([path, digest, nth])));
  const question = { title, details, fields, timeoutMs };
  const place = { key, name, nth: nth as number, parent: step };
  const request = { ...place, kind: 'approval', payload: question } as const;
  await recordsOf(attempt);
  // A run that holds a connection never counts as waiting, so it is not unloaded.
  const done = scope.work();
  const resume = yieldSlot(attempt);
  const turn = {
    async recorded() {},
    // The approval is on record then.
    notRecorded: () => streamOf(attempt).add({ type: 'approval', data: { title: String(title) } }),
    async ended() {},
  };
  try {
    return await waitsOf(attempt).wait(request, scope, signal, turn);
  } finally {
    resume();
    done();
  }
}
