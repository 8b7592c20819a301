import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Permit, RunBounds } from './run-bounds.ts';
import { ThinkingError } from './thinking-error.ts';

const never = new AbortController().signal;
const limits = { tokensMax: 1_000, callsMax: 1_000, callsAtATime: 16 };
const free = { prompt: 0, output: 0 };
const cost = (prompt: number | null, completion: number | null, estimated = 0) => ({
  usage: { prompt, completion },
  estimated,
});

/** A call that asked to be admitted. */
interface Asked {
  readonly need: { prompt: number; output: number };
  readonly stop: AbortController;
  permit?: Permit;
  error?: unknown;
}

function ask(bounds: RunBounds, need = free): Asked {
  const asked: Asked = { need, stop: new AbortController() };
  bounds.admit(need, asked.stop.signal).then(
    (permit) => {
      asked.permit = permit;
    },
    (error: unknown) => {
      asked.error = error;
    },
  );
  return asked;
}

/** Waits until the pending promises have settled. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('tokens of all generations count together, estimated where they are not reported', async () => {
  const bounds = new RunBounds({ ...limits, tokensMax: 100 });

  bounds.count(cost(40, 10));
  bounds.count(cost(null, null, 49));
  bounds.release(await bounds.admit(free, never));
  bounds.count(cost(1, 0));

  await expect(bounds.admit(free, never)).rejects.toMatchObject({
    code: 'skill_execution_failed',
    retryable: false,
    message: 'The run has used 100 tokens, of at most 100',
  });
});

test('forty calls that ask in one tick are sixteen at a time, and all are admitted', async () => {
  const bounds = new RunBounds(limits);
  const asked = Array.from({ length: 40 }, () => ask(bounds));
  const underWay: number[] = [];

  for (let ended = 0; ended < 40; ) {
    await settled();
    const permits = asked.flatMap((one) => one.permit ?? []).slice(ended);
    underWay.push(permits.length);
    // Two releases in one tick admit two.
    for (const permit of permits.slice(0, 2)) bounds.release(permit);
    ended += 2;
  }

  expect(Math.max(...underWay)).toBe(16);
  expect(underWay.slice(0, 13)).toEqual(Array.from({ length: 13 }, () => 16));
});

test('a call gets the remaining tokens of the run, and waits while other calls hold some', async () => {
  const bounds = new RunBounds({ ...limits, tokensMax: 200 });
  const first = await bounds.admit({ prompt: 20, output: 100 }, never);
  const second = ask(bounds, { prompt: 20, output: 100 });
  await settled();
  expect(second.permit).toBeUndefined();

  bounds.count(cost(20, 80));
  bounds.release(first);
  await settled();

  expect(second.permit?.output).toBe(80);
});

test('a refused waiter lets the next one be admitted', async () => {
  const bounds = new RunBounds({ ...limits, tokensMax: 100 });
  const first = await bounds.admit({ prompt: 10, output: 90 }, never);
  const waiting = [1, 2, 3].map((prompt) => ask(bounds, { prompt, output: 20 }));
  await settled();
  expect(waiting.map(({ error }) => error)).toEqual([undefined, undefined, undefined]);

  bounds.count(cost(10, 90));
  bounds.release(first);
  await settled();

  expect(waiting.map(({ error }) => (error as Error).message)).toEqual(
    Array.from({ length: 3 }, () => 'The run has used 100 tokens, of at most 100'),
  );
});

test('a waiter is rejected when the run is stopped', async () => {
  const bounds = new RunBounds({ ...limits, callsAtATime: 1 });
  await bounds.admit(free, never);
  const waiting = ask(bounds);

  waiting.stop.abort();
  await settled();

  expect(waiting.error).toMatchObject({ message: 'The run was stopped', retryable: true });
});

test('a run calls models at most a thousand times', async () => {
  const bounds = new RunBounds(limits);
  for (let i = 0; i < 1_000; i++) bounds.release(await bounds.admit(free, never));

  await expect(bounds.admit(free, never)).rejects.toThrow('called models 1000 times');
});

type Action =
  | { kind: 'ask'; prompt: number; output: number }
  | { kind: 'end'; which: number; used: number }
  | { kind: 'abort'; which: number };

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      prompt: fc.nat(60),
      output: fc.integer({ min: 1, max: 120 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      which: fc.nat(50),
      used: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('abort' as const), which: fc.nat(50) }) },
);

/** Some actions happen in one tick, the next ones after all promises have settled. */
const ticks = fc.array(fc.array(action, { minLength: 1, maxLength: 12 }), { maxLength: 25 });

test('for any sequence of calls no bound is exceeded, and no call waits for free capacity', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        tokensMax: fc.integer({ min: 1, max: 1_500 }),
        callsMax: fc.integer({ min: 1, max: 60 }),
        callsAtATime: fc.integer({ min: 1, max: 5 }),
      }),
      ticks,
      async (own, steps) => {
        const bounds = new RunBounds(own);
        const all: Asked[] = [];
        const ended = new Set<Asked>();
        let spent = 0;
        const active = () => all.filter((one) => one.permit !== undefined && !ended.has(one));
        const waiting = () =>
          all.filter(({ permit, error }) => permit === undefined && error === undefined);

        function end(one: Asked, used: number): void {
          ended.add(one);
          const prompt = Math.floor(one.need.prompt * used);
          const output = Math.floor((one.permit as Permit).output * used);
          spent += prompt + output;
          bounds.count(cost(prompt, null, output));
          if (one.permit !== undefined) bounds.release(one.permit);
        }

        function check(): void {
          const held = active().reduce(
            (sum, { need, permit }) => sum + need.prompt + (permit as Permit).output,
            0,
          );
          const admitted = all.filter(({ permit }) => permit !== undefined);
          expect(active().length).toBeLessThanOrEqual(own.callsAtATime);
          expect(spent + held).toBeLessThanOrEqual(own.tokensMax);
          expect(admitted.length).toBeLessThanOrEqual(own.callsMax);
          for (const { need, permit } of admitted) {
            expect(permit?.output).toBeLessThanOrEqual(need.output);
            expect(permit?.output).toBeGreaterThanOrEqual(Math.min(need.output, 16));
          }
          const [first] = waiting();
          if (first === undefined) return;
          // The first waiter waits for a slot, or for tokens that a call holds.
          const { prompt, output } = first.need;
          const isFull = active().length === own.callsAtATime;
          const isShort = held > 0 && own.tokensMax - spent - held < prompt + output;
          expect(isFull || isShort).toBe(true);
        }

        for (const actions of steps) {
          for (const one of actions) {
            if (one.kind === 'ask') all.push(ask(bounds, one));
            if (one.kind === 'end') {
              const found = active()[one.which];
              if (found !== undefined) end(found, one.used);
            }
            if (one.kind === 'abort') waiting()[one.which]?.stop.abort();
          }
          await settled();
          check();
        }
        // All waiters end when the calls under way do.
        for (let left = all.length; left > 0 && active().length > 0; left--) {
          end(active()[0] as Asked, 0.5);
          await settled();
          check();
        }
        expect(waiting()).toEqual([]);
        for (const { error } of all) {
          if (error !== undefined) expect(error).toBeInstanceOf(ThinkingError);
        }
      },
    ),
    { numRuns: 200 },
  );
});
