import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSkill } from 'skillwright/testing';
import refund from './refund.ts';

test('pays a small amount at once', async () => {
  const run = await runSkill(refund, { order: 'A-17', amount: 40 });

  assert.equal(run.output?.status, 'paid');
});

test('pays a large amount once a person has approved it', async () => {
  const run = await runSkill(
    refund,
    { order: 'A-17', amount: 150 },
    { approvals: { manager: { approved: true, after: '2d' } } },
  );

  assert.equal(run.output?.status, 'paid');
  assert.deepEqual(
    run.steps.map(({ name }) => name),
    ['look up the order', 'manager', 'pay'],
  );
});

test('pays nothing without a decision within a week', async () => {
  const run = await runSkill(
    refund,
    { order: 'A-17', amount: 150 },
    { approvals: { manager: 'expired' } },
  );

  assert.deepEqual(run.output, { status: 'rejected', payment: null });
});

test('refuses more than was paid', async () => {
  const run = await runSkill(refund, { order: 'A-17', amount: 1_000 });

  assert.equal(run.error?.retryable, false);
});
