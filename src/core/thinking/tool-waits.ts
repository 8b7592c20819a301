/** Waits of the calls of tools: for a person's approval, for the job of another agent. */

import { cleanText } from '../../kernel/text.ts';
import { waitsOf } from '../jobs/runs/run-waits.ts';
import type { StepFailure } from '../journal/journal-steps.ts';
import { JournalFault } from '../journal/records.ts';
import type { StepError } from '../journal/step-rows.ts';
import type { WaitRequest } from '../journal/waits.ts';
import type { ActiveGeneration } from './attempt.ts';
import { stopped } from './thinking-error.ts';

/** The call is not made, or has failed; the message is for the model. */
export interface Refused {
  readonly error: StepError;
}

/** The result of a wait, or a refusal for the model. */
export async function waitFor(
  { attempt, generation, scope }: ActiveGeneration,
  wanted: WaitRequest,
): Promise<Refused | { readonly output: unknown }> {
  const { signal } = generation.call;
  try {
    return { output: (await waitsOf(attempt.run).wait(wanted, scope, signal)).value };
  } catch (error) {
    if (signal.aborted) throw stopped();
    const { retryable, code, message } = error as Error & Partial<StepFailure>;
    if (error instanceof JournalFault || retryable !== false) throw error;
    return { error: { code: code ?? 'invalid_input', message: cleanText(message) } };
  }
}

export function failed(code: string, message: string): Refused {
  return { error: { code, message: cleanText(message) } };
}
