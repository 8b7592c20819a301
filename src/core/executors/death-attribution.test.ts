import { describe, expect, test } from 'vitest';
import { attributeDeath, type Death, type RunFacts } from './death-attribution.ts';

function facts(changes: Partial<RunFacts> = {}): RunFacts {
  return {
    hasStarted: true,
    isBeginning: false,
    stopRequest: null,
    hasReceived: false,
    isOverdue: false,
    isAlone: false,
    hasOutlived: false,
    timeoutMessage: 'run timed out after 100 ms',
    ...changes,
  };
}

const timeout = { kind: 'timeout', message: 'run timed out after 100 ms' };
const neighbour = { kind: 'displaced', suspect: true };
const bystander = { kind: 'displaced', suspect: false };

test('a run that ends its own process by an exit code has failed; a signal may come from elsewhere', () => {
  const exited = attributeDeath({ kind: 'ended', how: 'exit code 3' }, [facts()]);
  expect(exited).toEqual([
    {
      kind: 'failed',
      code: 'skill_execution_failed',
      message: 'the run ended its executor process: exit code 3',
      retryable: true,
    },
  ]);
  for (const how of ['SIGKILL', 'SIGSEGV', 'exit code 134, out of memory']) {
    expect(attributeDeath({ kind: 'ended', how }, [facts()])).toMatchObject([{ kind: 'lost' }]);
  }
});

describe.each<[string, Death, string]>([
  [
    'ended by itself',
    { kind: 'ended', how: 'SIGKILL' },
    'the run ended its executor process: SIGKILL',
  ],
  [
    'stopped answering',
    { kind: 'stalled', ms: 9 },
    "the run blocked its executor's event loop for 9 ms",
  ],
  [
    'held too much memory',
    { kind: 'memory', mb: 9 },
    'the run made its executor hold more than 9 MB of memory',
  ],
  [
    'spoke nonsense',
    { kind: 'garbled', how: 'x' },
    "the run wrote to its executor's own socket: x",
  ],
])('an executor that %s', (_, death, message) => {
  test('charges the only run', () => {
    expect(attributeDeath(death, [facts()])).toEqual([{ kind: 'lost', message }]);
  });

  test('charges no run when there were several', () => {
    expect(attributeDeath(death, [facts(), facts()])).toEqual([neighbour, neighbour]);
  });

  test('charges the only run whose code may have begun', () => {
    const outcomes = attributeDeath(death, [facts({ hasStarted: false }), facts()]);
    expect(outcomes).toEqual([bystander, { kind: 'lost', message }]);
  });

  test('charges a run that was alone, even when its ping was not answered', () => {
    const outcomes = attributeDeath(death, [facts({ hasStarted: false, isAlone: true })]);
    expect(outcomes).toEqual([{ kind: 'lost', message }]);
  });

  test('charges no run beside which another has ended, which may have left code behind', () => {
    expect(attributeDeath(death, [facts({ hasOutlived: true })])).toEqual([neighbour]);
  });

  test('is a timeout for the only run if its deadline had passed', () => {
    expect(attributeDeath(death, [facts({ stopRequest: 'timeout' })])).toEqual([timeout]);
  });

  test('ends an aborted run as aborted, and still counts it as a suspect', () => {
    expect(attributeDeath(death, [facts({ stopRequest: 'abort' }), facts()])).toEqual([
      { kind: 'aborted' },
      neighbour,
    ]);
  });
});

test('an executor that stopped answering charges the run that it was starting', () => {
  const outcomes = attributeDeath({ kind: 'stalled', ms: 9 }, [
    facts({ isBeginning: true }),
    facts(),
  ]);
  expect(outcomes).toEqual([{ kind: 'lost', message: expect.any(String) }, bystander]);
});

test('an executor that stopped answering charges the run that it was starting, whatever has ended before', () => {
  const starting = facts({ isBeginning: true, hasOutlived: true });
  const outcomes = attributeDeath({ kind: 'stalled', ms: 9 }, [starting, facts()]);
  expect(outcomes).toEqual([{ kind: 'lost', message: expect.any(String) }, bystander]);
});

test('an executor killed for an overdue run charges that run and no neighbour', () => {
  const outcomes = attributeDeath({ kind: 'overdue' }, [
    facts({ stopRequest: 'timeout', hasReceived: true, isOverdue: true }),
    facts(),
    facts({ stopRequest: 'timeout' }),
    facts({ stopRequest: 'timeout', hasReceived: true }),
    facts({ stopRequest: 'abort' }),
  ]);
  expect(outcomes).toEqual([timeout, bystander, bystander, timeout, { kind: 'aborted' }]);
});

test.each<Death['kind']>(['stopped', 'retired'])(
  'an executor that is %s aborts its runs',
  (kind) => {
    expect(attributeDeath({ kind } as Death, [facts(), facts()])).toEqual([
      { kind: 'aborted' },
      { kind: 'aborted' },
    ]);
  },
);
