/**
 * Abandoned steps: calls of models and tools that were under way when the claim of their job ended. The
 * cost of such a call is unknown, so its usage is null, and its whole reservation is charged.
 */
import { addDialogue } from '../conversations/record.ts';
import type { Transaction } from '../database/database.ts';
import { endSteps, listActiveSteps } from '../journal/step-queries.ts';
import { endedStep, type JournalJob } from '../journal/step-rows.ts';
import { newId } from '../kernel/ids.ts';
import { nothingReported } from '../models/model.ts';
import { type Charge, charge } from '../usage/reservations.ts';
import { type GenerationDeps, ownersOf } from './thinking-claim.ts';

/** A claim that ends. */
export interface EndedClaim {
  readonly job: JournalJob;
  readonly isCancelled: boolean;
}

type AbandonedStepsDeps = Pick<GenerationDeps, 'clock' | 'scheduledJobOf' | 'agentsAbove'>;

/** Ends the abandoned steps of claims, in the transaction that ends the claims. */
export async function endAbandonedSteps(
  deps: AbandonedStepsDeps,
  tx: Transaction,
  claims: readonly EndedClaim[],
): Promise<void> {
  const charges = (await Promise.all(claims.map((claim) => endStepsOf(deps, tx, claim)))).flat();
  // In one call, which locks the owners in one order, so that transactions do not deadlock.
  await charge(tx, charges);
}

/** Ends the abandoned steps of one claim. Returns the charges for its calls. */
async function endStepsOf(
  deps: AbandonedStepsDeps,
  tx: Transaction,
  { job, isCancelled }: EndedClaim,
): Promise<Charge[]> {
  const steps = await listActiveSteps(tx, { job_id: job.id });
  if (steps.length === 0) return [];
  const now = deps.clock.now();
  const calls = steps.filter(({ kind }) => kind === 'model');
  const ids = new Map(calls.map(({ n }) => [n, newId()]));
  await addDialogue(
    tx,
    calls.map(({ n }) => ({
      id: ids.get(n) as string,
      conversation_id: job.conversation_id,
      job_id: job.id,
      at: now,
      role: 'assistant' as const,
      content: '',
      tokens: nothingReported,
      data: null,
      isDialogue: false,
    })),
  );
  await endSteps(
    tx,
    steps.map(({ n, kind, reserved }) => ({
      ...endedStep(job, n, isCancelled ? cancelled : lost, ids.get(n) ?? null, now),
      estimated: kind === 'model' ? reserved : 0,
    })),
  );
  const owning = { organizationId: job.organization_id, owners: await ownersOf(deps, tx, job) };
  return calls.map(({ started_at, reserved }) => ({
    ...owning,
    reservedAt: started_at,
    reserved,
    usage: nothingReported,
    estimated: reserved,
  }));
}

const lost = {
  status: 'interrupted',
  error: { code: 'worker_lost', message: 'The run ended while this was under way' },
} as const;

const cancelled = {
  status: 'interrupted',
  error: { code: 'cancelled', message: 'The job was cancelled while this was under way' },
} as const;
