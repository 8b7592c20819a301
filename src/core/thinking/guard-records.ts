/** What guards do, in the journal of a claim: their steps, and the messages that are held until they have seen them. */
import type { AssistantMessage, ToolMessage } from '../../adapters/models/model.ts';
import type { GuardVerdict } from '../agents/guards.ts';
import { changeTask, type Release, releaseMessage } from '../conversations/record.ts';
import { nextStep } from '../journal/journal-steps.ts';
import {
  endGuardStep,
  findGuardResult,
  insertSteps,
  listActiveSteps,
  restartStep,
  setToolResult,
} from '../journal/step-queries.ts';
import { activeStep, type StepError } from '../journal/step-rows.ts';
import { jobsOnRecord } from '../journal/taken-over.ts';
import type { MemoryChange } from '../memories/run-memory.ts';
import type { Generations } from './generations.ts';

/** The content of a message that its guards have not passed. */
export const heldContent = '[held until the guards of the agent have seen it]';

/** A message that guards have not passed, as its data has it. */
export type Held<Message> = Message & { readonly isHeld: true };

/** A message as its data has it, which says whether it is held. */
export function marked<Message extends AssistantMessage | ToolMessage>(
  message: Message,
  isHeld = false,
): Message | Held<Message> {
  return isHeld ? { ...message, isHeld } : message;
}

/** Without the mark, where it has one. */
export function withoutMark<Message extends object>(
  message: Message | Held<Message>,
): { readonly message: Message; readonly isHeld: boolean } {
  if (!('isHeld' in message)) return { message, isHeld: false };
  const { isHeld: _, ...rest } = message;
  return { message: rest as unknown as Message, isHeld: true };
}

interface GuardPlace {
  readonly generation: string;
  readonly turn: number;
  readonly parent: number | null;
  /** The skill. */
  readonly name: string;
  readonly key: string;
}

/** Begins the step of a guard, or the one that an earlier claim has left; its number. */
export async function beginGuard(
  { job, journal }: Generations,
  { key, ...place }: GuardPlace,
  left: number | null,
): Promise<number> {
  const now = journal.clock.now();
  if (left !== null) {
    await journal.write((tx) => restartStep(tx, job, left, now));
    return left;
  }
  const n = await nextStep(journal);
  await journal.write(async (tx, isRepeat) => {
    const active = isRepeat ? await listActiveSteps(tx, { job_id: job.id }) : [];
    if (active.some((step) => step.n === n)) return;
    const step = { ...place, n, kind: 'guard', call_id: key, attempt: job.attempt } as const;
    await insertSteps(tx, [activeStep(job, { ...step, started_at: now })]);
  });
  return n;
}

interface GuardEnd {
  readonly verdict: GuardVerdict;
  /** The text in place of the one that it was given. */
  readonly text: string | null;
  readonly memory: readonly MemoryChange[];
  readonly error?: StepError;
}

export function endGuard({ job, journal }: Generations, n: number, end: GuardEnd): Promise<void> {
  const { verdict, text, memory, error } = end;
  const row = {
    job_id: job.id,
    n,
    status: error === undefined ? ('completed' as const) : ('failed' as const),
    error: error === undefined ? null : JSON.stringify(error),
    guard: JSON.stringify(verdict),
    result: text === null ? null : JSON.stringify(text),
    memory: memory.length === 0 ? null : JSON.stringify(memory),
    now: journal.clock.now(),
  };
  return journal.write((tx) => endGuardStep(tx, row));
}

/** The text that a guard on record gave in place of another; null without one. */
export async function findReplacement({ job, journal }: Generations, n: number) {
  const row = await findGuardResult(journal.database.read, { job_id: job.id, n });
  return row?.result == null ? null : (JSON.parse(row.result) as string);
}

/** Records a held message as its guards have passed it; `whole` is the result of a tool that is longer than its message. */
export function recordRelease(
  { job, journal }: Generations,
  message: Release,
  whole?: string | null,
): Promise<void> {
  const { id: job_id, conversation_id } = job;
  return journal.write(async (tx) => {
    await releaseMessage(tx, { ...message, job_id, conversation_id });
    if (whole === undefined) return;
    const result = whole === null ? null : JSON.stringify(whole);
    await setToolResult(tx, { job_id, n: message.n, result });
  });
}

/**
 * Records a message of a user as the guards have left it: one of an earlier job by its id, else that with which this job, or one
 * that it resumes, began. The guards of a trial are not those of its agent, so they mark no message as judged.
 */
export function recordTask(
  { job, journal }: Generations,
  content: string,
  id: string | null = null,
  mark = 1,
): Promise<void> {
  const { conversation_id, agent_overrides } = job;
  const message = {
    conversation_id,
    id,
    job_ids: jobsOnRecord(job),
    content,
    mark: agent_overrides === null ? mark : 0,
  };
  return journal.write((tx) => changeTask(tx, message));
}
