/**
 * The Idempotency-Keys of a batch of requests. All are taken at once and in one order, before any
 * other check. The key of a request that is then refused goes to the next request with that key, or
 * is released, in the same transaction.
 */
import { hash } from 'node:crypto';
import type { Transaction } from '../../adapters/database/database.ts';
import type { Caller } from '../../kernel/caller.ts';
import {
  findByIdempotencyKey,
  passIdempotencyKeys,
  releaseIdempotencyKeys,
  type TakenKey,
  takeIdempotencyKeys,
} from './idempotency.store.ts';
import type { JobRow } from './jobs.store.ts';

/** How long an Idempotency-Key is remembered (docs/decisions/jobs.md). */
export const idempotencyMs = 24 * 60 * 60 * 1000;

/** The key of a request. */
export interface IdempotencyKey {
  /** The owner of the key: the id of an API key or of a trigger. */
  readonly owner: string;
  readonly key: string;
  /** Equal for equal requests. */
  readonly fingerprint: string;
}

/** The key that a caller gives a request; undefined without one. Equal `parts` make equal requests. */
export function keyOfCaller(
  { keyId }: Caller,
  key: string | undefined,
  parts: readonly unknown[],
): IdempotencyKey | undefined {
  if (key === undefined) return undefined;
  return { owner: keyId, key, fingerprint: hash('sha256', JSON.stringify(parts)) };
}

/** A key and the job that its request is about to become. */
export interface Candidate<Job> {
  readonly idempotency: IdempotencyKey;
  readonly job: Job;
}

/** The job and the fingerprint of the request that holds a key. */
export interface Holder<Job> {
  readonly fingerprint: string;
  readonly job: Job;
}

type AnyJob = Pick<JobRow, 'id' | 'created_at'>;

interface Known<Job> {
  /** The row by which this transaction took the key; undefined when an earlier request has it. */
  readonly taken: TakenKey | undefined;
  holder: Holder<Job | JobRow> | undefined;
}

export class KeysOfBatch<Job extends AnyJob> {
  readonly #known: ReadonlyMap<string, Known<Job>>;

  constructor(known: ReadonlyMap<string, Known<Job>>) {
    this.#known = known;
  }

  /** Which request holds the key; undefined when none does, or its job is gone. */
  holder(key: IdempotencyKey): Holder<Job | JobRow> | undefined {
    return this.#find(key)?.holder;
  }

  /** Whether the next request may hold it. */
  isFree(key: IdempotencyKey): boolean {
    const known = this.#find(key);
    return known?.taken !== undefined && known.holder === undefined;
  }

  /** Gives the key to a request that was accepted. */
  give({ idempotency, job }: Candidate<Job | JobRow>): void {
    const known = this.#find(idempotency);
    if (known !== undefined) known.holder = { fingerprint: idempotency.fingerprint, job };
  }

  /** Records which request holds each key after the batch. */
  async record(tx: Transaction): Promise<void> {
    const passed: TakenKey[] = [];
    const released: TakenKey[] = [];
    for (const { taken, holder } of this.#known.values()) {
      if (taken === undefined) continue;
      if (holder === undefined) released.push(taken);
      else if (holder.job.id !== taken.job_id) {
        passed.push({ ...taken, fingerprint: holder.fingerprint, job_id: holder.job.id });
      }
    }
    await passIdempotencyKeys(tx, passed);
    await releaseIdempotencyKeys(tx, released);
  }

  #find({ owner, key }: IdempotencyKey): Known<Job> | undefined {
    return this.#known.get(nameOf(owner, key));
  }
}

export async function takeKeys<Job extends AnyJob>(
  tx: Transaction,
  candidates: readonly Candidate<Job>[],
  now: number,
): Promise<KeysOfBatch<Job>> {
  const firsts = new Map<string, TakenKey>();
  for (const { idempotency, job } of candidates) {
    const name = nameOf(idempotency.owner, idempotency.key);
    if (!firsts.has(name)) firsts.set(name, rowOf(idempotency, job));
  }
  return new KeysOfBatch(await knownKeys<Job>(tx, firsts, now - idempotencyMs));
}

async function knownKeys<Job>(
  tx: Transaction,
  firsts: ReadonlyMap<string, TakenKey>,
  forgottenBefore: number,
): Promise<Map<string, Known<Job>>> {
  const known = new Map<string, Known<Job>>();
  if (firsts.size === 0) return known;
  const rows = await takeIdempotencyKeys(tx, [...firsts.values()], forgottenBefore);
  const taken = new Set(rows.map((row) => nameOf(row.owner, row.idempotency_key)));
  await Promise.all(
    [...firsts].map(async ([name, row]) => {
      if (taken.has(name)) {
        known.set(name, { taken: row, holder: undefined });
        return;
      }
      const earlier = await findByIdempotencyKey(tx, { ...row, forgotten_before: forgottenBefore });
      const holder = earlier && { fingerprint: earlier.fingerprint, job: earlier };
      known.set(name, { taken: undefined, holder });
    }),
  );
  return known;
}

const nameOf = (owner: string, key: string) => `${owner} ${key}`;

function rowOf({ owner, key, fingerprint }: IdempotencyKey, job: AnyJob): TakenKey {
  return { owner, idempotency_key: key, fingerprint, job_id: job.id, created_at: job.created_at };
}
