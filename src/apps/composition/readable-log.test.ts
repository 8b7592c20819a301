import { expect, test } from 'vitest';
import { createLogger } from '../../kernel/log.ts';
import { readableLog } from './readable-log.ts';

const clock = /\d{2}:\d{2}:\d{2}/g;

/** The log of a terminal, and what it has printed, without colours and the time of day. */
function terminal() {
  let text = '';
  const print = (more: string) => {
    text += more;
  };
  const log = createLogger('info', readableLog(print, '/home/ada/project'));
  const printed = () =>
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the colours of a terminal
      .replace(/\u001b\[\d+m/g, '')
      .replace(clock, 'TIME');
  return { log, printed };
}

const failed = {
  job_id: 'j1',
  skill: 'text/v1.0/shout',
  attempt: 1,
  status: 'queued',
  error: { code: 'skill_execution_failed', message: "reading 'length'" },
};

test('a failed run is its reason, the line of the skill that threw it, and its job', () => {
  const { log, printed } = terminal();
  const stack = [
    "TypeError: reading 'length'",
    '    at node:internal/timers:1:2',
    '    at parse (file:///home/ada/project/node_modules/lib/index.js:3:4)',
    '    at Object.run (file:///home/ada/project/skills/loud%20(a)/shout.ts?7:12:20)',
    '    at other (file:///home/ada/project/skills/other.ts:1:1)',
  ].join('\n');

  log.info({ ...failed, stack }, 'a run failed');

  expect(printed()).toBe(
    [
      "TIME ✗ text/v1.0/shout: reading 'length'",
      '         at skills/loud (a)/shout.ts:12:20',
      '         skill_execution_failed, attempt 1, job j1 is queued',
      '',
    ].join('\n'),
  );
});

test('a failure without a line of the skill has two lines, that of a tool names its job', () => {
  const { log, printed } = terminal();
  const { attempt: _attempt, status: _status, ...ofTool } = failed;

  log.info({ ...ofTool, stack: 'Error: a\n    at file:///%zz/x.ts:1:1' }, 'a tool failed');

  expect(printed()).toBe(
    "TIME ✗ text/v1.0/shout: reading 'length'\n         skill_execution_failed, in job j1\n",
  );
});

test('what a skill prints follows its name', () => {
  const { log, printed } = terminal();

  log.info({ job_id: 'j1', skill: 'text/v1.0/shout', stdout: 'one\ntwo\n' }, 'skill output');

  expect(printed()).toBe('TIME text/v1.0/shout: one\n         two\n');
});

test('any other line has its message, its fields and the stack of its error', () => {
  const { log, printed } = terminal();

  log.info({ file: '/srv/a.ts', ms: 12, why: 'it is slow', list: [1] }, 'a skill was slow to load');
  log.warn('no model is set');
  log.error({ err: new RangeError('too deep') }, 'a task failed');

  const [info, warning, error, first, second] = printed().split('\n');
  expect(info).toBe(
    'TIME a skill was slow to load  file=/srv/a.ts ms=12 why="it is slow" list=[1]',
  );
  expect(warning).toBe('TIME warning: no model is set');
  expect(error).toBe('TIME error: a task failed');
  expect(first).toBe('         RangeError: too deep');
  expect(second).toMatch(/^ {9} {4}at .*readable-log\.test\.ts/);
});

test('nothing that a terminal obeys is printed, and texts are cut', () => {
  const { log, printed } = terminal();
  const message = `\u001b]0;owned\u0007\u202e${'x'.repeat(10_000)}`;

  log.info({ ...failed, error: { code: 'skill_execution_failed', message } }, 'a run failed');
  log.info({ field: message, ['a\u001bb']: 1 }, message);

  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is replaced
  expect(printed()).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
  expect(printed().length).toBeLessThan(20_000);
});

test('secrets are censored as in JSON', () => {
  const { log, printed } = terminal();

  log.info({ token: 'hidden', headers: { authorization: 'hidden' } }, 'something');

  expect(printed()).not.toContain('hidden');
});
