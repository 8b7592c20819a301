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
