import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { describeFailure } from './failure.ts';

const load = createRequire(import.meta.url);

function faultOf(specifier: string): string {
  try {
    load(specifier);
    return 'it loaded';
  } catch (error) {
    return describeFailure(error).message;
  }
}

test('a module that is not there is named without the paths of the server', () => {
  expect(faultOf('not-there')).toBe("Cannot find module 'not-there'");
  expect(faultOf('/srv/skills/not-there.js')).toBe("Cannot find module 'not-there.js'");
  const imported = Object.assign(
    new Error("Cannot find module '/srv/a b/x.js' imported from /srv/a b/skill.ts"),
    { code: 'ERR_MODULE_NOT_FOUND' },
  );
  expect(describeFailure(imported).message).toBe("Cannot find module 'x.js'");
  expect(describeFailure(new Error('in /srv/data')).message).toBe('in /srv/data');
});

test('an expected error keeps the line of the skill that threw it, any other one its whole stack', () => {
  const stack =
    'SkillError: no\n    at new SkillError (node:a:1:1)\n    at run (file:///srv/a.ts:3:9)';
  const expected = Object.assign(new Error('no'), { retryable: false, stack });

  expect(describeFailure(expected).stack).toBe('SkillError: no\n    at run (file:///srv/a.ts:3:9)');
  expect(describeFailure(Object.assign(new Error('no'), { stack })).stack).toBe(stack);
  expect(describeFailure({ retryable: true, stack: 'SkillError: no' }).stack).toBeNull();
});

function thrownBy(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}

test.each([
  ['zod', (value: unknown) => z.object({ a: z.object({ b: z.string() }) }).parse(value)],
  [
    'zod/mini',
    (value: unknown) => mini.object({ a: mini.object({ b: mini.string() }) }).parse(value),
  ],
])('an error of %s is a sentence with the place, and no other attempt is made', (_of, parse) => {
  const { message, retryable, code } = describeFailure(thrownBy(() => parse({ a: { b: 1 } })));

  expect(message).toMatch(
    /^a value does not fit a schema of the skill's code: a\.b: Invalid input/,
  );
  expect(message).not.toMatch(/[[\]{}\n]/);
  expect({ retryable, code }).toEqual({ retryable: false, code: 'skill_execution_failed' });
});

test('of many issues the first five are named; an author may ask for another attempt', () => {
  const thrown = thrownBy(() => z.array(z.string()).parse([1, 2, 3, 4, 5, 6, 7]));

  expect(describeFailure(thrown).message).toMatch(/0: .*; 4: [^;]*; and 2 more$/);
  expect(describeFailure(Object.assign(thrown as object, { retryable: true })).retryable).toBe(
    true,
  );
});

test('an error with issues of another kind stays as it is', () => {
  const thrown = Object.assign(new Error('busy'), { issues: [{ message: 'later' }] });

  expect(describeFailure(thrown)).toMatchObject({ message: 'busy', retryable: true });
});

test.each([
  [1_500.2, 1_501],
  [0, null],
  [-5, null],
  [Number.NaN, null],
  [Number.POSITIVE_INFINITY, null],
  ['60', null],
  [undefined, null],
])('an error with retryAfterMs %s asks for a delay of %s', (retryAfterMs, expected) => {
  expect(describeFailure({ message: 'busy', retryAfterMs }).retryAfterMs).toBe(expected);
});
