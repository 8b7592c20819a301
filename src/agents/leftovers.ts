/**
 * What a claim of a job has left behind when it ends: calls of models and tools that were under way.
 * Nobody knows what such a call cost, so it is shown as unknown, and all that was held back is charged.
 */
import { addDialogue } from '../conversations/record.ts';
import type { Handle, Transaction } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import { newId } from '../kernel/ids.ts';
import { nothingReported } from '../models/model.ts';
import type { Charge, Reservations, UsageOwner } from '../usage/reservations.ts';
import { endedStep, type ThinkingJob } from './step-rows.ts';
import { endSteps, listActiveSteps } from './steps.store.ts';

/** A claim that ends. */
export interface EndedClaim {
  readonly job: ThinkingJob;
  readonly isCancelled: boolean;
}

/** Ends the steps that claims have left behind, in the transaction that ends the claims. */
export type EndLeftovers = (tx: Transaction, claims: readonly EndedClaim[]) => Promise<void>;

export function createLeftovers(parts: {
  reservations: Pick<Reservations, 'charge'>;
  clock: Clock;
  /** Whose tokens the calls of a job use. */
  ownersOf(db: Handle, job: ThinkingJob): Promise<UsageOwner[]>;
}): EndLeftovers {
  const { reservations, clock, ownersOf } = parts;

  /** What is to be charged for what a claim has left behind. */
  async function endOf(tx: Transaction, { job, isCancelled }: EndedClaim): Promise<Charge[]> {
    const steps = await listActiveSteps(tx, job.id);
    if (steps.length === 0) return [];
    const now = clock.now();
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
    const owning = { organizationId: job.organization_id, owners: await ownersOf(tx, job) };
    return calls.map(({ started_at, reserved }) => ({
      ...owning,
      reservedAt: started_at,
      reserved,
      usage: nothingReported,
      estimated: reserved,
    }));
  }

  return async (tx, claims) => {
    const charges = (await Promise.all(claims.map((claim) => endOf(tx, claim)))).flat();
    // All at once, for whoever charges holds what it has charged: in one order, nobody waits in a ring.
    await reservations.charge(tx, charges);
  };
}

const lost = {
  status: 'interrupted',
  error: { code: 'worker_lost', message: 'The run ended while this was under way' },
} as const;

const cancelled = {
  status: 'interrupted',
  error: { code: 'cancelled', message: 'The job was cancelled while this was under way' },
} as const;
