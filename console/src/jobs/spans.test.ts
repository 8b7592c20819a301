import { expect, test } from 'vitest';
import type { Job, JobStep } from '../api/jobs.ts';
import { isOverDays, spanText } from './span-text.ts';
import { spansOf, unfolded } from './spans.ts';
import { usageOfSteps } from './step-usage.ts';
import { tickStep } from './time-scale.ts';

const start = Date.parse('2026-01-01T00:00:00.000Z');
const at = (ms: number) => new Date(start + ms).toISOString();
const tokens = {
  ...{ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, tokens_are_partial: false },
  ...{ cache_read_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0 },
  ...{ cost_usd: 0, cost_is_partial: false },
};
const outage = { code: 'upstream_unavailable', message: 'The shop answered 503' } as const;

function job(fields: Partial<Job> = {}): Job {
  return {
    ...{ job_id: 'j', conversation_id: 'c', agent_id: 'default', user_id: 'somebody' },
    ...{ skill_category: 'orders', skill_name: 'import', skill_version: 'v1.0' },
    ...{ status: 'completed', attempt: 1, max_attempts: 3, trigger_type: 'api' },
    ...{ created_at: at(0), run_at: at(0), started_at: at(10), finished_at: at(100) },
    expires_at: null,
    waiting_for: null,
    ...{ batch_id: null, job_key: null, replaced_by: null, delivered_to: null },
    priority: 'normal',
    ...{
      input: {},
      output: {},
      error: null,
      progress: null,
      retry_of: null,
      is_resumed: false,
      duration_ms: 90,
    },
    ...{
      parent_job_id: null,
      resumed_at: null,
      is_trial: false,
      agent_overrides: null,
      instruction_values: null,
      agent_version: null,
      erased_at: null,
    },
    ...{
      queue: 'skill-execution',
      token_stats: tokens,
      nested_token_stats: tokens,
      total_token_stats: tokens,
    },
    ...fields,
  };
}

function step(number: number, from: number, fields: Partial<JobStep> = {}): JobStep {
  return {
    ...{ step: number, kind: 'tool', name: 'text/v1.0/word-count', turn: 1, status: 'completed' },
    ...{ parent_step_id: null, generation_id: null, message_id: null, error: null },
    ...{
      prompt_tokens: null,
      completion_tokens: null,
      waits_for: null,
      due_at: null,
      prompt: null,
    },
    ...{ cache_read_tokens: null, cache_write_tokens: null, reasoning_tokens: null },
    ...{
      estimated_tokens: 0,
      cost_usd: null,
      estimated_cost_usd: 0,
      price: null,
      rule: null,
      guard: null,
      files: null,
    },
    ...{ started_at: at(from), finished_at: at(from + 5), duration_ms: 5 },
    ...fields,
  };
}

let events = 0;
const status = (data: Record<string, unknown>) => ({
  id: String(events++),
  type: 'status',
  data,
});

test('a job is accepted, waits, is attempted and settles', () => {
  const spans = spansOf(job(), [], []);

  expect(spans.map(({ label, from, to }) => [label, from - start, to && to - start])).toEqual([
    ['Accepted', 0, 0],
    ['Queued', 0, 10],
    ['Attempt 1', 10, 100],
    ['Completed', 100, 100],
  ]);
});

test('each attempt says why it ended, and the wait after it until when it is', () => {
  const told = [
    status({ status: 'queued', at: at(0) }),
    status({ status: 'active', attempt: 1, at: at(1) }),
    status({ status: 'queued', attempt: 1, at: at(50), error: outage, run_at: at(90) }),
    status({ status: 'active', attempt: 2, at: at(95) }),
    status({ status: 'failed', attempt: 2, at: at(120), error: outage }),
  ];

  const spans = spansOf(job({ status: 'failed', attempt: 2, run_at: at(90) }), told, []);

  const [, queued, first, wait, second, end] = spans;
  expect(first).toMatchObject({ tone: 'bad', outcome: 'failed, tried again', error: outage });
  expect(wait).toMatchObject({ from: start + 50, to: start + 95, dueAt: start + 90 });
  expect(second).toMatchObject({ outcome: 'failed', error: outage });
  expect(end).toMatchObject({ label: 'Failed', error: outage });
  expect(queued).not.toHaveProperty('dueAt');
});

test('an attempt that was given back does not look failed', () => {
  const told = [
    status({ status: 'queued', at: at(0) }),
    status({ status: 'active', attempt: 1, at: at(1) }),
    status({ status: 'queued', attempt: 1, at: at(50), error: null, run_at: at(50) }),
  ];

  const spans = spansOf(job({ status: 'queued' }), told, []);

  expect(spans[2]).toMatchObject({ tone: 'neutral', outcome: 'given back, does not count' });
  expect(spans[3]).toMatchObject({ kind: 'queued', to: null, outcome: 'queued' });
});

test('steps lie under the attempt in which they began', () => {
  const told = [
    status({ status: 'queued', at: at(0) }),
    status({ status: 'active', attempt: 1, at: at(1) }),
    status({ status: 'queued', attempt: 1, at: at(50), error: outage, run_at: at(60) }),
    status({ status: 'active', attempt: 2, at: at(60) }),
  ];
  const steps = [step(1, 5, { kind: 'model', name: 'openai/test' }), step(2, 20), step(3, 70)];

  const labels = spansOf(job({ status: 'active', attempt: 2 }), told, steps).map(({ key }) => key);

  expect(labels).toEqual([
    ...['accepted', '0 queued', '1 active', 'step 1', 'step 2'],
    ...['2 queued', '3 active', 'step 3'],
  ]);
});

test('a span is told with its times to the millisecond, how long it took and how it ended', () => {
  const [accepted, , attempt] = spansOf(job({ status: 'failed', error: outage }), [], []);

  expect(spanText(accepted!, start)).toBe('00:00:00.000 UTC');
  expect(spanText(attempt!, start)).toBe(
    '00:00:00.010 – 00:00:00.100 UTC · 90 ms · failed · upstream_unavailable: The shop answered 503',
  );
});

test.each([
  [1, 1],
  [90, 20],
  [6_500, 2_000],
  [70_000, 15_000],
  [3 * 3_600_000, 30 * 60_000],
  [100 * 24 * 3_600_000, (100 * 24 * 3_600_000) / 6],
])('an axis of %i ms has a tick every %i ms', (length, step) => {
  expect(tickStep(length, 6)).toBe(step);
});

test('steps of requests that run side by side stand below the step that asked for them', () => {
  const model = { kind: 'model' as const, name: 'openai/test' };
  const steps = [
    step(1, 20, model),
    step(2, 20, { ...model, name: 'openai/other' }),
    step(3, 40, { name: 'second', parent_step_id: 2 }),
    step(4, 41, { name: 'first', parent_step_id: 1 }),
    step(5, 42, { ...model, name: 'within', parent_step_id: 4 }),
  ];

  const spans = spansOf(job(), [], steps).filter((span) => span.step !== undefined);

  expect(spans.map(({ label, depth }) => [label, depth])).toEqual([
    ['openai/test', 0],
    ['first', 1],
    ['within', 2],
    ['openai/other', 0],
    ['second', 1],
  ]);
});

const waiting = { status: 'waiting', finished_at: null, duration_ms: null } as const;
const day = 24 * 3_600_000;

test('an attempt whose run is unloaded and resumed stays one attempt, idle in between', () => {
  const told = [
    status({ status: 'queued', at: at(0) }),
    status({ status: 'active', attempt: 1, at: at(1) }),
    status({ status: 'waiting', attempt: 1, at: at(50) }),
    status({ status: 'active', attempt: 1, at: at(90) }),
    status({ status: 'waiting', attempt: 1, at: at(95) }),
  ];

  const spans = spansOf(job({ status: 'waiting' }), told, []);

  expect(spans.map(({ label }) => label)).toEqual(['Accepted', 'Queued', 'Attempt 1']);
  expect(spans[2]).toMatchObject({ to: null, tone: 'accent', outcome: 'waiting' });
  expect(spans[2]?.idle).toEqual([
    { from: start + 50, to: start + 90 },
    { from: start + 95, to: Number.POSITIVE_INFINITY },
  ]);
});

test('an attempt is idle while all that its steps do is wait', () => {
  const sleep = { kind: 'sleep' as const };
  const steps = [
    step(1, 20, { kind: 'skill', finished_at: at(90) }),
    step(2, 30, { ...sleep, parent_step_id: 1, finished_at: at(80) }),
    step(3, 40, { ...sleep, finished_at: at(70) }),
    step(4, 45, { kind: 'step', finished_at: at(50) }),
  ];

  const attempt = spansOf(job(), [], steps).find(({ kind }) => kind === 'attempt');

  expect(attempt?.idle).toEqual([
    { from: start + 30, to: start + 45 },
    { from: start + 50, to: start + 80 },
  ]);
});

test.each([
  ['sleeps until 2026-01-04 00:00:00 UTC', { kind: 'sleep', name: 'cool down' }],
  [
    'waits for order.paid (4711) until 2026-01-04 00:00:00 UTC',
    { kind: 'event', name: 'payment', waits_for: { event: 'order.paid', key: '4711' } },
  ],
  [
    'waits for order.paid until 2026-01-04 00:00:00 UTC',
    { kind: 'event', name: 'payment', waits_for: { event: 'order.paid', key: null } },
  ],
  [
    'waits for a decision until 2026-01-04 00:00:00 UTC',
    { kind: 'approval', name: 'ship', waits_for: { approval_id: 'a', status: 'pending' } },
  ],
  [
    'runs text/v1.0/render-template',
    { kind: 'run', name: 'letter', waits_for: { job_id: 'k', skill: 'text/v1.0/render-template' } },
  ],
] as const)('an open wait says: %s', (words, fields) => {
  const open = step(1, 20, { ...waiting, due_at: at(3 * day), ...fields });

  const span = spansOf(job({ status: 'waiting', finished_at: null }), [], [open]).at(-1);

  expect(span).toMatchObject({ label: fields.name, to: null, outcome: words, tone: 'accent' });
});

test.each([
  ['slept', { kind: 'sleep' }],
  ['the event came', { kind: 'event', due_at: at(3 * day) }],
  ['no event in time', { kind: 'event', due_at: at(25) }],
  ['rejected', { kind: 'approval', waits_for: { approval_id: 'a', status: 'rejected' } }],
  ['completed', { kind: 'run', waits_for: { job_id: 'k', status: 'completed' } }],
  ['failed', { kind: 'run', status: 'failed', waits_for: { job_id: 'k', status: 'failed' } }],
] as const)('an ended wait says: %s', (words, fields) => {
  const spans = spansOf(job(), [], [step(1, 20, fields)]);

  expect(spans.find(({ step: one }) => one !== undefined)?.outcome).toBe(words);
});

test('times are told with their day on a timeline of several days', () => {
  const [, , attempt] = spansOf(job({ finished_at: at(3 * day) }), [], []);

  expect(isOverDays(start, start + 3 * day)).toBe(true);
  expect(spanText(attempt!, start + 3 * day, true)).toBe(
    '01-01 00:00:00.010 – 01-04 00:00:00.000 UTC · 3 d · completed',
  );
});

const asked = (number: number, fields: Partial<JobStep>) =>
  step(number, number, { kind: 'model', prompt_tokens: 10, completion_tokens: 2, ...fields });

test('a step has what all steps below it took of models; an unknown price makes it partial', () => {
  const steps = [
    asked(1, { cost_usd: 0.5 }),
    step(2, 20, { parent_step_id: 1 }),
    asked(3, { parent_step_id: 2, cost_usd: null }),
    asked(4, { parent_step_id: 2, cost_usd: 0.25 }),
    step(5, 30),
  ];

  expect([...usageOfSteps(steps)].sort(([a], [b]) => a - b)).toEqual([
    [1, { tokens: 36, cost: 0.75, isPartial: true }],
    [2, { tokens: 24, cost: 0.25, isPartial: true }],
    [3, { tokens: 12, cost: null, isPartial: false }],
    [4, { tokens: 12, cost: 0.25, isPartial: false }],
  ]);
});

test('the steps below a folded one are left out', () => {
  const steps = [asked(1, {}), step(2, 20, { parent_step_id: 1 }), asked(3, { parent_step_id: 2 })];
  const spans = spansOf(job(), [], steps);
  const shown = (...folded: string[]) =>
    unfolded(spans, new Set(folded)).flatMap(({ step: one }) => one?.step ?? []);

  expect(shown()).toEqual([1, 2, 3]);
  expect(shown('step 2')).toEqual([1, 2]);
  expect(shown('step 1', 'step 2')).toEqual([1]);
  expect(unfolded(spans, new Set(['step 1'])).at(-1)?.kind).toBe('settled');
});
