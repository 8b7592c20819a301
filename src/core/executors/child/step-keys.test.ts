import { expect, test } from 'vitest';
import type { ContextTuple } from '../protocol.ts';
import { newPart, type Part } from './part.ts';
import { idempotencyKeyOf, makeUuid } from './step-keys.ts';
import { withinStep } from './step-scope.ts';

function partOf(jobId: string, path = ''): Part {
  const context: ContextTuple = [jobId, 'a', 'c', 'o', 1, 0, path];
  const fields = { run: { context }, platform: {}, depth: 0, step: null, path };
  return newPart(fields as unknown as Part);
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('ids are valid UUIDs, the same in each repetition and different in all else', () => {
  const first = partOf('job-1');
  const made = [makeUuid(first), makeUuid(first), makeUuid(partOf('job-1', '/tool'))];
  const ids = [...made, makeUuid(partOf('job-2'))];

  for (const id of ids) expect(id).toMatch(uuid);
  expect(new Set(ids).size).toBe(4);
  const again = partOf('job-1');
  expect([makeUuid(again), makeUuid(again)]).toEqual(made.slice(0, 2));
});

test('ids that a step makes do not count for the run, which may not execute the step again', () => {
  const part = partOf('job-1');
  const [first, second] = [makeUuid(partOf('job-1')), makeUuid(part)];
  const scope = {
    part,
    step: 1,
    name: 'a',
    idempotencyKey: 'k',
    names: undefined,
    uuids: 0,
    isOver: false,
  };

  const within = withinStep({ ...scope }, () => makeUuid(part));

  expect(second).toBe(first);
  expect(within).not.toBe(first);
  expect(withinStep({ ...scope }, () => makeUuid(part))).toBe(within);
  const other = partOf('job-1');
  makeUuid(other);
  expect(makeUuid(part)).toBe(makeUuid(other));
});

test('idempotency keys depend on job, part, name and number alone', () => {
  const keys = [
    idempotencyKeyOf(partOf('job-1'), 'a', 1),
    idempotencyKeyOf(partOf('job-1'), 'a', 2),
    idempotencyKeyOf(partOf('job-1'), 'b', 1),
    idempotencyKeyOf(partOf('job-2'), 'a', 1),
    idempotencyKeyOf(partOf('job-1', '/tool'), 'a', 1),
  ];
  expect(new Set(keys).size).toBe(5);
  expect(idempotencyKeyOf(partOf('job-1'), 'a', 1)).toBe(keys[0]);
  expect(keys[0]).toMatch(/^[\w-]{43}$/);
});
