import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
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
