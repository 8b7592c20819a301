import { expect, test } from 'vitest';
import { inputDigestOf } from '../../kernel/input-digest.ts';
import type { RecordedRow } from './record-queries.ts';
import {
  findRecord,
  markRunning,
  type RecordedKind,
  readRecords,
  type StepPlace,
  unrequestedFault,
} from './records.ts';

/** The attempt of the claim. */
const attempt = 2;

const row = (n: number, more: Partial<RecordedRow>): RecordedRow => ({
  ...{ n, generation: `key ${n}`, kind: 'step', name: `step ${n}`, parent: null, turn: 1 },
  ...{
    status: 'completed',
    digest: null,
    attempt,
    seen_to: null,
    told: null,
    due_at: null,
    bytes: 0,
    size: 0,
  },
  ...more,
});
const wait = row(1, { kind: 'sleep', name: 'nap' });
const skill = (n: number, more: Partial<RecordedRow> = {}) =>
  row(n, { kind: 'skill', name: 'a/v1.0/b', ...more });
const model = (n: number, more: Partial<RecordedRow> = {}) =>
  row(n, { kind: 'model', name: 'openai/test', generation: 'g', ...more });

/** The message where the code asks for the kinds and steps alone, and returns. */
function faultAfter(
  rows: readonly RecordedRow[],
  ...asked: readonly (readonly [RecordedKind, Partial<StepPlace>])[]
): string | undefined {
  const records = readRecords(rows, attempt);
  for (const [kind, step] of asked) {
    const place = { key: '', name: '', parent: null, nth: 1, digest: null, ...step };
    const known = findRecord(records, kind, place);
    if (known !== undefined) records.pending.delete(known.n);
  }
  return unrequestedFault(records)?.message;
}
const slept = ['sleep', { key: 'key 1', name: 'nap' }] as const;

test('named steps and waits have to be asked for, in each attempt', () => {
  const rows = [wait, row(2, { attempt: 1, name: 'a', turn: 3 })];

  expect(faultAfter(rows, slept)).toContain(
    '"a", occurrence 3 (step 2 of the job): a step is on record, and the code did not ask for it',
  );
  expect(faultAfter(rows, slept, ['step', { key: 'key 2', name: 'a' }])).toBeUndefined();
});

test.each(['completed', 'failed'] as const)(
  'a called skill that %s has to be asked for',
  (status) => {
    expect(faultAfter([wait, skill(2, { status })], slept)).toContain(
      '"a/v1.0/b", occurrence 1 (step 2 of the job): a called skill is on record',
    );
  },
);

test.each([
  ['of an earlier attempt', [wait, skill(2, { attempt: 1 }), model(3, { attempt: 1 })]],
  [
    'that was interrupted',
    [wait, skill(2, { status: 'interrupted' }), model(3, { status: 'interrupted' })],
  ],
])('a called skill and a request to a model %s need not be asked for', (_, rows) => {
  expect(faultAfter(rows, slept)).toBeUndefined();
});

test('in a job that has never waited, called skills and requests to a model need not be asked for', () => {
  expect(faultAfter([skill(1), model(2)])).toBeUndefined();
});

test('a request to a model has to be asked for once, however many calls it took', () => {
  const rows = [
    wait,
    model(2, { status: 'interrupted', attempt: 1 }),
    model(3),
    row(4, { kind: 'tool', generation: 'g' }),
    model(5),
    row(6, { kind: 'generate', name: 'generate', generation: 'failed', status: 'failed' }),
  ];

  expect(faultAfter(rows, slept)).toContain('"generate", occurrence 1 (step 3 of the job)');
  expect(faultAfter(rows, slept, ['generate', { key: 'g' }])).toContain('(step 6 of the job)');
  const asked = ['g', 'failed'].map((key) => ['generate', { key }] as const);
  expect(faultAfter(rows, slept, ...asked)).toBeUndefined();
});

test('what is within a called skill has to be asked for once that skill runs again', () => {
  const rows = [
    wait,
    skill(2, { status: 'interrupted' }),
    row(3, { parent: 2 }),
    model(4, { parent: 2 }),
  ];
  const records = readRecords(rows, attempt);
  expect([...records.pending.keys()]).toEqual([1]);

  markRunning(records, 2);

  expect([...records.pending.keys()]).toEqual([1, 3, 4]);
});

test('calls within a named step need not be made when it runs again, and equal ones are on record', () => {
  const rows = [
    wait,
    row(2, { status: 'active' }),
    skill(3, { parent: 2 }),
    model(4, { parent: 2 }),
  ];
  const step = ['step', { key: 'key 2' }] as const;
  const other = ['skill', { key: 'other', parent: 2 }] as const;

  expect(faultAfter(rows, slept, step, other)).toBeUndefined();

  const records = readRecords(rows, attempt);
  markRunning(records, 2);
  const call = { key: 'key 3', name: 'a/v1.0/b', parent: 2, nth: 1, digest: null };
  expect([...records.pending.keys()]).toEqual([1]);
  expect(findRecord(records, 'skill', call)).toMatchObject({ n: 3 });
});

test('a call that is not on record may come before those that are, and they have to be asked for', () => {
  const rows = [wait, skill(2), model(3)];
  const made = [
    ['skill', { key: 'other', name: 'a/v1.0/b' }],
    ['generate', { key: 'other', name: 'generate' }],
  ] as const;

  expect(faultAfter(rows, ...made, slept)).toContain(
    '"a/v1.0/b", occurrence 1 (step 2 of the job): a called skill is on record, and the code did not ask for it with the same input',
  );
  const known = ['skill', { key: 'key 2' }] as const;
  expect(faultAfter(rows, ...made, slept, known)).toContain(
    '"generate", occurrence 1 (step 3 of the job): a request to a model is on record',
  );
  expect(faultAfter(rows, ...made, slept, known, ['generate', { key: 'g' }])).toBeUndefined();
});

test('another kind or input under a recorded name is refused with what differs', () => {
  const digest = inputDigestOf({ event: 'paid', key: 'a 1', more: { total: 4, by: 'x' } });
  const rows = [row(1, { kind: 'event', name: 'payment', digest })];
  const asks = (kind: RecordedKind, input: unknown) => () =>
    faultAfter(rows, [kind, { key: 'key 1', nth: 2, digest: inputDigestOf(input) }]);

  expect(asks('sleep', {})).toThrow(
    '"payment", occurrence 2 (step 1 of the job): it is on record as a wait for an event, and the code asks for a sleep',
  );
  expect(asks('event', { event: 'paid', key: 'a 2', more: { total: 5, by: 'x' } })).toThrow(
    'other input: its input differs in key, more.total',
  );
  expect(asks('event', 'a text')).toThrow(
    /its input differs \(digest \S{6} on record, \S{6} now\)/,
  );
});
