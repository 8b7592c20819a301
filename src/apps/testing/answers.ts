/** The answers to what a scripted run asks of others: models, people, senders of events, other skills. */

import type { RunPart } from '../../core/journal/run-part.ts';
import type { WaitRequest } from '../../core/journal/waits.ts';
import { generationIdOf, readGenerateRequest } from '../../core/thinking/generate-request.ts';
import { inputDigestOf } from '../../kernel/input-digest.ts';
import { recordGeneration, type ScriptedJournal, type WaitEnding } from './journal.ts';
import { answerModel } from './models.ts';
import { endingOfApproval, endingOfEvent, failureOf, type Script } from './script.ts';
import { type AskedApproval, ScriptError } from './types.ts';

/** Executes a child run; returns its output and when it ended, or throws its error. */
export type RunChild = (
  skill: string,
  input: unknown,
) => Promise<{ readonly output: unknown; readonly at: number }>;

export interface AnswerDeps {
  readonly journal: ScriptedJournal;
  readonly script: Script;
  readonly child: RunChild;
  /** Executes a skill that the model calls. */
  readonly tool: RunChild;
}

/** The answer of the model, recorded or scripted. Each correction is a request of its own. */
export async function answerGenerate(
  { journal, script, tool }: AnswerDeps,
  payload: unknown,
  part: RunPart,
): Promise<unknown> {
  const asked = readGenerateRequest(payload);
  const { request, corrections } = asked;
  const key = `${generationIdOf(part.path, asked)}:${corrections.length}`;
  const digest = inputDigestOf(request);
  const nth = asked.nth + corrections.length;
  const wanted = { key, name: 'generate', parent: part.step, digest, nth };
  const prompt = corrections.at(-1) ?? request.prompt;
  const result = await recordGeneration(journal, wanted, async () => {
    try {
      return { value: await answerModel({ script, tool }, { ...request, prompt }) };
    } catch (error) {
      if (error instanceof ScriptError) throw error;
      return { error: failureOf(error) };
    }
  });
  if ('error' in result) throw Object.assign(new Error(), result.error);
  return result.value;
}

/** How a wait ends. */
export async function endingOf(
  { journal, script, child }: AnswerDeps,
  { kind, name }: Pick<WaitRequest, 'kind' | 'name'>,
  input: Readonly<Record<string, unknown>>,
  dueAt: number,
): Promise<WaitEnding> {
  const now = journal.clock.now();
  switch (kind) {
    case 'sleep':
      return { at: dueAt, result: { value: null } };
    case 'event': {
      const wanted = input as { event: string; key: string | null };
      return endingOfEvent(script, name, wanted, { now, dueAt });
    }
    case 'approval': {
      const asked = input as Omit<AskedApproval, 'name'>;
      return endingOfApproval(script, { name, ...asked }, { now, dueAt });
    }
    case 'run':
      return endingOfChild(child, `${input['skill']}`, input['input'], now);
  }
}

async function endingOfChild(
  child: RunChild,
  skill: string,
  input: unknown,
  now: number,
): Promise<WaitEnding> {
  try {
    const { output, at } = await child(skill, input);
    return { at, result: { value: output } };
  } catch (error) {
    if (error instanceof ScriptError) throw error;
    // The child has had its attempts.
    return { at: now, result: { error: { ...failureOf(error), retryable: false } } };
  }
}
