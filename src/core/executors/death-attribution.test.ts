import { describe, expect, test } from 'vitest';
import { request } from '../../../test/fixtures/skills/driver.ts';
import type { ActiveRun, StopRequest } from './active-run.ts';
import { attributeDeath, type Death, type Suspect } from './death-attribution.ts';

const accepted = { request: request('a/b', {}, { timeoutMs: 100 }) };

/** A run that has begun, beside no code of ended ones. */
function begun(changes: Partial<Omit<Suspect, 'run'>> & { id?: number } = {}): Suspect {
  const { id = 1, ...facts } = changes;
  const run = { id, accepted, stopRequest: undefined } as unknown as ActiveRun;
  return { run, mayHaveBegun: true, hasBegun: false, hasOutlived: false, ...facts };
}

/** A run that was asked to stop. */
function stopped(cause: StopRequest['cause'], changes: Partial<StopRequest> = {}): Suspect {
  const stopRequest = { cause, receivedAt: undefined, isOverdue: false, ...changes };
  const run = { id: 1, accepted, stopRequest } as unknown as ActiveRun;
  return { run, mayHaveBegun: true, hasBegun: false, hasOutlived: false };
}

const timeout = { kind: 'timeout', message: 'run timed out after 100 ms' };
const neighbour = { kind: 'displaced', suspect: true };
const bystander = { kind: 'displaced', suspect: false };

test('a run that ends its own process by an exit code has failed; a signal may come from elsewhere', () => {
  const exited = attributeDeath({ kind: 'ended', how: 'exit code 3' }, [begun()]);
  expect(exited).toEqual([
    {
      kind: 'failed',
      code: 'skill_execution_failed',
      message: 'the run ended its executor process: exit code 3',
      retryable: true,
    },
  ]);
  for (const how of ['SIGKILL', 'SIGSEGV', 'exit code 134, out of memory']) {
    expect(attributeDeath({ kind: 'ended', how }, [begun()])).toMatchObject([{ kind: 'lost' }]);
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
    { kind: 'stalled', ms: 9, begun: undefined },
    "the run blocked its executor's event loop for 9 ms",
  ],
  [
    'held too much memory',
    { kind: 'memory', mb: 9, begun: undefined },
    'the run made its executor hold more than 9 MB of memory',
  ],
  [
    'spoke nonsense',
    { kind: 'garbled', how: 'x', begun: undefined },
    "the run wrote to its executor's own socket: x",
  ],
])('an executor that %s', (_, death, message) => {
  test('charges the only run', () => {
    expect(attributeDeath(death, [begun()])).toEqual([{ kind: 'lost', message }]);
  });

  test('charges no run when there were several', () => {
    expect(attributeDeath(death, [begun(), begun()])).toEqual([neighbour, neighbour]);
  });

  test('charges the only run whose code may have begun', () => {
    const outcomes = attributeDeath(death, [begun({ mayHaveBegun: false }), begun()]);
    expect(outcomes).toEqual([bystander, { kind: 'lost', message }]);
  });

  test('charges no run beside which another has ended, which may have left code behind', () => {
    expect(attributeDeath(death, [begun({ hasOutlived: true })])).toEqual([neighbour]);
  });

  test('is a timeout for the only run if its deadline had passed', () => {
    expect(attributeDeath(death, [stopped('timeout')])).toEqual([timeout]);
  });

  test('ends an aborted run as aborted, and still counts it as a suspect', () => {
    expect(attributeDeath(death, [stopped('abort'), begun()])).toEqual([
      { kind: 'aborted' },
      neighbour,
    ]);
  });
});

test('an executor that stopped answering charges the run that it was starting', () => {
  const death: Death = { kind: 'stalled', ms: 9, begun: { id: 7, isBeginning: true } };
  const outcomes = attributeDeath(death, [begun({ id: 7 }), begun()]);
  expect(outcomes).toEqual([{ kind: 'lost', message: expect.any(String) }, bystander]);
});

test('an executor that stopped answering charges the run that it was starting, whatever has ended before', () => {
  const death: Death = { kind: 'stalled', ms: 9, begun: { id: 7, isBeginning: true } };
  const outcomes = attributeDeath(death, [begun({ id: 7, hasOutlived: true }), begun()]);
  expect(outcomes).toEqual([{ kind: 'lost', message: expect.any(String) }, bystander]);
});

test.each<Extract<Death, { begun: unknown }>>([
  { kind: 'stalled', ms: 9, begun: { id: 0, isBeginning: false } },
  { kind: 'memory', mb: 9, begun: { id: 0, isBeginning: false } },
  { kind: 'garbled', how: 'x', begun: { id: 0, isBeginning: false } },
])('an executor that is killed, $kind, charges no run that it has not begun', (death) => {
  expect(attributeDeath(death, [begun()])).toEqual([bystander]);
  const after: Death = { ...death, begun: { id: 1, isBeginning: false } };
  const outcomes = attributeDeath(after, [begun(), begun({ id: 2 })]);
  expect(outcomes).toEqual([{ kind: 'lost', message: expect.any(String) }, bystander]);
});

test('a run that has begun is charged, though the process title says that none has', () => {
  const death: Death = { kind: 'stalled', ms: 9, begun: { id: 0, isBeginning: false } };
  const outcomes = attributeDeath(death, [begun({ hasBegun: true })]);
  expect(outcomes).toEqual([{ kind: 'lost', message: expect.any(String) }]);
});

test('an executor killed for an overdue run charges that run and no neighbour', () => {
  const outcomes = attributeDeath({ kind: 'overdue' }, [
    stopped('timeout', { receivedAt: 1, isOverdue: true }),
    begun(),
    stopped('timeout'),
    stopped('timeout', { receivedAt: 1 }),
    stopped('abort'),
  ]);
  expect(outcomes).toEqual([timeout, bystander, bystander, timeout, { kind: 'aborted' }]);
});

test.each<Death['kind']>(['stopped', 'retired'])(
  'an executor that is %s aborts its runs',
  (kind) => {
    expect(attributeDeath({ kind } as Death, [begun(), begun()])).toEqual([
      { kind: 'aborted' },
      { kind: 'aborted' },
    ]);
  },
);
