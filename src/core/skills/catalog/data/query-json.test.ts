import { describe, expect, test } from 'vitest';
import { decided, inShortSandbox, tookTooLong } from '../../../../../test/support/short-sandbox.ts';
import { trySkill } from '../../../../../test/support/try-skill.ts';
import type { EvaluationRequest } from '../../../../adapters/sandbox/jsonata.ts';
import queryJson from './query-json.ts';

const backtracking = '$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(a+)+$/)';

const query = (data: unknown, expression: string, variables = {}) =>
  trySkill(queryJson, { data, expression, variables });

const value = async (data: unknown, expression: string, variables = {}): Promise<unknown> =>
  (await query(data, expression, variables)).result;

test.each([
  [{ a: { b: [1, 2, 3] } }, 'a.b[1]', 2],
  [[3, 1, 2], '$sort($)', [1, 2, 3]],
  [{ a: [1] }, 'a', [1]],
  [[{ n: 1 }, { n: 2 }], '$[n > 1].n', 2],
  [null, '$', null],
  ['text', '$uppercase($)', 'TEXT'],
  [{}, '"Zürich 🏔️"', 'Zürich 🏔️'],
  [{}, '[1..5]', [1, 2, 3, 4, 5]],
  [{ 'odd name': 1 }, '`odd name`', 1],
  [{}, '$map([1, 2], function($x) { $x * $by })', [2, 4]],
])('%j, asked for %s, gives %j', async (data, expression, result) => {
  expect(await value(data, expression, { by: 2 })).toEqual(result);
});

test('what is not there is not found, which is no error', async () => {
  expect(await query({ a: null }, 'a')).toEqual({ result: null, found: true });
  expect(await query({ a: 1 }, 'b.c')).toEqual({ result: null, found: false });
});

test('data with odd names changes nothing else', async () => {
  const data: unknown = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": 2}');

  expect(await value(data, 'constructor')).toBe(2);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

describe('an expression that cannot be evaluated says why', () => {
  test.each([
    ['a +', 'The expression fails: Unexpected end of expression'],
    ['a[', '(at character'],
    ['$nothing(1)', 'Attempted to invoke a non-function'],
    ['"a" * 2', 'must evaluate to a number'],
    ['1 / 0', 'Infinity'],
    ['{"a": 10 * 1e308}', 'Infinity'],
    ['$error("mine")', 'mine'],
    ['$sum', 'a function'],
    ['{"a": [function($x) { $x }]}', 'a function'],
    ['$toMillis("never")', 'The expression fails:'],
  ])('%s', async (expression, message) => {
    await expect(value({ a: 1 }, expression)).rejects.toThrow(message);
  });

  test('and is not tried again', async () => {
    await expect(query({}, 'a +')).rejects.toMatchObject({ name: 'SkillError', retryable: false });
  });
});

describe('an expression that asks for too much is stopped', () => {
  test.concurrent.each([
    ['recursion without end', '($f := function($n) { 1 + $f($n + 1) }; $f(1))'],
    ['a huge range', '[1..99999999]'],
    ['a huge text', '$pad("", 4000000000)'],
    ['a text that doubles', '($f := function($s) { $f($s & $s) }; $f("xxxxxxxx"))'],
    ['a long result', '$map([1..6000], function($i) { $pad($string($i), 200) })'],
  ])('%s', async (_what, expression) => {
    await expect(query({}, expression)).rejects.toMatchObject({
      name: 'SkillError',
      retryable: false,
    });
  });

  test('a pattern that backtracks, after 5 s of processor time', async () => {
    await expect(decided(() => query({}, backtracking))).rejects.toMatchObject({
      name: 'SkillError',
      message: 'This takes longer than 5 s',
      retryable: false,
    });
  });

  test('tail recursion without end', async () => {
    const asked = inShortSandbox({
      module: 'adapters/sandbox/jsonata.ts',
      function: 'evaluate',
      input: {
        expression: '($f := function($n) { $f($n + 1) }; $f(1))',
        context: '{}',
        levels: 20_000,
        valueBytesMax: 1_000_000,
      } satisfies EvaluationRequest,
    });

    await expect(asked).rejects.toMatchObject(tookTooLong);
  });

  test('and the run can be cancelled while it goes on', async () => {
    const run = new AbortController();
    const input = { data: {}, expression: '($f := function($n) { $f($n + 1) }; $f(1))' };

    const evaluating = trySkill(queryJson, input, { signal: run.signal });
    setTimeout(() => run.abort(new Error('cancelled')), 100);

    await expect(evaluating).rejects.toThrow('cancelled');
  });
});

test.each([
  'constructor.constructor("return process")()',
  '$sum.constructor.constructor("return process")()',
  '"".constructor.constructor("return process")()',
  '$eval("constructor.constructor(\\"return process\\")()")',
  '($f := function($x) { $x }; $f.implementation.constructor("return process")())',
  '__proto__.constructor.constructor("return process")()',
])('%s reaches nothing', async (expression) => {
  // JSONata knows no way to the code of its functions; each is undefined or an error, and no process.
  const outcome = await query({ a: 1 }, expression).catch((error: unknown) => error);

  expect(outcome).toSatisfy(
    (given) => given instanceof Error || (given as { found: boolean }).found === false,
  );
});
