/** The wire format of batches (docs/decisions/jobs.md). */
import { type Static, Type } from 'typebox';
import { Id, Nullable, Timestamp, Words } from '../../../adapters/http/schemas.ts';
import { priorities } from '../../../kernel/priority.ts';
import { concurrencyKeyMax } from '../gates/gates.ts';
import { debounceMax, debounceTotalMax, jobKeyMax, jobKeyModes } from '../job-keys/job-keys.ts';
import { aheadMaxSeconds } from '../timing.ts';

/** Items of one batch. */
const itemsMax = 1_000;
/** Bytes of the request that makes one. */
export const batchBytesMax = 8 * 1024 * 1024;

/** As the headers x-job-key, x-job-key-mode, x-debounce-seconds and x-debounce-max-seconds of an execution. */
const jobKeyFields = {
  job_key: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: jobKeyMax,
      description: 'As x-job-key of an execution. A batch may have a key of a skill once.',
    }),
  ),
  job_key_mode: Type.Optional(Words(jobKeyModes)),
  debounce_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: debounceMax })),
  debounce_max_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: debounceTotalMax })),
};

/** An item: a request to run a skill. */
export const BatchItem = Type.Object(
  {
    skill: Type.String({
      pattern: '^[^/]+/[^/]+/[^/]+$',
      maxLength: 200,
      description: 'category/version/name',
    }),
    input: Type.Unknown({ description: "The skill's input." }),
    agent_id: Type.Optional(
      Type.String({ maxLength: 200, description: 'The agent that runs it; default by default.' }),
    ),
    user_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'As x-user-id of an execution.' }),
    ),
    user_name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'As x-user-name of an execution.' }),
    ),
    concurrency_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: concurrencyKeyMax,
        description: 'As x-concurrency-key of an execution.',
      }),
    ),
    run_at: Type.Optional({
      ...Timestamp,
      description: 'As x-run-at of an execution: when it may begin.',
    }),
    delay_seconds: Type.Optional(
      Type.Integer({ minimum: 0, maximum: aheadMaxSeconds, description: 'Instead of run_at.' }),
    ),
    expires_in: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: aheadMaxSeconds,
        description: 'As x-expires-in of an execution, in seconds.',
      }),
    ),
    priority: Type.Optional({
      ...Words(priorities),
      description: 'As x-priority of an execution; normal by default.',
    }),
    ...jobKeyFields,
  },
  { title: 'BatchItem', additionalProperties: false },
);
export type Item = Static<typeof BatchItem>;

const batch = (items: ReturnType<typeof Type.Array>) =>
  Type.Object(
    {
      items,
      atomic: Type.Optional(
        Type.Boolean({
          description: 'true: none is accepted if one is refused, and the answer is its refusal.',
        }),
      ),
    },
    {
      title: 'NewBatch',
      additionalProperties: false,
      examples: [
        {
          items: [
            { skill: 'util/v1.0/echo', input: { text: 'one' } },
            { skill: 'util/v1.0/echo', input: { text: 'two' }, delay_seconds: 60 },
          ],
        },
      ],
    },
  );
const bounds = { minItems: 1, maxItems: itemsMax };
export const NewBatch = batch(Type.Array(BatchItem, bounds));
/** The body without a look at its items, each of which is judged by itself. */
export const BatchFrame = batch(Type.Array(Type.Unknown(), bounds));

const Count = (description: string) => Type.Integer({ minimum: 0, description });
const fields = {
  id: Id,
  accepted: Count('Items that have become jobs of the batch.'),
  refused: Count('Items that were refused.'),
  created_at: Timestamp,
  completed_at: {
    ...Nullable(Timestamp),
    description: 'When all of its jobs were found to have ended; null before.',
  },
};
const example = {
  id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d20',
  accepted: 2,
  refused: 0,
  created_at: '2026-01-01T00:00:00.000Z',
  completed_at: null,
};

export const BatchSummary = Type.Object(fields, { title: 'BatchSummary', examples: [example] });

const counts = { queued: 1, active: 0, waiting: 0, completed: 1, failed: 0, cancelled: 0 };
export const Batch = Type.Object(
  {
    ...fields,
    counts: Type.Object({
      queued: Count('Jobs of this status.'),
      active: Count('Jobs of this status.'),
      waiting: Count('Jobs of this status.'),
      completed: Count('Jobs of this status.'),
      failed: Count('Jobs of this status.'),
      cancelled: Count('Jobs of this status.'),
    }),
    progress: Type.Number({
      minimum: 0,
      maximum: 1,
      description: 'The part of its jobs that have ended.',
    }),
  },
  { title: 'Batch', examples: [{ ...example, counts, progress: 0.5 }] },
);

const ItemAnswer = Type.Object(
  {
    job_id: Type.Optional({ ...Id, description: 'The job of an accepted item.' }),
    job_key_result: Type.Optional({
      ...Words(['replaced', 'skipped', 'debounced']),
      description:
        'As X-Job-Key-Result of an execution. A job that was there before is no job of the batch.',
    }),
    error: Type.Optional(Type.String({ description: 'The error code of a refused item.' })),
    message: Type.Optional(Type.String()),
    details: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), issue: Type.String() }), {
        description: 'The faults of an invalid item, as in an error; field begins with items.N.',
      }),
    ),
  },
  { title: 'BatchItemAnswer' },
);
export const AcceptedBatch = Type.Object(
  { ...fields, items: Type.Array(ItemAnswer, { description: 'In the order of the request.' }) },
  {
    title: 'AcceptedBatch',
    description: 'The accepted batch.',
    examples: [{ ...example, items: [{ job_id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d21' }] }],
  },
);
