import { expect, test } from 'vitest';
import { WaitScope } from './wait-scope.ts';

function scope() {
  let blocked = 0;
  const root = new WaitScope(() => {
    blocked += 1;
  });
  /** How often it was called since the last look. */
  const calls = () => {
    const since = blocked;
    blocked = 0;
    return since;
  };
  return { root, calls };
}

test('a run is blocked while it has open waits and nothing else', () => {
  const { root, calls } = scope();

  const ended = root.work();
  root.wait();
  expect(calls()).toBe(0);
  ended();
  expect(calls()).toBe(1);
});

test('a run without anything open is not blocked: its code runs', () => {
  const { root, calls } = scope();

  const ended = root.wait();
  calls();
  ended();

  expect(calls()).toBe(0);
});

test('a called skill is blocked when all that is open in it waits, however deep', () => {
  const { root, calls } = scope();

  const skill = root.open();
  const inner = skill.open();
  root.wait();
  expect(calls()).toBe(0);
  inner.wait();
  expect(calls()).toBe(1);
  const ended = inner.work();
  expect(calls()).toBe(0);
  ended();
  expect(calls()).toBe(1);
});

test('each further wait of a blocked run is told, because it asks the run again', () => {
  const { root, calls } = scope();

  root.wait();
  root.wait();

  expect(calls()).toBe(2);
});

test('a scope that is closed blocks nothing any more', () => {
  const { root, calls } = scope();
  const skill = root.open();
  root.wait();
  expect(calls()).toBe(0);

  skill.close();
  skill.close();

  expect(calls()).toBe(1);
});
