/** Requests to a model in a run that goes on after a wait: what is on record is given, whatever has changed. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  asks,
  newThinker,
  startThinkers,
  type Thinker,
  type Thinkers,
} from '../support/thinkers.ts';
import { resumeUnloaded } from '../support/unloaded.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

/** A run that has made the requests, and waits; what the provider was asked for it. */
async function waitingAfter(thinker: Thinker, requests: readonly unknown[]) {
  const before = world.provider.requests.length;
  const id = await thinker.start(asks, { requests: [...requests, 'wait'] }, thinker.named);
  await thinker.jobIn(id, 'waiting');
  return { id, asked: () => world.provider.requests.length - before };
}

test('an answer on record is given although the agent is gone', async () => {
  const thinker = await newThinker(world.platform);
  world.provider.script(() => ({ text: 'recorded' }));
  const { id, asked } = await waitingAfter(thinker, [{ prompt: 'one' }]);
  expect((await thinker.delete('/api/agents/thinker')).status).toBe(204);

  await resumeUnloaded(thinker, id);

  const { body } = await thinker.jobIn(id, 'completed', 'failed');
  expect(body).toMatchObject({ status: 'completed', output: [{ text: 'recorded', turns: 1 }] });
  expect(asked()).toBe(1);
});

test('a failure that the code has caught is given again, and the model is not asked', async () => {
  const thinker = await newThinker(world.platform);
  world.provider.script(() => ({ fault: { status: 400 } }));
  const { id, asked } = await waitingAfter(thinker, [{ prompt: 'one', caught: true }]);
  world.provider.script(() => ({ text: 'an answer now' }));

  await resumeUnloaded(thinker, id);

  const { body } = await thinker.jobIn(id, 'completed', 'failed');
  expect(body.status).toBe('completed');
  const [failure] = body.output;
  expect(failure).toMatchObject({ code: 'skill_execution_failed', retryable: false });
  expect(asked()).toBe(1);
  expect(await thinker.steps(id)).toMatchObject([
    { step: 1, kind: 'model', status: 'failed' },
    { step: 2, kind: 'generate', name: 'generate', status: 'failed', parent_step_id: null },
    { step: 3, kind: 'event' },
  ]);
});

test('a failure before any call of a model is given again too', async () => {
  const thinker = await newThinker(world.platform);
  world.provider.script(() => ({ text: 'an answer now' }));
  const budget = '/api/agents/thinker/budget';
  await thinker.put(budget, { tokens_per_day: 1 });
  const { id, asked } = await waitingAfter(thinker, [{ prompt: 'one', caught: true }]);
  expect((await thinker.delete(budget)).status).toBeLessThan(300);

  await resumeUnloaded(thinker, id);

  const { body } = await thinker.jobIn(id, 'completed', 'failed');
  expect(body).toMatchObject({ status: 'completed', output: [{ code: 'budget_exceeded' }] });
  expect(asked()).toBe(0);
});
