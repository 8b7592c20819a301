import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSkill } from 'skillwright/testing';
import greeting from './greeting.ts';

test('greets a person', async () => {
  const run = await runSkill(greeting, { name: 'Grace' });

  assert.deepEqual(run.output, { greeting: 'Hello, Grace!' });
  assert.deepEqual(run.logs, [{ message: 'greeting', fields: { name: 'Grace' } }]);
});

test('refuses a name without letters', async () => {
  const run = await runSkill(greeting, { name: '' });

  assert.equal(run.error?.code, 'validation_error');
});
