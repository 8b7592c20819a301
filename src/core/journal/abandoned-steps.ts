/**
 * Abandoned steps: calls of models and tools that were under way when the claim of their job ended. The
 * cost of such a call is unknown, so its usage is null. Budgets are charged an estimate: the expected tokens of
 * its prompt and the recorded part of its streamed text.
 */

import type { Transaction } from '../../adapters/database/database.ts';
import { nothingReported } from '../../adapters/models/model.ts';
import { type PriceBody, priceOfBody } from '../../adapters/models/price.ts';
import { tokensOfBytes } from '../../adapters/models/text-size.ts';
import { newId } from '../../kernel/ids.ts';
import { addDialogue } from '../conversations/record.ts';
import { type Charge, charge } from '../usage/reservations.ts';
import { listJobsAbove } from './agent-tree-queries.ts';
import { costsOf } from './call-costs.ts';
import { countedOwnersOf, ownersOf, payersOf } from './payers.ts';
import { endSteps, listActiveSteps, type StepRow } from './step-queries.ts';
import { endedStep, type JournalJob } from './step-rows.ts';
import { streamedBytesOf } from './streamed-bytes.store.ts';

/** A claim that ends. */
export interface EndedClaim {
  readonly job: JournalJob;
  readonly isCancelled: boolean;
}

/** Ends the abandoned steps of claims, in the transaction that ends the claims. */
export async function endAbandonedSteps(
  tx: Transaction,
  claims: readonly EndedClaim[],
  now: number,
): Promise<void> {
  const charges = (await Promise.all(claims.map((claim) => endStepsOf(tx, claim, now)))).flat();
  // One call locks all owners in a fixed order, so transactions do not deadlock.
  await charge(tx, charges);
}

/** Ends the abandoned steps of one claim. Returns the charges for its calls. */
async function endStepsOf(
  tx: Transaction,
  { job, isCancelled }: EndedClaim,
  now: number,
): Promise<Charge[]> {
  const steps = await listActiveSteps(tx, { job_id: job.id });
  if (steps.length === 0) return [];
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
      tokens: { ...nothingReported, cost: null },
      data: null,
      isDialogue: false,
      isUnfinished: true,
    })),
  );
  const streamed = calls.length === 0 ? new Map() : await streamedBytesOf(tx, job.id);
  const spent = new Map(calls.map((call) => [call.n, lostCosts(call, streamed.get(call.n) ?? 0)]));
  await endSteps(
    tx,
    steps.map(({ n }) => ({
      ...endedStep(job, n, isCancelled ? cancelled : lost, ids.get(n) ?? null, now),
      estimated: spent.get(n)?.estimated ?? 0,
      estimated_cost: spent.get(n)?.estimatedCost ?? 0,
    })),
  );
  const above = await listJobsAbove(tx, job.id);
  const owners = await payersOf(tx, job, await ownersOf(tx, job, above), now);
  const owning = { organizationId: job.organization_id, owners };
  return calls.map((call) => ({
    ...owning,
    reservedAt: call.started_at,
    reserved: call.reserved,
    reservedCost: call.reserved_cost,
    usage: nothingReported,
    ...lostCosts(call, streamed.get(call.n) ?? 0),
    counted: countedOwnersOf(job),
  }));
}

/** The charge for a call whose process was lost: at most what the call reserved. */
function lostCosts({ reserved, expected_prompt: prompt, price }: StepRow, streamedBytes: number) {
  // A step without `expected_prompt` is of an earlier version.
  const expected = Math.min(reserved, prompt ?? reserved);
  const estimated = Math.min(reserved, expected + tokensOfBytes(streamedBytes));
  const known = price === null ? null : priceOfBody(JSON.parse(price) as PriceBody);
  return { estimated, ...costsOf(nothingReported, estimated, { expected, price: known }) };
}

const lost = {
  status: 'interrupted',
  error: { code: 'worker_lost', message: 'The run ended while this was under way' },
} as const;

const cancelled = {
  status: 'interrupted',
  error: { code: 'cancelled', message: 'The job was cancelled while this was under way' },
} as const;
