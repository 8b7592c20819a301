import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { childProcesses } from '../../../test/fixtures/skills/driver.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { Expressions } from './expressions.ts';

/** A busy machine makes tests wait longer than senders would. */
const patient = { waitMs: 60_000 };
let mappings: Expressions;
/** For many expressions that never end: each ends after a third of the usual processor time. */
let brisk: Expressions;
beforeAll(() => {
  mappings = new Expressions(patient);
  brisk = new Expressions({ ...patient, evaluationMs: 170 });
});
afterAll(() => Promise.all([mappings.stop(), brisk.stop()]));

const context = {
  body: { items: [{ price: 4 }, { price: 9 }], ref: 'refs/heads/main' },
  headers: { 'x-github-event': 'push' },
  query: { team: 'care' },
};
const value = (expression: string, owner = 'acme') => mappings.evaluate(owner, expression, context);
const briskValue = (expression: string, owner: string) =>
  brisk.evaluate(owner, expression, context);
/** One string of 2 ** n times eight characters. */
const doubled = (n: number) =>
  `($f := function($s, $n) { $n = 0 ? $s : $f($s & $s, $n - 1) }; $f("xxxxxxxx", ${n}))`;

/**
 * The outcome of a mapping that is stopped. Where the machine came to its deadline late the platform
 * cannot tell what it would have given, so it is asked again.
 */
async function stopped(expression: string): Promise<unknown> {
  for (;;) {
    const [{ reason }] = (await Promise.allSettled([value(expression)])) as [PromiseRejectedResult];
    if (!wasHeldUp(reason)) return reason;
  }
}

const wasHeldUp = (reason: unknown) =>
  (reason as Error | undefined)?.message === 'The mapping could not be evaluated in time';

/** Whether it was taken to be evaluated, and not refused as one too many. */
const wasTaken = (answer: PromiseSettledResult<unknown>) =>
  answer.status === 'fulfilled' || wasHeldUp(answer.reason);

/** Lets this process, which is the platform, do nothing else for so long. */
function holdUp(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Breaks JSONata's own function $sum in the process that evaluates the expression. */
const breakBuiltIns =
  '$clone := function($o){$o}; $off := |a|{"implementation": null}|; $off({"a": $sum})';

describe('a mapping', () => {
  test.each([
    ['{"sum": $sum(body.items.price)}', { sum: 13 }],
    ['body.items[price > 5]', { price: 9 }],
    ['headers."x-github-event" & " " & query.team', 'push care'],
    ['$substringAfter(body.ref, "refs/heads/")', 'main'],
    ['[]', []],
    ['null', null],
    ['false', false],
    ['body.nowhere', undefined],
    ['{"toString": 1, "constructor": 2}', { toString: 1, constructor: 2 }],
    ['$base64encode("hello?>")', 'aGVsbG8/Pg=='],
    ['$base64decode("aGVsbG8/Pg==")', 'hello?>'],
    ['$base64decode("aGVs bG8_Pg")', 'hello?>'],
    ['$base64decode("aGVsb")', 'hel'],
    ['{"toJSON": 1}', { toJSON: 1 }],
  ])('%s', async (expression, expected) => {
    expect(await value(expression)).toEqual(expected);
  });

  test.each([
    ['that throws', '$error("no such branch")', 'no such branch'],
    ['that compares what cannot be compared', '1 < "a"', 'same data type'],
    ['that calls what is no function', 'body.items()', 'non-function'],
    ['that gives a function', '{"f": $sum}', 'gives a function'],
    ['that gives a lambda', '[function($x){$x}]', 'gives a function'],
    [
      'that gives a function named toJSON',
      '{"toJSON": $spread(function(){1})}',
      'gives a function',
    ],
    ['that gives infinity', '{"n": 1/0}', 'Infinity'],
    ['that gives NaN', '{"n": 0/0}', 'NaN'],
    ['that gives __proto__', '{"__proto__": {"x": 1}}', 'gives what no request may bring'],
    ['that gives half a surrogate pair', '$substring("🏔", 0, 1) & "\\uD800"', 'surrogate'],
    ['that gives 65 levels', `${'['.repeat(65)}1${']'.repeat(65)}`, 'nested deeper than 64'],
    ['that gives more than 1 MiB', '$pad("", 1100000, "x")', '1 MiB'],
    ['that never ends', '($f := function() { $f() }; $f())', 'takes longer than 500 ms'],
    ['that recurses without end', '($f := function($x) { $f($x) + 1 }; $f(1))', 'too far'],
    ['that grows a string without end', doubled(40), 'too far'],
    ['that fails in the library itself', `(${breakBuiltIns}; $sum([1]))`, 'cannot be evaluated'],
    ['that makes a broken regular expression', '/a**/', 'cannot be read'],
    [
      'that fails behind its own back',
      '{"then": $spread(function($done){($done({"x": 1}); $error("late"))})}',
      'leaves work behind',
    ],
  ])('%s is 400 on the field mapping, with the reason', async (_title, expression, reason) => {
    expect(await stopped(expression)).toMatchObject({
      code: 'validation_error',
      message: expect.stringContaining(reason),
      extras: { details: [{ field: 'mapping', issue: expect.stringContaining(reason) }] },
    });
    expect(await value('1')).toBe(1);
  });

  // Each of these ends a thread late or never, or takes the whole process with it.
  test.each([
    ['backtracks for ever', `$match("${'a'.repeat(50)}!", /^(a+)+$/)`],
    ['allocates 500 MB at once', '$pad("x", 500000000)'],
    ['flattens a string of 250 MB', `$uppercase(${doubled(25)})`],
    ['splits a string into millions', `$count($split(${doubled(25)}, ""))`],
    ['encodes a string of 200 MB', '$base64encode($pad("x", 200000000))'],
    ['makes ten million numbers', '$join([1..9999999].$string())'],
    ['makes nine million pairs', '[1..3000].[1..3000]'],
    ['doubles a list without end', '($f := function($a) { $f($append($a, $a)) }; $f([1]))'],
  ])('that %s is 400, and the next one is fine', async (_title, expression) => {
    expect(await stopped(expression)).toMatchObject({
      code: 'validation_error',
      message: expect.stringMatching(/too much memory|takes longer than|too far/),
    });

    expect(await value('body.ref')).toBe('refs/heads/main');
  });

  test('sees no environment, no file and no other mapping', async () => {
    await value('($secret := "theirs"; $sum := function($x) { $secret }; 1)');

    expect(await value('$secret')).toBeUndefined();
    expect(await value('$sum([1, 2])')).toBe(3);
    for (const expression of ['process', '$process', 'body.constructor', 'body.__proto__']) {
      expect(await value(expression)).toBeUndefined();
    }
    await expect(value('$eval("process.env")')).resolves.toBeUndefined();
  });

  test.each([
    ['an assignment', `(${breakBuiltIns}; {"ok": 1})`],
    ['$eval', `($eval('(${breakBuiltIns})'); {"ok": 1})`],
    [
      'a parameter',
      '(function($clone){|a|{"implementation": null}|}(function($o){$o})({"a": $sum}))',
    ],
  ])('changes no function of another owner, by %s', async (_title, expression) => {
    // Twice as many as there are processes, so that each has had one.
    await Promise.allSettled(Array.from({ length: 4 }, () => value(expression, 'bad')));

    const sums = Array.from({ length: 4 }, () => value('$sum(body.items.price)', 'good'));
    expect(await Promise.all(sums)).toEqual([13, 13, 13, 13]);
  });

  const slowly = `($map([1..200], function($v){$v + 1}); $match("${'a'.repeat(40)}!", /^(a+)+$/))`;
  test.each([
    ['a part that has failed', `{"a": $error("early"), "b": ${slowly}}`],
    ['a function named then', `{"then": $spread(function($done){($done(1); ${slowly})})}`],
    ['a function named toJSON', `{"toJSON": $spread(function(){${slowly}})}`],
  ])(
    'pays for what it leaves behind, by %s, and no other owner does',
    async (_title, expression) => {
      const bad = await Promise.allSettled([
        briskValue(expression, 'bad'),
        briskValue(expression, 'bad'),
      ]);

      expect(await Promise.all([briskValue('1', 'good'), briskValue('2', 'good')])).toEqual([1, 2]);
      for (const { status } of bad) expect(status).toBe('rejected');
    },
  );
});

describe('an expression', () => {
  test('is only read when it is checked', async () => {
    await mappings.check('acme', '($f := function() { $f() }; $f())');
    await mappings.check('acme', 'body.x');
  });

  test.each([
    ['a path without an end', 'body.'],
    ['a string without an end', '"'],
    ['a broken regular expression', '/(/'],
    ['8 KiB of brackets', '('.repeat(8_192)],
    ['8 KiB of minus', '-'.repeat(8_192)],
    ['spaces', ' '],
    ['an object without a colon', '{"a" 1}'],
  ])('that does not parse is 400: %s', async (_title, expression) => {
    await expect(mappings.check('acme', expression)).rejects.toMatchObject({
      code: 'validation_error',
      extras: { details: [{ field: 'mapping' }] },
    });
  });
});

describe('many mappings', () => {
  const endless = '($f := function() { $f() }; $f())';

  test('of an owner whose others never end keep no other owner waiting', async () => {
    let ended = 0;
    const slow = Promise.allSettled(
      Array.from({ length: 6 }, () => briskValue(endless, 'slow').finally(() => (ended += 1))),
    );

    expect(await briskValue('1', 'quick')).toBe(1);

    // It waited for one of the two that ran, not for those that came before it.
    expect(ended).toBeLessThanOrEqual(2);
    const settled = await slow;
    expect(settled.every(({ status }) => status === 'rejected')).toBe(true);
  });

  test('beyond what may wait are 503, and all of them are answered', async () => {
    const ask = (owner: string, n: number) => Array.from({ length: n }, () => value('1', owner));

    const answers = await Promise.allSettled([
      ...ask('greedy', 600),
      ...ask('modest', 400),
      ...ask('late', 200),
    ]);

    // Two run and a thousand wait, five hundred of one owner at most.
    const answered = answers.map(wasTaken);
    expect(answered.slice(0, 600).filter(Boolean)).toHaveLength(502);
    expect(answered.slice(600, 1_000).filter(Boolean)).toHaveLength(400);
    expect(answered.slice(1_000).filter(Boolean)).toHaveLength(100);
    for (const answer of answers) {
      if (answer.status === 'fulfilled' || wasTaken(answer)) continue;
      expect(answer.reason).toMatchObject({
        code: 'service_unavailable',
        extras: { retryAfter: 1 },
      });
    }
  });

  test('of large bodies are 503 before they fill the memory', async () => {
    const large = { ...context, body: 'x'.repeat(1_000_000) };
    // None of them is late, however busy the machine is.
    const unhurried = new Expressions({ ...patient, evaluationMs: 60_000 });
    onTestFinished(() => unhurried.stop());

    const answers = await Promise.allSettled(
      Array.from({ length: 30 }, () => unhurried.evaluate('acme', '$length(body)', large)),
    );

    const taken = answers.filter(wasTaken);
    // Seventeen of them are more than half of 32 MiB; two others run.
    expect(taken).toHaveLength(19);
    expect(await unhurried.evaluate('acme', '1', context)).toBe(1);
  });

  test('use two processes at most, none before the first, none after the end', async () => {
    const own = new Expressions(patient);
    // One of those may still be ending.
    const others = new Set(childProcesses().keys());
    const children = () =>
      [...childProcesses()].filter(
        ([pid, line]) => !others.has(pid) && line.includes('sandbox-process'),
      ).length;

    await Promise.all(Array.from({ length: 20 }, () => own.evaluate('o', '1', context)));
    expect(children()).toBe(2);

    await own.stop();
    await expect(own.evaluate('o', '1', context)).rejects.toMatchObject({
      code: 'service_unavailable',
    });
    await waitFor(() => children() === 0, { describe: 'the processes are gone' });
  });

  test('that the platform itself comes to late are 503', async () => {
    await value('1');
    const late = value(`$match("${'a'.repeat(50)}!", /^(a+)+$/)`);

    holdUp(1_200);

    await expect(late).rejects.toMatchObject({
      code: 'service_unavailable',
      message: 'The expression could not be evaluated in time',
      extras: { retryAfter: 1 },
    });
    expect(await value('1')).toBe(1);
  });

  test('go on when the processes were killed from outside', async () => {
    const own = new Expressions(patient);
    const mine = () => [...childProcesses()].filter(([, line]) => line.includes('sandbox-process'));
    const others = new Set(mine().map(([pid]) => pid));
    const both = ['o', 'p'].map((owner) => own.evaluate(owner, '1', context));
    expect(await Promise.all(both)).toEqual([1, 1]);

    for (const [pid] of mine()) if (!others.has(pid)) process.kill(pid, 'SIGKILL');

    expect(await own.evaluate('o', '2', context)).toBe(2);
    await own.stop();
  });
});
