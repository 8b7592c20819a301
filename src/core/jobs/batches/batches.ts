/**
 * Batches: up to a thousand requests to run skills, each judged as a request of its own, accepted in one transaction.
 * The sweep finds the batches whose jobs have all ended, so that the end of a job pays nothing for its batch.
 *
 * It has more than 300 lines because how a batch is accepted, answered again and counted has to be read together.
 */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Database, Transaction } from '../../../adapters/database/database.ts';
import type { PageAsked } from '../../../adapters/database/page-bytes.ts';
import { bodyBytesMax } from '../../../adapters/http/body.ts';
import type { Caller } from '../../../kernel/caller.ts';
import { timestamp, timestampOrNull } from '../../../kernel/clock.ts';
import { type Issue, invalid, invalidIn, notFound, PlatformError } from '../../../kernel/errors.ts';
import { allAgents, isId, newId } from '../../../kernel/ids.ts';
import { compileSchema } from '../../../kernel/json-schema.ts';
import { requireMoment } from '../../../kernel/moment.ts';
import { priorities } from '../../../kernel/priority.ts';
import { canonicalJson } from '../../../kernel/text.ts';
import type { Context } from '../../context/context.ts';
import { appendEvents } from '../../events/outbox.ts';
import type { Acceptance, Acceptor, WorkRequest } from '../accept.ts';
import { type Executed, type Execution, otherUsersKey } from '../execute.ts';
import { idempotencyMs } from '../idempotency.ts';
import { type JobKey, jobKeyOf } from '../job-keys/job-keys.ts';
import type { JobTiming } from '../timing.ts';
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
  lockOpenBatch,
  setResults,
} from './batches.store.ts';

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

/** How an item was answered: by its job, or by its refusal. */
type ItemAnswer =
  | { readonly job_id: string; readonly job_key_result?: Executed['keyResult'] & string }
  | { readonly error: string; readonly message: string; readonly details?: Issue[] };

/** A request that makes a batch only once: the key of its client, and what it has to be equal to. */
interface BatchKey {
  readonly api_key_id: string;
  readonly idempotency_key: string;
  readonly fingerprint: string;
}

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
    const { database, clock } = this.#context;
    const key = idempotencyKey === undefined ? null : keyOf(caller, idempotencyKey, request);
    // Before the items are judged: what they refer to may have changed since, and their moments may have passed.
    const earlier = key === null ? undefined : await findBatchOfKey(database.read, key);
    if (
      key !== null &&
      earlier !== undefined &&
      Number(earlier.created_at) >= clock.now() - idempotencyMs
    ) {
      return replayOf(earlier, key);
    }
    const judged: (WorkRequest | PlatformError)[] = [];
    const keys = new Map<string, number>();
    let since = performance.now();
    for (const [i, item] of items.entries()) {
      const one = withoutRepeat(await this.#judge(caller, item), i, keys);
      if (one instanceof PlatformError && isAtomic) throw ofItem(one, i);
      judged.push(one);
      if (performance.now() - since > turnMs) {
        await setImmediate();
        since = performance.now();
      }
    }
    return database.write((tx) => this.#accept(tx, caller, { ...request, key }, judged));
  }

  async get(organizationId: string, id: string) {
    const { read } = this.#context.database;
    const batch = await this.find(organizationId, id);
    const { completed, failed, cancelled } = batch;
    const counts =
      batch.completed_at === null
        ? await countsOfBatch(read, batch)
        : { queued: 0, active: 0, waiting: 0, completed, failed, cancelled };
    const left = counts.queued + counts.active + counts.waiting;
    return {
      ...summaryOf(batch),
      counts,
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
        userName: item.user_name,
        isForUser: item.user_id !== undefined,
        triggerType: 'api' as const,
        timing: timingOf(item),
        concurrencyKey: item.concurrency_key,
        jobKey: jobKeyIn(item),
        priority: item.priority && priorities.indexOf(item.priority),
        inputField: 'input',
      };
      const work = await execution.workOf(caller, target, item.input, options, timingNames);
      if (Buffer.byteLength(work.input) > bodyBytesMax) throw inputTooLarge;
      return work;
    } catch (error) {
      if (error instanceof PlatformError && error.status < 500) return error;
      throw error;
    }
  }

  async #accept(
    tx: Transaction,
    caller: Caller,
    { key, isAtomic }: { readonly key: BatchKey | null; readonly isAtomic: boolean },
    judged: readonly (WorkRequest | PlatformError)[],
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
      ...(key ?? { idempotency_key: null, fingerprint: null }),
    };
    if (key !== null) await forgetKey(tx, key, now - idempotencyMs);
    if (!(await insertBatch(tx, row)) && key !== null) {
      return replayOf(await findBatchOfKey(tx, key), key);
    }
    const batchId = row.id;
    const works: WorkRequest[] = [];
    for (const one of judged) if (!(one instanceof PlatformError)) works.push({ ...one, batchId });
    const acceptances = await this.#parts.acceptor.acceptWithin(tx, works);
    const answers = acceptances.map(itemAnswer);
    const results = judged.map((given, i): ItemAnswer => {
      const one = given instanceof PlatformError ? given : (answers.shift() ?? { job_id: '' });
      if (!(one instanceof PlatformError)) return one;
      if (isAtomic) throw ofItem(one, i);
      return refusalOf(one, i);
    });
    const recorded = {
      id: batchId,
      accepted: acceptances.filter(({ kind }) => kind === 'accepted').length,
      refused: results.filter((one) => 'error' in one).length,
      // Only a repeat reads them, and a refusal may name what a client has sent.
      results: key === null ? row.results : JSON.stringify(results),
    };
    await setResults(tx, recorded);
    return { batch: { ...summaryOf({ ...row, ...recorded }), items: results }, isReplay: false };
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
    // Retention may be about to delete some of its jobs.
    const open = await lockOpenBatch(tx, id);
    if (open === undefined) return;
    const { completed, failed, cancelled } = await countsOfBatch(tx, open);
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

function itemAnswer(acceptance: Acceptance): ItemAnswer | PlatformError {
  if (!('job' in acceptance)) return otherUsersKey();
  const { kind, job } = acceptance;
  if (kind === 'skipped' || kind === 'debounced') return { job_id: job.id, job_key_result: kind };
  const isReplacing = kind === 'accepted' && acceptance.replaces !== undefined;
  return { job_id: job.id, ...(isReplacing ? { job_key_result: 'replaced' } : {}) };
}

/** The work of item `i`, or its refusal: where an earlier item has its key, which of the two is later is not clear. */
function withoutRepeat(
  one: WorkRequest | PlatformError,
  i: number,
  keys: Map<string, number>,
): WorkRequest | PlatformError {
  if (one instanceof PlatformError || one.jobKey === undefined) return one;
  const { category, version, name } = one.skill;
  const key = `${category}/${version}/${name} ${one.jobKey.key}`;
  const earlier = keys.get(key);
  if (earlier !== undefined) return invalid('job_key', `is that of items.${earlier}, too`);
  keys.set(key, i);
  return one;
}

function jobKeyIn(item: Item): JobKey | undefined {
  const given = {
    key: item.job_key,
    mode: item.job_key_mode,
    debounceSeconds: item.debounce_seconds,
    debounceMaxSeconds: item.debounce_max_seconds,
  };
  return jobKeyOf(given, {
    key: 'job_key',
    debounceSeconds: 'debounce_seconds',
    debounceMaxSeconds: 'debounce_max_seconds',
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

/** What an execution is refused with whose body is larger. */
const inputTooLarge = new PlatformError(
  'payload_too_large',
  `input must have at most ${bodyBytesMax} bytes, as the body of an execution`,
);

/** The answer to an item that was refused. */
function refusalOf(refusal: PlatformError, i: number): ItemAnswer {
  return { error: refusal.code, message: refusal.message, ...detailsOf(refusal, i) };
}

/** The refusal of an item, as that of the whole request. */
function ofItem(refusal: PlatformError, i: number): PlatformError {
  const { code, message, extras } = refusal;
  return new PlatformError(code, `items.${i}: ${message}`, { ...extras, ...detailsOf(refusal, i) });
}

function detailsOf({ extras: { details } }: PlatformError, i: number) {
  if (details === undefined) return {};
  const inItem = ({ field }: Issue) => (field === 'body' ? `items.${i}` : `items.${i}.${field}`);
  return { details: details.map((one) => ({ field: inItem(one), issue: one.issue })) };
}

/** Made before the transaction: the text of the items may have megabytes. */
function keyOf(
  { keyId }: Caller,
  idempotency_key: string,
  { items, isAtomic }: BatchRequest,
): BatchKey {
  const hash = createHash('sha256').update(canonicalJson({ items, isAtomic }));
  return { api_key_id: keyId, idempotency_key, fingerprint: hash.digest('hex') };
}

/** The answer of the batch that has the key; throws `422` where its request was another one. */
function replayOf(earlier: BatchRow | undefined, { fingerprint }: BatchKey) {
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
