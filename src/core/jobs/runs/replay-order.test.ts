import { expect, test } from 'vitest';
import { type Attempt, runPace } from './attempt.ts';
import { ReplayOrder } from './replay-order.ts';
import { ReplayPositions } from './replay-positions.ts';

const turns = async () => {
  for (let i = 0; i < 10; i++) await new Promise(setImmediate);
};

/**
 * An order whose next place is 100, and the places that it gave, by number of the step. `awaited` are places
 * that the code has still to ask for.
 */
function newOrder(...awaited: number[]) {
  let place = 100;
  const places = new Map<number, number>();
  const ended = new AbortController();
  class GivenPlaces extends ReplayPositions {
    override next() {
      return place++;
    }
    override record(n: number, given: number) {
      places.set(n, given);
    }
    override awaited() {
      return Math.min(Number.POSITIVE_INFINITY, ...awaited);
    }
  }
  const given = new GivenPlaces({} as Attempt, false);
  const order = new ReplayOrder(given, ended.signal, runPace.patienceMs);
  return { order, places, awaited, ended };
}

/** An answer that goes through as many functions as `hops` before the run is told it. */
async function answered(promise: Promise<unknown>, hops: number): Promise<void> {
  await promise;
  for (let i = 0; i < hops; i++) await Promise.resolve();
}

test('ends on record are told once all questions are decided, in the order in which they were told', async () => {
  const { order, places } = newOrder();
  const given: string[] = [];
  const [a, b, c] = [order.enter(), order.enter(), order.enter()];

  // The moments are in the other order.
  void a.recorded({ n: 1, at: 10, place: 2 }).then(() => given.push('a'));
  void b.recorded({ n: 2, at: 30, place: 1 }).then(() => given.push('b'));
  await turns();
  expect(given).toEqual([]);

  c.notRecorded();
  c.notRecorded();
  a.notRecorded();
  await turns();
  expect(given).toEqual(['b', 'a']);
  expect(places.size).toBe(0);
});

test('ends that no run was told come last, by moment and number, and get places', async () => {
  const { order, places } = newOrder();
  const given: number[] = [];
  const ends = [
    { n: 4, at: 5, place: null },
    { n: 3, at: 5, place: null },
    { n: 2, at: 1, place: null },
    { n: 1, at: 9, place: 7 },
  ];
  const asked = ends.map((end) => ({ end, turn: order.enter() }));
  for (const { end, turn } of asked) void turn.recorded(end).then(() => given.push(end.n));
  await turns();

  expect(given).toEqual([1, 2, 3, 4]);
  expect([...places]).toEqual([
    [2, 100],
    [3, 101],
    [4, 102],
  ]);
});

test('a wait beside a step is told in its place, however long the way of the answer is', async () => {
  for (const hops of [
    [20, 0],
    [0, 20],
  ] as const) {
    const { order } = newOrder();
    const given: string[] = [];
    const [step, wait] = [order.enter(), order.enter()];
    void answered(wait.recorded({ n: 2, at: 5, place: 2 }), hops[0]).then(() => given.push('wait'));
    void answered(step.recorded({ n: 1, at: 5, place: 1 }), hops[1]).then(() => given.push('step'));
    await turns();
    expect(given).toEqual(['step', 'wait']);
  }
});

test('what ends while the run is loaded is told in the order of the places', async () => {
  const { order, places } = newOrder();
  const given: string[] = [];
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const turn = order.enter();
  turn.notRecorded();
  const written: number[] = [];
  const ending = (by: Promise<void>) => (place: number) => {
    written.push(place);
    return by;
  };

  void order.write(ending(first.promise), 0).then(() => given.push('step 1'));
  void answered(turn.ended(2), 20).then(() => given.push('wait'));
  void order.write(ending(second.promise), 0).then(() => given.push('step 3'));
  second.resolve();
  await turns();
  expect(given).toEqual([]);

  first.resolve();
  await turns();
  expect(given).toEqual(['step 1', 'wait', 'step 3']);
  expect([written, [...places]]).toEqual([[100, 102], [[2, 101]]]);
});

test('an end that cannot be written does not hold those after it', async () => {
  const { order } = newOrder();
  const failed = order.write(() => Promise.reject(new Error('no')), 0);
  await expect(failed).rejects.toThrow('no');
  const turn = order.enter();
  turn.notRecorded();
  await turn.ended(2);
});

test('a question that comes alone is answered at once', async () => {
  const { order } = newOrder();
  order.enter().notRecorded();
  await order.enter().recorded({ n: 1, at: 1, place: 2 });
  await order.enter().recorded({ n: 2, at: 0, place: 1 });
});

/** A chain of steps with the places 1 to 3 beside a wait; what the code is told, in order. */
async function raced(waitTold: number | null, awaited: number[]) {
  const { order, ...more } = newOrder(...awaited);
  const given: string[] = [];
  const ask = async (name: string, told: number | null) => {
    const turn = order.enter();
    more.awaited.splice(0, more.awaited.length, ...more.awaited.filter((one) => one !== told));
    await turn.recorded({ n: told ?? 9, at: 1, place: told });
    given.push(name);
  };
  const chain = async () => {
    for (const told of [10, 20, 30]) await ask(`step ${told}`, told);
  };
  const all = Promise.all([ask('wait', waitTold), chain()]);
  return { ...more, given, all };
}

test.each([
  [5, ['wait', 'step 10', 'step 20', 'step 30']],
  [15, ['step 10', 'wait', 'step 20', 'step 30']],
  [25, ['step 10', 'step 20', 'wait', 'step 30']],
  [35, ['step 10', 'step 20', 'step 30', 'wait']],
  [null, ['step 10', 'step 20', 'step 30', 'wait']],
])('a wait of place %s beside a chain of steps is told in its place', async (told, expected) => {
  const { given, all } = await raced(told, [10, 20, 30]);
  await all;
  expect(given).toEqual(expected);
});

test('a wait that ends while a chain of steps is replayed is told after it', async () => {
  const { order, awaited } = newOrder(10);
  const given: string[] = [];
  const turn = order.enter();
  turn.notRecorded();
  void turn.ended(7).then(() => given.push('wait'));
  await turns();
  expect(given).toEqual([]);

  const asked = order.enter();
  awaited.pop();
  void asked.recorded({ n: 1, at: 1, place: 10 }).then(() => given.push('step'));
  await turns();

  expect(given).toEqual(['step', 'wait']);
});

test('a step that ends while a chain of steps is replayed is told after it, and keeps its place', async () => {
  const { order, places, awaited } = newOrder(10);
  const given: string[] = [];
  void order.write(async () => {}, Number.POSITIVE_INFINITY).then(() => given.push('step now'));
  await turns();
  expect(given).toEqual([]);

  const asked = order.enter();
  awaited.pop();
  void asked.recorded({ n: 1, at: 1, place: 10 }).then(() => given.push('step on record'));
  await turns();

  expect(given).toEqual(['step on record', 'step now']);
  expect(places.size).toBe(0);
});

test('a step that ends before the code can ask for ends on record moves these behind it', async () => {
  const { order, places } = newOrder(10, 20);

  await order.write(async () => {}, 10);
  await order.enter().recorded({ n: 1, at: 1, place: 10 });

  expect([...places]).toEqual([[1, 101]]);
});

test('a run that has ended holds no end', async () => {
  const { all, ended, given } = await raced(35, [10, 20, 30, 31]);
  await turns();
  expect(given).toEqual(['step 10', 'step 20', 'step 30']);

  ended.abort();

  await all;
  expect(given.at(-1)).toBe('wait');
});
