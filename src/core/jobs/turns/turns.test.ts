import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { propertyRuns } from '../../../../test/support/soak.ts';
import { type DueJob, hasFreeShare, keptSlots, Turns } from './turns.ts';

/**
 * How many runs an organization gets while so many have endless work and one run after the other ends; the first have these
 * weights.
 */
function sharesOf(slots: number, organizations: number, weights: number[] = []): number[] {
  const own = Array.from({ length: organizations }, () => 0);
  const forWeight = (n: number, i: number) => n / (weights[i] ?? 1);
  const begin = () => {
    for (;;) {
      const taken = own.reduce((a, b) => a + b, 0);
      const next = own.findIndex((mine, i) =>
        hasFreeShare({
          slots,
          taken,
          own: mine,
          othersWait: organizations > 1,
          weight: weights[i] ?? 1,
        }),
      );
      if (next === -1) return;
      own[next] = (own[next] ?? 0) + 1;
    }
  };
  own[0] = slots;
  for (let i = 0; i < 10 * slots; i++) {
    const most = own.map(forWeight).indexOf(Math.max(...own.map(forWeight)));
    own[most] = (own[most] ?? 0) - 1;
    begin();
  }
  return own;
}

/** A job whose id says whose it is. */
const job = (organization: string, key: string, priority = 1, due = 0): DueJob => ({
  id: `${organization}/${key}/${priority}/${due}`,
  organization_id: organization,
  api_key_id: key,
  priority,
  due_at: due,
});
const jobs = (count: number, organization: string, key: string, priority = 1) =>
  Array.from({ length: count }, (_, i) => job(organization, key, priority, i));

/** The queue of one process: what waits, what runs, and the turns that decide. */
function process(slots: number, weights = new Map<string, number>()) {
  const turns = new Turns(slots, weights);
  const waiting = new Map<string, DueJob[]>();
  const running: DueJob[] = [];
  const claim = () => {
    while (turns.mayClaim()) {
      const candidates = turns.candidates();
      turns.beginClaim(candidates);
      const due = candidates.flatMap(({ organization_id }) => waiting.get(organization_id) ?? []);
      const round = turns.round(candidates, due);
      for (let next = round.next(); next !== undefined; next = round.next()) {
        const { organization_id, id } = next;
        const left = waiting.get(organization_id)?.filter((one) => one.id !== id) ?? [];
        waiting.set(organization_id, left);
        turns.takeSlot(next);
        running.push(next);
      }
      turns.endClaim(candidates, round.left());
    }
  };
  return {
    turns,
    running,
    send(...sent: DueJob[]) {
      for (const one of sent) {
        const before = waiting.get(one.organization_id) ?? [];
        waiting.set(one.organization_id, [...before, one]);
        turns.announce(one.organization_id);
      }
      claim();
    },
    /** Ends the run that began first, or the one at a place. */
    end(place = 0) {
      const [ended] = running.splice(place, 1);
      if (ended !== undefined) turns.end(ended.organization_id);
      claim();
      return ended;
    },
    runsOf: (organization: string) =>
      running.filter(({ organization_id }) => organization_id === organization).length,
  };
}

describe('the share of an organization', () => {
  test('is a third of the slots for each of two, and a third stays free', () => {
    expect(sharesOf(120, 2)).toEqual([40, 40]);
  });

  test('leaves slots free, however many organizations there are', () => {
    for (const organizations of [2, 3, 5, 10]) {
      const shares = sharesOf(120, organizations);
      expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
      expect(shares.reduce((a, b) => a + b, 0)).toBeLessThan(120);
    }
  });

  test('is by the weights, as if one of weight w were w organizations', () => {
    expect(sharesOf(120, 2, [2, 1])).toEqual([60, 30]);
    expect(sharesOf(120, 3, [3])).toEqual([60, 20, 20]);
    expect(hasFreeShare({ slots: 120, taken: 110, own: 100, weight: 100, othersWait: true })).toBe(
      true,
    );
    expect(hasFreeShare({ slots: 120, taken: 119, own: 118, weight: 100, othersWait: true })).toBe(
      false,
    );
  });

  test('is every slot while no other one waits', () => {
    expect(hasFreeShare({ slots: 120, taken: 80, own: 60, othersWait: true })).toBe(false);
    expect(hasFreeShare({ slots: 120, taken: 80, own: 60, othersWait: false })).toBe(true);
  });

  test('of a single slot is that slot; from two slots on some are kept for organizations that run nothing', () => {
    expect([1, 2, 16, 17, 64].map(keptSlots)).toEqual([0, 1, 1, 2, 4]);
    for (let slots = 2; slots < 100; slots++) {
      expect(hasFreeShare({ slots, taken: slots, own: 0, othersWait: true })).toBe(true);
      expect(hasFreeShare({ slots, taken: slots, own: slots, othersWait: false })).toBe(false);
      expect(
        hasFreeShare({ slots, taken: slots + keptSlots(slots), own: 0, othersWait: true }),
      ).toBe(false);
    }
  });
});

describe('turns', () => {
  test('follow a weight that changes while jobs wait, without interrupting runs', () => {
    const weights = new Map<string, number>();
    const { send, end, runsOf, running } = process(12, weights);
    send(...jobs(200, 'a', 'k'), ...jobs(200, 'b', 'k'));
    const endEach = () => {
      for (let i = 0; i < 24; i++) end();
      return [runsOf('a'), runsOf('b')];
    };
    expect(endEach()).toEqual([4, 4]);

    weights.set('a', 2);
    expect(endEach()).toEqual([6, 3]);
    weights.set('b', 2);
    weights.delete('a');

    expect(endEach()).toEqual([3, 6]);
    expect(running.length).toBe(9);
  });

  test('give a quiet organization a slot at once beside one that has all of them and a thousand waiting jobs', () => {
    const { send, runsOf } = process(16);
    send(...jobs(1_000, 'loud', 'a'));
    expect(runsOf('loud')).toBe(16);

    send(job('quiet', 'b'));

    expect(runsOf('quiet')).toBe(1);
  });

  test('of one slot go round over organizations', () => {
    const { send, end } = process(1);
    send(...jobs(3, 'a', 'k'), ...jobs(3, 'b', 'k'), ...jobs(1, 'c', 'k'));

    const order = Array.from({ length: 7 }, () => end()?.organization_id);

    expect(order).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'b']);
  });

  test('of an organization go round over its keys, in the order in which each of them sent its jobs', () => {
    const { send, end } = process(1);
    send(...jobs(100, 'a', 'sharded'), ...jobs(2, 'a', 'one'), ...jobs(2, 'a', 'two'));

    const order = Array.from({ length: 7 }, () => end()?.id);

    expect(order).toEqual([
      'a/one/1/0',
      'a/sharded/1/0',
      'a/two/1/0',
      'a/one/1/1',
      'a/sharded/1/1',
      'a/two/1/1',
      'a/sharded/1/2',
    ]);
  });

  test('give the higher priority first, and every eighth one to the oldest job of a lower priority', () => {
    const { send, end } = process(1);
    send(job('a', 'k', 0, -1), ...jobs(20, 'a', 'k', 0));
    send(job('a', 'k', 2, 50), job('a', 'k', 1, 60), job('a', 'm', 1, 40));

    const order = Array.from({ length: 24 }, () => end()?.priority);

    expect(order.indexOf(1)).toBe(7);
    expect(order.filter((priority) => priority === 0).length).toBe(21);
    expect([order[7], order[15], order[23]]).toEqual([1, 2, 1]);
  });

  test('of keys go on within a priority where the oldest jobs of a lower one are all of one key', () => {
    const { send, end } = process(1);
    const names = Array.from({ length: 20 }, (_, i) => `key-${String(i).padStart(2, '0')}`);
    send(job('acme', 'first', 0));
    send(...jobs(50, 'acme', 'key-00', 2), ...names.flatMap((key) => jobs(5, 'acme', key, 0)));

    const order = Array.from({ length: 25 }, () => end()).slice(1);

    const urgent = order.filter((one) => one?.priority === 0).map((one) => one?.api_key_id);
    expect(urgent.slice(0, 20)).toEqual(names);
    expect(order.filter((one) => one?.priority === 2)).toHaveLength(3);
  });

  test('never order jobs between organizations by priority', () => {
    const { send, end } = process(1);
    send(...jobs(2, 'low', 'k', 2), ...jobs(2, 'high', 'k', 0));

    expect(Array.from({ length: 4 }, () => end()?.organization_id)).toEqual([
      'low',
      'high',
      'low',
      'high',
    ]);
  });

  test('offer slots to jobs as they are accepted only by the same rule', () => {
    const { turns, send, end } = process(2);
    const offered = (...organizations: string[]) => {
      const begun = turns.offerSlots(organizations.map((one) => job(one, 'k')));
      for (const { organization_id } of begun) turns.end(organization_id);
      return begun.map(({ organization_id }) => organization_id);
    };
    expect(offered('a')).toEqual([]);
    turns.offersSlots = true;

    expect(offered('a', 'a', 'a', 'b')).toEqual(['a', 'a', 'b']);
    send(...jobs(3, 'a', 'k'));
    expect(offered('a', 'b', 'b', 'c')).toEqual(['b']);
    end();
    expect(offered('a', 'b')).toEqual(['b']);
  });

  test('give a slot that they offer to no other job until it is given back', () => {
    const turns = new Turns(1);
    turns.offersSlots = true;

    expect(turns.offerSlots([job('a', 'k')])).toHaveLength(1);
    turns.announce('b');
    expect(turns.offerSlots([job('c', 'k')])).toEqual([]);
    expect(turns.candidates()).toEqual([]);
    turns.end('a');

    expect(turns.candidates()).toHaveLength(1);
  });

  test('offer none of the slots that a claim under way may fill', () => {
    const turns = new Turns(2);
    turns.offersSlots = true;
    turns.announce('a');
    const candidates = turns.candidates();

    expect(turns.beginClaim(candidates)).toBe(3);
    expect(turns.offerSlots([job('b', 'k')])).toEqual([]);
    turns.endClaim(candidates, new Set());

    expect(turns.offerSlots([job('b', 'k')])).toHaveLength(1);
  });

  test('are not held back by an organization that has nothing due any more', () => {
    const { turns, send, runsOf } = process(16);
    const begun = [...jobs(6, 'a', 'k'), ...jobs(5, 'b', 'k')];
    for (const one of begun) turns.takeSlot(one);
    turns.announce('b');

    send(job('a', 'k'));

    expect(runsOf('a')).toBe(1);
    expect(turns.isWaiting('b')).toBe(false);
  });

  test('read few more organizations than slots are free', () => {
    const turns = new Turns(16);
    for (let i = 0; i < 50; i++) turns.announce(`${i}`);
    for (const one of jobs(16, 'a', 'k')) turns.takeSlot(one);

    expect(turns.candidates()).toHaveLength(5);
  });

  test('read those first that run the fewest jobs, then those whose last turn was longest ago', () => {
    const turns = new Turns(16);
    for (const id of ['b', 'a', 'c', 'b', 'd']) turns.takeSlot(job(id, 'k'));
    for (const id of ['d', 'c', 'b', 'a', 'e']) turns.announce(id);
    for (const id of ['d', 'a']) turns.end(id);

    const order = turns.candidates().map(({ organization_id }) => organization_id);

    expect(order).toEqual(['e', 'a', 'd', 'c', 'b']);
  });

  test('keep an organization waiting of which another process has locked the last job', () => {
    const turns = new Turns(2);
    turns.announce('a');
    const candidates = turns.candidates();
    turns.beginClaim(candidates);
    const round = turns.round(candidates, [job('a', 'k')]);

    round.lose(round.next() as DueJob);

    expect(round.next()).toBeUndefined();
    expect(round.left()).toEqual(new Set(['a']));
  });

  test('keep what is announced while a claim is under way', () => {
    const turns = new Turns(2);
    turns.announce('a');
    const candidates = turns.candidates();
    turns.beginClaim(candidates);
    turns.announce('a');
    turns.announce('b');

    turns.endClaim(candidates, new Set());

    expect(['a', 'b'].map((id) => turns.isWaiting(id))).toEqual([true, true]);
  });

  test('count a yielded slot as free, until it is taken back', () => {
    const { turns, send, runsOf } = process(1);
    send(...jobs(3, 'a', 'k'));

    const resume = turns.yieldSlot('a');
    send();
    expect(runsOf('a')).toBe(2);
    resume();
    resume();

    expect(turns.mayClaim()).toBe(false);
  });

  test('keep the slots of others however many runs of an organization go on after they yielded theirs', () => {
    const { turns, send, end, runsOf } = process(12);
    const resumes: (() => void)[] = [];
    for (let i = 0; i < 100; i++) {
      send(job('loud', 'k'));
      resumes.push(turns.yieldSlot('loud'));
    }
    for (const resume of resumes) resume();

    send(job('quiet', 'k', 1, 1));
    expect(runsOf('quiet')).toBe(1);
    expect(turns.use().taken).toBe(13);

    send(...jobs(20, 'quiet', 'k'), ...jobs(20, 'loud', 'k'));
    for (let ended = 0; ended < 12; ended++) end();
    expect(runsOf('quiet')).toBe(4);
    while (runsOf('loud') > 4) end();
    expect(runsOf('loud')).toBe(4);
    while (end() !== undefined);
    expect(turns.use().taken).toBe(0);
  });
});

test('whatever is sent, nothing starves, no share is exceeded, and all slots are used by one that is alone', () => {
  const sending = fc.record({
    organization: fc.integer({ min: 0, max: 4 }),
    key: fc.integer({ min: 0, max: 2 }),
    priority: fc.integer({ min: 0, max: 2 }),
    count: fc.integer({ min: 1, max: 30 }),
  });
  const yielding = fc.record({ place: fc.nat({ max: 40 }) });
  const command = fc.oneof(sending, fc.nat({ max: 40 }), yielding);
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20 }),
      fc.array(command, { maxLength: 60 }),
      (slots, all) => {
        const { send, end, running, runsOf, turns } = process(slots);
        const yielded = new Map<DueJob, () => void>();
        const resume = (run: DueJob | undefined) => run && yielded.get(run)?.();
        let sent = 0;
        let ended = 0;
        for (const one of all) {
          if (typeof one === 'number') {
            const place = running.length === 0 ? 0 : one % running.length;
            resume(running[place]);
            if (end(place) !== undefined) ended += 1;
          } else if ('place' in one) {
            const run = running[one.place % Math.max(1, running.length)];
            if (run === undefined) continue;
            if (yielded.has(run)) resume(run);
            else yielded.set(run, turns.yieldSlot(run.organization_id));
            send();
          } else {
            const { organization, key, priority, count } = one;
            send(
              ...Array.from({ length: count }, () =>
                job(`${organization}`, `${key}`, priority, sent++),
              ),
            );
          }
          const { taken } = turns.use();
          expect(taken).toBeLessThanOrEqual(slots + keptSlots(slots));
          expect(turns.mayClaim()).toBe(false);
          for (let id = 0; id < 5; id++) {
            if (yielded.size === 0) expect(runsOf(`${id}`)).toBeLessThanOrEqual(slots);
            // A place is left for one that runs nothing, or all of the kept ones are taken.
            const isOut = turns.isWaiting(`${id}`) && runsOf(`${id}`) === 0;
            if (isOut) expect(taken).toBe(slots + keptSlots(slots));
          }
        }
        for (const run of running) resume(run);
        while (end() !== undefined) ended += 1;
        expect(ended).toBe(sent);
        expect(turns.use().taken).toBe(0);
      },
    ),
    propertyRuns(100, 1_000),
  );
});

test('a job waits for at most so many of its organization, of whatever priority and key those are', () => {
  const { send, end } = process(1);
  send(...jobs(30, 'a', 'k', 0), job('a', 'k', 2, -1));
  let before = 0;
  for (let one = end(); one !== undefined && one.priority !== 2; one = end()) {
    before += 1;
    send(job('a', 'k', 0, 1_000 + before));
  }

  expect(before).toBe(7);
});
