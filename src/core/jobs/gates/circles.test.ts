import { expect, test } from 'vitest';
import { callsToFail, type TakenPlace, type WaitingCall } from './circles.ts';

/**
 * `a b:C` is the run `a` with places at the gates `b`, a call of which waits at `C`; `a b.1` has the place with its call 1, and
 * `C@1` is called within that.
 */
function worldOf(...runs: string[]) {
  const waiting: WaitingCall[] = [];
  const places: TakenPlace[] = [];
  for (const run of runs) {
    const [id = '', rest = ''] = run.split(' ');
    const [held = '', calls = ''] = rest.split(':');
    for (const place of held.split(',').filter(Boolean)) {
      const [gate = '', n = '0'] = place.split('.');
      places.push({ job_id: id, gate, n: Number(n) });
    }
    for (const [i, call] of calls.split(',').filter(Boolean).entries()) {
      const [gate = '', ...within] = call.split('@');
      waiting.push({ job_id: id, n: i + 11, gate, within: within.map(Number) });
    }
  }
  return [waiting, places] as const;
}

test.each<[string, string[], Record<string, number>, string[]]>([
  ['two runs that wait for each other', ['x a:b', 'y b:a'], {}, ['y']],
  ['a circle of three', ['x a:b', 'y b:c', 'z c:a'], {}, ['z']],
  ['a run behind a circle, which has no place', ['x a:b', 'y b:a', 'z :a'], {}, ['y']],
  ['two circles', ['x a:b', 'y b:a', 'u c:d', 'v d:c'], {}, ['v', 'y']],
  ['limits of two, all in circles', ['x a:b', 'y a:b', 'u b:a', 'v b:a'], { a: 2, b: 2 }, ['v']],
  ['a run that waits for one that goes on', ['x a:b', 'y b'], {}, []],
  ['a place that goes on beside a circle', ['x a:b', 'y b:a', 'u b'], { b: 2 }, []],
  ['a gate with a free place', ['x a:b', 'y b:a'], { b: 2 }, []],
  ['a place of a call that may end before another one', ['x a:b', 'y b.1:a'], {}, []],
  ['two calls whose nested calls wait for each other', ['x a.1:b@1', 'y b.1:a@1'], {}, ['y']],
  ['a call within a nested one', ['x a.1:b@1@2', 'y b:a'], {}, ['y']],
  ['a nested call beside one that waits', ['x a.1:b', 'y b.1:a@1'], {}, []],
  ['a nested call and the run around it', ['x a:b', 'y b.1:a@1'], {}, ['y']],
  ['a circle behind another', ['x a:b', 'y b:a', 'u c:a', 'v a2:c'], {}, ['y']],
  ['a pause', ['x a:p', 'y :a'], { p: 0 }, []],
  ['a run of which one call goes on', ['x a:b,c', 'y b:a', 'z c'], {}, ['y']],
])('%s', (_, runs, limits, failed) => {
  const [waiting, places] = worldOf(...runs);

  const calls = callsToFail(waiting, places, (gate) => limits[gate] ?? 1);

  expect(calls.map(({ job_id }) => job_id)).toEqual(failed);
});
