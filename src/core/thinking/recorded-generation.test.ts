import { expect, test } from 'vitest';
import type { StepOfGeneration } from '../journal/step-queries.ts';
import { readGeneration } from './recorded-generation.ts';

test.each([true, false])(
  'a tool of an answer may have begun, unless guards hold the answer (%s)',
  (isHeld) => {
    const step = (n: number, kind: string, more: object) =>
      ({
        ...{ n, kind, turn: 1, guard: null, digest: null, rule: null, memory: null },
        ...{ message_id: null, attempt: 1, estimated: 0, cost: null, ...more },
      }) as unknown as StepOfGeneration;
    const rows = [
      step(1, 'model', { status: 'completed', message_id: '1' }),
      step(2, 'tool', { status: 'interrupted', call_id: 'call_2' }),
    ];
    const answer = { role: 'assistant', text: '', toolCalls: [{ id: 'call_2' }] };
    const stored = isHeld ? { ...answer, isHeld } : answer;

    const { open } = readGeneration(rows, new Map([['1', JSON.stringify(stored)]]), 1);

    expect(open.get('call_2')?.left?.isInterrupted).toBe(isHeld ? undefined : true);
    expect(open.size).toBe(1);
  },
);

test('changes of the memory by tools and guards are in the order of their steps', () => {
  const step = (n: number, kind: string, change?: object) =>
    ({
      ...{ n, kind, turn: 1, status: 'completed', call_id: `call_${n}`, guard: null },
      ...{ message_id: kind === 'guard' ? null : `${n}`, attempt: 1, estimated: 0, cost: null },
      memory: change === undefined ? null : JSON.stringify([change]),
    }) as unknown as StepOfGeneration;
  const [kept, dropped] = [{ remembered: { id: 'a' } }, { forgotten: 'a' }];
  const rows = [step(1, 'model'), step(2, 'tool', kept), step(3, 'guard', dropped)];
  const message = { role: 'assistant', text: '', toolCalls: [{ id: 'call_2' }] };
  const result = { role: 'tool', callId: 'call_2', text: '' };
  const data = new Map(Object.entries({ 1: JSON.stringify(message), 2: JSON.stringify(result) }));

  expect(readGeneration(rows, data, 1).memory).toEqual([kept, dropped]);
});
