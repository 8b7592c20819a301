import { describe, expect, test } from 'vitest';
import { hostSlotsMax, Lanes, type WasQuick } from './lanes.ts';

/** Lanes whose deliveries end when the test ends them. */
function stage() {
  const running = new Map<string, (wasQuick: WasQuick) => void>();
  const begun: string[] = [];
  let most = 0;
  const lanes = new Lanes(
    (id) =>
      new Promise<WasQuick>((resolve) => {
        begun.push(id);
        running.set(id, resolve);
        most = Math.max(most, running.size);
      }),
  );
  async function end(ids: readonly string[], wasQuick: WasQuick = true) {
    for (const id of ids) {
      running.get(id)?.(wasQuick);
      running.delete(id);
    }
    await new Promise(setImmediate);
  }
  return {
    lanes,
    begun,
    /** Running deliveries, of one host or of all. */
    at: (host = '') => [...running.keys()].filter((id) => id.startsWith(host)),
    most: () => most,
    add(host: string, n: number, organization = 'one') {
      const idOf = (i: number) =>
        organization === 'one' ? `${host}/${i}` : `${host}/${organization} ${i}`;
      return Array.from({ length: n }, (_, i) => lanes.add(host, idOf(i), organization));
    },
    end,
    /** Answers quickly until the host counts as quick. */
    async prove(host: string) {
      for (let i = 0; i < 20; i++) lanes.add(host, `${host}/proof ${i}`, 'one');
      await end([...running.keys()].filter((id) => id.startsWith(host)));
    },
  };
}

describe('the lanes', () => {
  test('run 20 deliveries to one host at a time, in order of arrival', async () => {
    const { add, at, end, begun } = stage();

    add('a', 50);
    expect(at('a')).toHaveLength(hostSlotsMax);
    await end(['a/3', 'a/7']);

    expect(at('a')).toHaveLength(hostSlotsMax);
    expect(begun).toEqual(Array.from({ length: 22 }, (_, i) => `a/${i}`));
  });

  test('ignore a delivery that is waiting or running', async () => {
    const { add, at, end, begun } = stage();

    add('a', 30);
    add('a', 30);
    while (at().length > 0) await end(at());

    expect(begun).toHaveLength(30);
  });

  test('a full lane keeps no other lane from a slot', () => {
    const { add, at } = stage();

    add('slow', 1_000);
    add('quick', 5);

    expect(at('quick')).toHaveLength(5);
  });

  test('run 500 deliveries to all hosts at a time, and take turns', async () => {
    const { add, at, end, most, prove } = stage();
    for (let host = 0; host < 60; host++) await prove(`h${host}.`);
    for (let host = 0; host < 60; host++) add(`h${host}.`, 20);
    expect(at()).toHaveLength(500);

    for (let host = 0; host < 60 && at(`h${host}.`).length > 0; host++) {
      await end(at(`h${host}.`).slice(0, 10));
    }

    expect(most()).toBe(500);
    const served = Array.from({ length: 60 }, (_, host) => at(`h${host}.`).length);
    expect(Math.min(...served.slice(25))).toBeGreaterThan(0);
  });

  test('give 2 slots to a host that does not answer, until it does', async () => {
    const { add, at, end } = stage();
    add('a', 200);

    await end(at('a'), false);
    expect(at('a')).toHaveLength(2);
    await end(at('a').slice(0, 1), null);
    expect(at('a')).toHaveLength(2);
    await end(at('a').slice(0, 1), true);

    expect(at('a')).toHaveLength(hostSlotsMax);
  });

  test('do not count a host as slow after two missing answers', async () => {
    const { add, at, end } = stage();
    add('a', 200);

    await end(at('a').slice(0, 2), false);

    expect(at('a')).toHaveLength(hostSlotsMax);
  });

  test('remember that a host is slow when no delivery waits for it any more', async () => {
    const { lanes, add, at, end } = stage();
    add('a', 5);
    await end(at('a'), false);

    for (let i = 0; i < 30; i++) lanes.add('a', `a/late ${i}`, 'one');

    expect(at('a')).toHaveLength(2);
  });

  test('reserve half of all slots for quick hosts, however many are slow', async () => {
    const { lanes, add, at, end, prove } = stage();
    for (let host = 0; host < 20; host++) await prove(`quick${host}.`);
    for (let host = 0; host < 300; host++) {
      add(`silent${host}.`, 20);
      await end(at(`silent${host}.`), false);
    }

    for (let host = 0; host < 300; host++) {
      for (let i = 0; i < 5; i++) lanes.add(`silent${host}.`, `silent${host}./late ${i}`, 'one');
    }
    expect(at('silent')).toHaveLength(125);
    for (let host = 0; host < 20; host++) add(`new${host}.`, 20);
    expect(at('new')).toHaveLength(125);
    for (let host = 0; host < 20; host++) add(`quick${host}.`, 20);

    expect(at('silent')).toHaveLength(125);
    expect(at('quick')).toHaveLength(250);
  });

  test('keep half of all slots from new hosts', async () => {
    const { add, at, prove } = stage();
    await prove('quick');

    for (let host = 0; host < 60; host++) add(`new${host}.`, 20);
    expect(at()).toHaveLength(250);
    add('quick', 20);

    expect(at('quick')).toHaveLength(hostSlotsMax);
  });

  test('count a quick host as new after one slow answer', async () => {
    const { lanes, add, at, end, prove } = stage();
    await prove('changed');
    lanes.add('changed', 'changed/slow', 'one');
    await end(['changed/slow'], false);
    for (let host = 0; host < 60; host++) add(`new${host}.`, 20);

    add('changed', 20);

    expect(at('changed')).toHaveLength(0);
  });

  test('start the first delivery of an organization beside one whose hosts hold all slots', () => {
    const { add, at } = stage();
    for (let host = 0; host < 60; host++) add(`loud${host}.`, 20);
    expect(at()).toHaveLength(250);

    add('quiet', 5, 'quiet');

    expect(at('quiet')).toEqual(['quiet/quiet 0']);
  });

  test('start it also at a host for which another organization has a thousand', async () => {
    const { add, at, begun, end } = stage();
    add('shared', 1_000);

    add('shared', 4, 'quiet');
    expect(at('shared/quiet')).toHaveLength(1);
    for (let i = 0; i < 6; i++) await end(at('shared/').slice(0, 1));

    expect(begun.slice(20).map((id) => id.includes('quiet'))).toEqual([
      ...[true, false, true, false, true, false],
    ]);
  });

  test('keep 32 slots for such organizations, 4 of one host, and give them back', async () => {
    const { add, at, end } = stage();
    add('shared', 20);
    for (let host = 0; host < 60; host++) add(`loud${host}.`, 20);
    for (let i = 0; i < 6; i++) add('shared', 1, `other ${i}`);
    for (let i = 0; i < 40; i++) add(`quiet${i}.`, 1, `quiet ${i}`);
    expect(at('shared')).toHaveLength(24);
    expect(at()).toHaveLength(282);

    await end(at('quiet'));
    add('late', 1, 'late');

    expect(at('late')).toHaveLength(1);
  });

  test('give a kept slot that is free again to the first organization that waits and runs nothing', async () => {
    const { add, at, end } = stage();
    for (let host = 0; host < 60; host++) add(`loud${host}.`, 20);
    for (let i = 0; i < 40; i++) add(`quiet${i}.`, 2, `quiet ${i}`);
    expect(at('quiet')).toHaveLength(32);

    await end(['quiet0./quiet 0 0', 'quiet1./quiet 1 0']);
    expect(at('quiet').slice(30)).toEqual(['quiet32./quiet 32 0', 'quiet33./quiet 33 0']);
    let ended = 2;
    for (; at('quiet').length > 0; ended++) await end(at('quiet').slice(0, 1));

    expect(ended).toBe(80);
  });

  test('give it on at a shared host, where all organizations wait for the 4 of that host', async () => {
    const { add, at, end, begun } = stage();
    add('shared', 100);
    for (let i = 0; i < 10; i++) add('shared', 1, `quiet ${i}`);
    expect(at('shared/quiet')).toHaveLength(4);

    while (at('shared/quiet').length > 0) await end(at('shared/quiet').slice(0, 1));

    expect(begun.slice(20)).toEqual(Array.from({ length: 10 }, (_, i) => `shared/quiet ${i} 0`));
  });

  test('give 4 kept slots to one host, also while it has no other', () => {
    const { add, at } = stage();
    for (let host = 0; host < 60; host++) add(`loud${host}.`, 20);

    for (let i = 0; i < 10; i++) add('shared', 1, `quiet ${i}`);
    add('alone', 1, 'alone');

    expect(at('shared')).toHaveLength(4);
    expect(at('alone')).toHaveLength(1);
  });

  test('start the deliveries of an organization at a host in order of arrival, also in kept slots', async () => {
    const { lanes, add, at, end } = stage();
    for (let host = 0; host < 60; host++) add(`loud${host}.`, 20);
    for (let i = 0; i < 32; i++) add(`quiet${i}.`, 1, `quiet ${i}`);
    lanes.add('late', 'late/older', 'late');
    lanes.add('late', 'late/newer', 'late');

    await end(at('quiet').slice(0, 5));
    lanes.add('late', 'late/newest', 'late');

    expect(at('late')).toEqual(['late/older']);
  });

  test('go round over organizations before hosts', async () => {
    const { add, at, end } = stage();
    for (let host = 0; host < 300; host++) add(`loud${host}.`, 20);
    add('quiet', 3, 'quiet');
    expect(at('quiet')).toHaveLength(1);

    await end(at('loud').slice(0, 4));

    expect(at('quiet')).toHaveLength(3);
  });

  test('refuse a delivery when the lane is full, and name the hosts of full lanes', async () => {
    const { lanes, add } = stage();
    add('b', 20);

    expect(add('a', 1_100).filter((isAdded) => isAdded)).toHaveLength(1_000 + hostSlotsMax);

    expect(lanes.fullHosts()).toEqual(['a']);
  });

  test('hold at most 20,000 waiting deliveries over all hosts', () => {
    const { add } = stage();

    const taken = Array.from({ length: 100 }, (_, host) => add(`h${host}.`, 300)).flat();

    expect(taken.filter((isAdded) => isAdded)).toHaveLength(20_250);
  });

  test('stop when the running deliveries have ended, and start no more', async () => {
    const { lanes, add, at, end, begun } = stage();
    add('a', 30);
    let isStopped = false;
    const stopped = lanes.stop().then(() => {
      isStopped = true;
    });

    await end(at('a').slice(1));
    expect(isStopped).toBe(false);
    expect(lanes.add('b', 'b/0', 'one')).toBe(false);
    await end(at('a'));
    await stopped;

    expect(begun).toHaveLength(hostSlotsMax);
    await lanes.stop();
  });
});
