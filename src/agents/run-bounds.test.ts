import { expect, test } from 'vitest';
import { createRunBounds } from './run-bounds.ts';

const never = new AbortController().signal;
const cost = (prompt: number | null, completion: number | null, estimated = 0) => ({
  usage: { prompt, completion },
  estimated,
});

test('tokens of all generations count together, estimated where they are not reported', async () => {
  const bounds = createRunBounds(100);

  bounds.count(cost(40, 10));
  bounds.count(cost(null, null, 49));
  (await bounds.place(never))();
  bounds.count(cost(1, 0));

  await expect(bounds.place(never)).rejects.toMatchObject({
    code: 'skill_execution_failed',
    retryable: false,
    message: 'The run has used 100 tokens, of at most 100',
  });
});

test('sixteen calls are made at a time, and the next one when a place is given back', async () => {
  const bounds = createRunBounds(1_000);
  const places = await Promise.all(Array.from({ length: 16 }, () => bounds.place(never)));
  const order: string[] = [];

  const late = bounds.place(never).then((giveBack) => {
    order.push('late');
    return giveBack;
  });
  await Promise.resolve();
  order.push('given back');
  places[0]?.();
  (await late)();

  expect(order).toEqual(['given back', 'late']);
});

test('who waits for a place is let go when the run is stopped', async () => {
  const bounds = createRunBounds(1_000);
  await Promise.all(Array.from({ length: 16 }, () => bounds.place(never)));
  const stop = new AbortController();

  const waiting = bounds.place(stop.signal);
  stop.abort();

  expect(await waiting).toBeTypeOf('function');
});

test('a run calls models at most a thousand times', async () => {
  const bounds = createRunBounds(1_000);
  for (let i = 0; i < 1_000; i++) (await bounds.place(never))();

  await expect(bounds.place(never)).rejects.toThrow('called models 1000 times');
});
