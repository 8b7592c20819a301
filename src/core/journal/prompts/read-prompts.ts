/** Reads kept prompts: whole, and what differs from the one before in the same dialogue. */
import type { Database, Handle } from '../../../adapters/database/database.ts';
import type { PromptState } from '../../../adapters/database/tables.ts';
import { timestampOrNull } from '../../../kernel/clock.ts';
import { notFound } from '../../../kernel/errors.ts';
import type { Json } from '../../../kernel/json.ts';
import { findModelStep, type ModelStep } from '../step-queries.ts';
import { differenceOf, type PromptDifference } from './prompt-difference.ts';
import { PromptReader, promptsNamed, type WrittenPrompt } from './prompt-form.ts';
import {
  findPrompt,
  findPromptBefore,
  listBodies,
  listChain,
  type PromptRow,
} from './prompts.store.ts';

/**
 * Why a prompt is not kept. `off`: by the settings. `earlier_job`: the call was made by the job that this one resumes.
 */
export type ShownPromptState = PromptState | 'off' | 'earlier_job';

/** What is said of the prompt of a step without a row. */
export const stateWithout = ({ attempt }: Pick<ModelStep, 'attempt'>): ShownPromptState =>
  // Copied steps belong to no attempt of their job.
  attempt === null ? 'earlier_job' : 'off';

/** The prompt of a step, whole or as the difference; `404 not_found` for a step that called no model. */
export async function promptOfStep(
  { read }: Database,
  jobId: string,
  n: number,
  as: 'whole' | 'difference',
) {
  const step = await findModelStep(read, { job_id: jobId, n });
  if (step === undefined) throw notFound('Prompt');
  const row = await findPrompt(read, { job_id: jobId, n });
  const body = row?.state === 'kept' ? await bodyOf(read, row) : null;
  const before = row === undefined ? undefined : await findPromptBefore(read, row, n);
  const isWhole = as === 'whole' || body === null || row === undefined;
  return {
    step: n,
    generation_id: step.generation,
    turn: step.turn,
    model: step.name,
    // A row whose text refers to one that has just expired.
    state: row?.state === 'kept' && body === null ? 'expired' : (row?.state ?? stateWithout(step)),
    kept_at: timestampOrNull(row?.created_at ?? null),
    bytes: row === undefined ? null : Number(row.bytes),
    stored_bytes: row === undefined ? null : Number(row.kept_bytes),
    since_step: before?.n ?? null,
    body: as === 'whole' ? body : null,
    difference: isWhole ? null : await differenceSince(read, before, body),
  };
}

async function differenceSince(
  db: Handle,
  before: PromptRow | undefined,
  body: Json,
): Promise<PromptDifference> {
  return differenceOf((before && (await bodyOf(db, before))) ?? {}, body);
}

/** What was sent; null where a part of it is gone. */
async function bodyOf(db: Handle, row: PromptRow): Promise<Json | null> {
  return (await readerOf(db, row)).reader.bodyOf(row.n);
}

/** A reader that has all that a prompt refers to, and how many prompts go on from one another up to it. */
export async function readerOf(db: Handle, row: PromptRow) {
  const chain = await listChain(db, row);
  const written = new Map(chain.map(writtenOf));
  const named = new Set([...written].flatMap(([n, one]) => promptsNamed(one, n)));
  const missing = [...named].filter((n) => !written.has(n));
  const others = missing.length === 0 ? [] : await listBodies(db, row.job_id, missing);
  for (const other of others) written.set(...writtenOf(other));
  return { reader: new PromptReader(written), chain: chain.length };
}

function writtenOf({ n, body }: Pick<PromptRow, 'n' | 'body'>): [number, WrittenPrompt] {
  return [n, JSON.parse(body ?? '{"fields":[]}') as WrittenPrompt];
}
