import { expect, test } from 'vitest';
import { limitOfAgent, limitOfOrganization, settableLimits } from '../../limits/limit-names.ts';
import { gatesOf, isTurnOfCalls, leavesPlace, lockOf, lowerPriorityOf } from './gates.ts';

test.each([1, 2, 3, 4, 8, 16])(
  'where %i organizations go round, each has one of eight turns for a lower priority',
  (organizations) => {
    for (let first = 1; first <= organizations; first++) {
      const lower = Array.from({ length: 800 }, (_, i) =>
        lowerPriorityOf(first + i * organizations),
      );

      const counts = [1, 2].map((priority) => lower.filter((one) => one === priority).length);

      for (const count of counts) expect(Math.abs(count - 50)).toBeLessThan(10);
    }
  },
);

test.each([1, 2, 3, 4, 8, 16])(
  'where %i organizations go round, the calls of each come first in one of two turns',
  (organizations) => {
    for (let first = 1; first <= organizations; first++) {
      const turns = Array.from({ length: 800 }, (_, i) => first + i * organizations);

      const { length } = turns.filter(isTurnOfCalls);

      expect(Math.abs(length - 400)).toBeLessThan(20);
    }
  },
);

test('the gates of work of one key have a few locks, however many keys of clients there are', () => {
  const scopes = ['platform', 'organization', 'agent', 'user', 'key', 'client-key'] as const;
  const locksOf = (n: number) => {
    const work = {
      ...{
        organization_id: 'acme',
        agent_id: `agent ${n}`,
        api_key_id: 'key',
        user_id: `${n} = ${n}`,
      },
      ...{ skill_category: 'web', skill_version: 'v1.0', skill_name: 'get' },
      concurrency_key: `client = ${n}`,
    };
    const limits = scopes.map((per) => ({ limit: 1, per }));
    const gates = [...gatesOf(limits, work).map(({ name }) => name), ...settableLimits(work)];
    return gates.map(lockOf);
  };

  const locks = new Set(Array.from({ length: 1_000 }, (_, n) => locksOf(n)).flat());

  expect(locks).toEqual(
    new Set(['web/v1.0/get', 'web/v1.0/get acme', 'web/v1.0/get key', ' acme', ' key']),
  );
});

const ofAgent = limitOfAgent('acme', 'x');
const ofOrganization = limitOfOrganization('acme');
const ofAll = 'concurrency of web/v1.0/get';
const starts = 'rate of web/v1.0/get = 60';

test.each([
  [[ofAgent, ofOrganization, ofAll, starts], []],
  [[ofOrganization, ofAll, starts], [ofAgent]],
  [[ofAgent, ofOrganization, starts], []],
  [[ofAll], [ofAgent, ofOrganization]],
  [[starts], [ofAgent, ofOrganization, ofAll]],
  [[], [ofAgent, ofOrganization, ofAll, starts]],
])(
  'a work of which the gates %j are full has places left at %j',
  (full: string[], left: string[]) => {
    const gates = [starts, ofAll, ofOrganization, ofAgent].map((name) => ({ name, limit: 2 }));
    const taken = new Map(gates.map(({ name }) => [name, full.includes(name) ? 2 : 1]));

    const leaving = gates.filter(({ name }) => leavesPlace(gates, taken, name));

    expect(new Set(leaving.map(({ name }) => name))).toEqual(new Set(left));
  },
);
