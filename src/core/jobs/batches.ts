/**
 * Batches: up to a thousand requests to run skills, each judged as a request of its own, accepted in one transaction.
 * The sweep finds the batches whose jobs have all ended, so that the end of a job pays nothing for its batch.
 *
 * It has more than 300 lines because how a batch is accepted, answered again and counted has to be read together.
 */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { Caller } from '../../kernel/caller.ts';
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { invalid, invalidIn, notFound, PlatformError } from '../../kernel/errors.ts';
import { allAgents, isId, newId } from '../../kernel/ids.ts';
import { compileSchema } from '../../kernel/json-schema.ts';
import { requireMoment } from '../../kernel/moment.ts';
import { canonicalJson } from '../../kernel/text.ts';
import type { Context } from '../context/context.ts';
import { appendEvents } from '../events/outbox.ts';
import type { Acceptor, WorkRequest } from './accept.ts';
import { BatchItem, type Item } from './batches.schemas.ts';
import {
  type BatchRow,
  completeBatch,
  countsOfBatch,
  findBatch,
  findBatchOfKey,
  findEndedBatches,
  forgetKey,
  insertBatch,
  listBatches,
  setResults,
} from './batches.store.ts';
import type { Execution } from './execute.ts';
import { idempotencyMs } from './idempotency.ts';
import type { JobTiming } from './timing.ts';

/** Open batches that one sweep reads. */
const readMax = 1_000;

/** After so long, the judgement of items lets other work in. */
const turnMs = 10;

/** A request for a batch. */
export interface BatchRequest {
  readonly items: readonly unknown[];
  /** Whether one refused item refuses all. */
  readonly isAtomic: boolean;
  readonly idempotencyKey: string | undefined;
}

/** How an item was answered: by its job, or by the code and the message of its refusal. */
type ItemAnswer =
  | { readonly job_id: string }
  | { readonly error: string; readonly message: string };

interface BatchesParts {
  readonly execution: Execution;
  readonly acceptor: Acceptor;
}

const itemIssues = compileSchema(BatchItem as unknown as Record<string, unknown>);
const timingNames = { runAt: 'run_at', expiresIn: 'expires_in' };

export class Batches {
  readonly #context: Context;
  readonly #parts: BatchesParts;

  constructor(context: Context, parts: BatchesParts) {
    this.#context = context;
    this.#parts = parts;
  }

  /** Accepts a batch, or returns the answer of an earlier equal request. */
  async create(caller: Caller, request: BatchRequest) {
    const { items, isAtomic, idempotencyKey } = request;
    // Before the transaction: the text may have megabytes.
    const fingerprint = idempotencyKey === undefined ? null : fingerprintOf(items, isAtomic);
    const { database, clock } = this.#context;
    const key = { api_key_id: caller.keyId, idempotency_key: idempotencyKey ?? '' };
    // Before the items are judged: what they refer to may have changed since, and their moments may have passed.
    const earlier = fingerprint === null ? undefined : await findBatchOfKey(database.read, key);
    if (earlier !== undefined && Number(earlier.created_at) >= clock.now() - idempotencyMs) {
      return replayOf(earlier, fingerprint);
    }
    const judged: (WorkRequest | PlatformError)[] = [];
    let since = performance.now();
    for (const [i, item] of items.entries()) {
      const one = await this.#judge(caller, item);
      if (one instanceof PlatformError && isAtomic) throw ofItem(one, i);
      judged.push(one);
      if (performance.now() - since > turnMs) {
        await setImmediate();
        since = performance.now();
      }
    }
    return database.write((tx) => this.#accept(tx, caller, request, judged, fingerprint));
  }

  async get(organizationId: string, id: string) {
    const { read } = this.#context.database;
    const batch = await this.find(organizationId, id);
    const counts =
      batch.completed_at === null
        ? Object.fromEntries(await countsOfBatch(read, batch.id))
        : { completed: batch.completed, failed: batch.failed, cancelled: batch.cancelled };
    const {
      queued = 0,
      active = 0,
      waiting = 0,
      completed = 0,
      failed = 0,
      cancelled = 0,
    } = counts;
    const left = queued + active + waiting;
    return {
      ...summaryOf(batch),
      counts: { queued, active, waiting, completed, failed, cancelled },
      progress: batch.accepted === 0 ? 1 : (batch.accepted - left) / batch.accepted,
    };
  }

  /** The organization's batch, or `404 not_found`. */
  async find(organizationId: string, id: string): Promise<BatchRow> {
    const { read } = this.#context.database;
    const batch = isId(id) ? await findBatch(read, organizationId, id) : undefined;
    if (batch === undefined) throw notFound('Batch');
    return batch;
  }

  async list(organizationId: string, page: PageAsked) {
    const { rows, total } = await listBatches(this.#context.database.read, organizationId, page);
    return { batches: rows.map(summaryOf), total };
  }

  /** The work of an item, or its refusal. */
  async #judge(caller: Caller, given: unknown): Promise<WorkRequest | PlatformError> {
    try {
      const issues = itemIssues(given);
      if (issues !== null) throw invalidIn(issues);
      const item = given as Item;
      const { execution } = this.#parts;
      const [category = '', version = '', skillName = ''] = item.skill.split('/');
      const target = await execution.findTarget(caller, { category, version, skillName }, () => ({
        agentId: item.agent_id,
      }));
      const options = {
        userId: item.user_id ?? caller.clientName,
        isForUser: item.user_id !== undefined,
        triggerType: 'api' as const,
        timing: timingOf(item),
        concurrencyKey: item.concurrency_key,
        inputField: 'input',
      };
      return await execution.workOf(caller, target, item.input, options, timingNames);
    } catch (error) {
      if (error instanceof PlatformError && error.status < 500) return error;
      throw error;
    }
  }

  async #accept(
    tx: Transaction,
    caller: Caller,
    { idempotencyKey }: BatchRequest,
    judged: readonly (WorkRequest | PlatformError)[],
    fingerprint: string | null,
  ) {
    const now = this.#context.clock.now();
    const row = {
      id: newId(),
      organization_id: caller.organizationId,
      api_key_id: caller.keyId,
      accepted: 0,
      refused: 0,
      results: '[]',
      created_at: now,
      completed_at: null,
    };
    const key = { api_key_id: caller.keyId, idempotency_key: idempotencyKey ?? '' };
    if (idempotencyKey !== undefined) await forgetKey(tx, key, now - idempotencyMs);
    const named = { idempotency_key: idempotencyKey ?? null, fingerprint };
    if (!(await insertBatch(tx, { ...row, ...named }))) {
      return replayOf(await findBatchOfKey(tx, key), fingerprint);
    }
    const batchId = row.id;
    const works: WorkRequest[] = [];
    for (const one of judged) if (!(one instanceof PlatformError)) works.push({ ...one, batchId });
    const acceptances = await this.#parts.acceptor.acceptWithin(tx, works);
    const jobs = acceptances.flatMap((one) => ('job' in one ? one.job.id : []));
    const results = judged.map((one): ItemAnswer => {
      if (one instanceof PlatformError) return { error: one.code, message: one.message };
      return { job_id: jobs.shift() ?? '' };
    });
    const recorded = {
      id: batchId,
      accepted: works.length,
      refused: judged.length - works.length,
      results: JSON.stringify(results),
    };
    await setResults(tx, recorded);
    return { batch: answerOf({ ...row, ...recorded }), isReplay: false };
  }
}

/** Completes the batches whose jobs have all ended, in turns where there are many. */
export class BatchEnds {
  readonly #context: Context;
  #after = '';

  constructor(context: Context) {
    this.#context = context;
  }

  async complete(): Promise<void> {
    const { database, clock } = this.#context;
    const { ended, last } = await findEndedBatches(database.read, this.#after, readMax);
    this.#after = last ?? '';
    for (const id of ended) await completeOne(database, id, clock.now());
  }
}

async function completeOne(database: Database, id: string, now: number): Promise<void> {
  await database.write(async (tx) => {
    const counts = await countsOfBatch(tx, id);
    const completed = counts.get('completed') ?? 0;
    const failed = counts.get('failed') ?? 0;
    const cancelled = counts.get('cancelled') ?? 0;
    const batch = await completeBatch(tx, { id, completed_at: now, completed, failed, cancelled });
    if (batch === undefined) return;
    const data = {
      batch_id: id,
      accepted: batch.accepted,
      completed,
      failed,
      cancelled,
      created_at: timestamp(Number(batch.created_at)),
    };
    const organizationId = batch.organization_id;
    const event = { type: 'batch.completed' as const, organizationId, agentId: allAgents, data };
    await appendEvents(tx, [event], now);
  });
}

function timingOf(item: Item): JobTiming | undefined {
  const { run_at, delay_seconds, expires_in } = item;
  if (run_at === undefined && delay_seconds === undefined && expires_in === undefined) {
    return undefined;
  }
  if (run_at !== undefined && delay_seconds !== undefined) {
    throw invalid('delay_seconds', 'must not be sent together with run_at');
  }
  return {
    runAt: run_at === undefined ? undefined : requireMoment('run_at', run_at),
    delayMs: delay_seconds === undefined ? undefined : delay_seconds * 1000,
    expiresInMs: expires_in === undefined ? undefined : expires_in * 1000,
  };
}

/** The refusal of an item, as that of the whole request. */
function ofItem({ code, message, extras }: PlatformError, i: number): PlatformError {
  const details = extras.details?.map(({ field, issue }) => ({
    field: field === 'body' ? `items.${i}` : `items.${i}.${field}`,
    issue,
  }));
  return new PlatformError(code, `items.${i}: ${message}`, {
    ...extras,
    ...(details === undefined ? {} : { details }),
  });
}

function fingerprintOf(items: readonly unknown[], isAtomic: boolean): string {
  return createHash('sha256').update(canonicalJson({ items, isAtomic })).digest('hex');
}

/** The answer of the batch that has the key; throws `422` where its request was another one. */
function replayOf(earlier: BatchRow | undefined, fingerprint: string | null) {
  if (earlier === undefined || earlier.fingerprint !== fingerprint) {
    throw new PlatformError(
      'idempotency_key_reused',
      'This Idempotency-Key was used for another batch within the last 24 hours',
    );
  }
  return { batch: answerOf(earlier), isReplay: true };
}

interface Summary {
  readonly id: string;
  readonly accepted: number;
  readonly refused: number;
  readonly created_at: number;
  readonly completed_at: number | null;
}

function summaryOf({ id, accepted, refused, created_at, completed_at }: Summary) {
  const at = completed_at === null ? null : Number(completed_at);
  return {
    id,
    accepted,
    refused,
    created_at: timestamp(Number(created_at)),
    completed_at: timestampOrNull(at),
  };
}

function answerOf(batch: Summary & { readonly results: string }) {
  return { ...summaryOf(batch), items: JSON.parse(batch.results) as ItemAnswer[] };
}
