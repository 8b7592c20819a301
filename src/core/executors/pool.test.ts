import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  request,
  silentHandlers,
  startTestPool,
  type TestPool,
} from '../../../test/fixtures/skills/driver.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { wholeDigest } from '../../kernel/input-digest.ts';
import type { RunHandlers, RunOutcome, RunReport } from './run.ts';

let pool: TestPool;
beforeAll(async () => {
  // Long enough for a machine that is busy: what is about moments is in active-runs.test.ts.
  const times = { graceMs: 1_000, stallMs: 20_000 };
  pool = await startTestPool({ size: 1, env: { GIVEN: 'yes' }, ...times });
});
afterAll(() => pool.stop(100));

const run = (
  path: string,
  input: unknown = {},
  handlers: Partial<RunHandlers> = {},
): Promise<RunOutcome> =>
  pool.run(request(path, input), { ...silentHandlers, ...handlers }).outcome;

/** The parsed output; fails when the run did. */
async function outputOf(path: string, input: unknown = {}, handlers: Partial<RunHandlers> = {}) {
  const outcome = await run(path, input, handlers);
  if (outcome.kind !== 'completed') throw new Error(JSON.stringify(outcome));
  return JSON.parse(outcome.output) as Record<string, unknown>;
}

function failed(message: string | RegExp, retryable = false, code = 'skill_execution_failed') {
  // A stack comes along with what was thrown.
  return expect.objectContaining({
    kind: 'failed',
    code,
    message: expect.stringMatching(message),
    retryable,
  });
}

describe('a run', () => {
  test('gets its input and gives its output', async () => {
    const input = { text: 'å 😀 \u2028', list: [1, null, { deep: true }] };
    expect(await outputOf('good/echo', input)).toEqual(input);
  });

  test('may have line breaks between the tokens of its input', async () => {
    const wanted = { ...request('good/echo'), input: '{\n  "a": "b\\nc"\r\n}' };
    const outcome = await pool.run(wanted, silentHandlers).outcome;
    expect(outcome).toEqual({ kind: 'completed', output: '{"a":"b\\nc"}' });
  });

  test('many at once do not mix', async () => {
    const outputs = await Promise.all(
      Array.from({ length: 500 }, (_, i) => outputOf('good/echo', { i })),
    );
    expect(outputs.map(({ i }) => i)).toEqual(Array.from({ length: 500 }, (_, i) => i));
  });

  test('knows its job, and finds a stripped environment', async () => {
    const { ids, isAborted, env } = await outputOf('good/context');
    expect(ids).toEqual(['job-1', 'agent-1', 'conversation-1', 'default', 1]);
    expect(isAborted).toBe(false);
    const allowed = ['PATH', 'HOME', 'TZ', 'LANG', 'NODE_EXTRA_CA_CERTS', 'GIVEN'];
    const { GIVEN, ...inherited } = env as Record<string, string>;
    expect(GIVEN).toBe('yes');
    expect(allowed).toEqual(expect.arrayContaining(Object.keys(inherited)));
  });

  test('reports logs, progress and messages before its end', async () => {
    const reports: RunReport[] = [];
    const output = await outputOf(
      'good/reports',
      { text: 'hi \0' },
      { onReport: (r) => reports.push(r) },
    );
    expect(output).toBeNull();
    expect(reports).toEqual([
      {
        type: 'log',
        message: 'began',
        at: expect.any(Number),
        fields: { text: 'hi \ufffd', big: '1', self: '[function self]' },
      },
      { type: 'progress', fraction: 0.5, note: 'half' },
      { type: 'message', role: 'assistant', content: 'hi \ufffd' },
      { type: 'progress', fraction: 1 },
    ]);
  });

  test('reports in order, including progress between two log lines', async () => {
    const said: unknown[] = [];
    const onReport = (report: RunReport): void => {
      if (report.type === 'log') said.push(report.message);
      if (report.type === 'progress') said.push(report.fraction);
      if (report.type === 'message') said.push(report.content);
    };
    const steps = [0.1, 'one', 0.2, 0.3, 'two', '!three', 0.4, '!four', 0.5, 'five', 0.6];

    await outputOf('good/speaks', { steps }, { onReport });

    // Of two reports of progress with nothing between them the last is told.
    expect(said).toEqual([0.1, 'one', 0.3, 'two', '!three', 0.4, '!four', 0.5, 'five', 0.6]);
  });

  test('survives a handler that throws', async () => {
    const onReport = (): void => {
      throw new Error('not interested');
    };
    expect(await run('good/reports', { text: '' }, { onReport })).toMatchObject({
      kind: 'completed',
    });
  });

  test('of an unknown skill fails without retries', async () => {
    expect(await run('good/none')).toEqual(failed('^there is no skill good/v1.0/none$'));
  });

  test.each([
    ['error', failed('^it broke$', true)],
    ['string', failed('^just words$', true)],
    ['nothing', failed('^the skill threw undefined$', true)],
    ['final', failed('^no key$', false, 'missing_credentials')],
    ['cause', failed('^fetch failed: connect ECONNREFUSED$', true)],
    ['code', failed('^odd$', true)],
    ['getter', failed('cannot be read', true)],
    ['long', failed('^x{4095}…$', true)],
  ])('that throws (%s) fails with what it threw', async (what, outcome) => {
    expect(await run('good/throws', { what })).toEqual(outcome);
  });

  test('whose output breaks the schema fails without retries', async () => {
    expect(await outputOf('good/strict', { value: { words: 1 } })).toEqual({ words: 1 });
    expect(await run('good/strict', { value: { words: 'one' } })).toEqual(
      failed(
        /^the output breaks the skill's schema: words must be integer$/,
        false,
        'output_invalid',
      ),
    );
  });
});

describe('a called skill', () => {
  const call = { skill: 'good/v1.0/strict', input: { value: { words: 1 } } };

  const steps = (asked: unknown[], answer: unknown = { step: 7 }): Partial<RunHandlers> => ({
    async onAsk(kind, payload, _signal, step) {
      asked.push([kind, payload, step]);
      return kind === 'begin-step' ? answer : true;
    },
  });
  const wanted = { kind: 'skill', name: 'good/v1.0/strict', digest: expect.any(String), nth: 1 };

  test('runs inside the run, as a recorded step that ends with its output', async () => {
    const asked: unknown[] = [];
    const output = await outputOf('good/calls', call, steps(asked));
    expect(output).toEqual({ called: { words: 1 } });
    expect(asked).toEqual([
      ['begin-step', wanted, null],
      ['end-step', { step: 7, output: { words: 1 } }, 7],
    ]);
  });

  test('that is already recorded does not run again', async () => {
    const asked: unknown[] = [];
    const output = await outputOf('good/calls', call, steps(asked, { output: { words: 2 } }));
    expect(output).toEqual({ called: { words: 2 } });
    expect(asked).toEqual([['begin-step', wanted, null]]);
  });

  test('that fails ends its step with the error', async () => {
    const asked: unknown[] = [];
    const failing = { skill: 'good/v1.0/throws', input: { what: 'final' } };
    expect(await run('good/calls', failing, steps(asked))).toEqual(
      failed('^no key$', false, 'missing_credentials'),
    );
    expect(asked.at(-1)).toEqual([
      'end-step',
      { step: 7, error: { code: 'missing_credentials', message: 'no key', retryable: false } },
      7,
    ]);
  });

  test('is known by its skill, its input in any order of fields, and its number among equal ones', async () => {
    const asked: unknown[] = [];
    const inputs = [{ a: 1, b: 2 }, { b: 2, a: 1 }, { a: 2 }];
    await outputOf('good/calls-each', { skill: 'good/v1.0/echo', inputs }, steps(asked));
    const begun = asked.flatMap((one) => {
      const [kind, payload] = one as [string, { digest: string; nth: number }];
      return kind === 'begin-step' ? [payload] : [];
    });
    expect(begun.map(({ nth }) => nth)).toEqual([1, 2, 1]);
    expect(new Set(begun.map(({ digest }) => wholeDigest(digest))).size).toBe(2);
  });

  test('reports and asks as its own step', async () => {
    const asked: unknown[] = [];
    const reports: RunReport[] = [];
    const speaks = { skill: 'good/v1.0/reports', input: { text: 'hi' } };
    const onReport = (report: RunReport) => void reports.push(report);
    await run('good/calls', speaks, { ...steps(asked), onReport });
    expect(reports.filter(({ type }) => type === 'message')).toEqual([
      { type: 'message', role: 'assistant', content: 'hi', step: 7 },
    ]);
    const inner = { skill: 'good/v1.0/calls', input: call };
    await run('good/calls', inner, steps(asked));
    expect(asked).toContainEqual(['begin-step', wanted, 7]);
  });

  test('that the platform does not allow is not run', async () => {
    const onAsk = () => Promise.reject(Object.assign(new Error('no scope'), { retryable: false }));
    expect(await run('good/calls', call, { onAsk })).toEqual(failed('^no scope$'));
  });

  test('has its input and its output checked', async () => {
    expect(await run('good/calls', { ...call, input: {} })).toEqual(
      failed('^the input of good/v1.0/strict breaks its schema: value is required$'),
    );
    expect(await run('good/calls', { ...call, input: { value: 5 } })).toEqual(
      failed(
        "^good/v1.0/strict failed: the output breaks the skill's schema: body must be object$",
      ),
    );
  });

  test('may call further skills, eight levels deep', async () => {
    let calls = 0;
    const onAsk: RunHandlers['onAsk'] = async (kind) => {
      if (kind !== 'begin-step') return true;
      calls += 1;
      return { step: calls };
    };
    expect(await run('good/calls-itself', {}, { onAsk })).toEqual(
      failed('^skills may call skills 8 levels deep$', true),
    );
    expect(calls).toBe(8);
  });
});

describe('what a run asks', () => {
  const call = { skill: 'good/v1.0/strict', input: { value: { words: 1 } } };

  /** Answers nothing until it is told to stop; what it was told that by. */
  function listening() {
    const asked = Promise.withResolvers<AbortSignal>();
    const onAsk: RunHandlers['onAsk'] = (_kind, _payload, signal) => {
      asked.resolve(signal);
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true });
      return promise;
    };
    return { asked: asked.promise, handlers: { ...silentHandlers, onAsk } };
  }

  test('is stopped at its deadline', async () => {
    const { asked, handlers } = listening();

    const { outcome } = pool.run(request('good/calls', call, { timeoutMs: 50 }), handlers);

    const signal = await asked;
    expect(await outcome).toMatchObject({ kind: 'timeout' });
    expect(signal.aborted).toBe(true);
  });

  test('is stopped at once when it is aborted', async () => {
    const { asked, handlers } = listening();
    const handle = pool.run(request('good/calls', call), handlers);
    const signal = await asked;
    expect(signal.aborted).toBe(false);

    handle.abort('enough');

    expect(signal.aborted).toBe(true);
    expect(await handle.outcome).toEqual({ kind: 'aborted' });
  });

  test('is aborted when the run ends without waiting for it', async () => {
    const { asked, handlers } = listening();

    const { outcome } = pool.run(request('good/asks-and-leaves'), handlers);

    const signal = await asked;
    expect(await outcome).toEqual({ kind: 'completed', output: '{"left":true}' });
    expect(signal.aborted).toBe(true);
  });

  test('is answered while the run goes on', async () => {
    let signal: AbortSignal | undefined;
    const output = await outputOf('good/calls', call, {
      async onAsk(kind, _payload, given) {
        signal = given;
        await new Promise(setImmediate);
        if (given.aborted) throw new Error('stopped');
        return kind === 'begin-step' ? { step: 1 } : true;
      },
    });

    expect(output).toEqual({ called: { words: 1 } });
    expect(signal?.aborted).toBe(true);
  });
});

describe('a deadline', () => {
  test('aborts the signal and ends the run as a timeout', async () => {
    const { deaths } = pool.stats();
    const wanted = request('good/wait', { ms: 10_000 }, { timeoutMs: 30 });
    expect(await pool.run(wanted, silentHandlers).outcome).toEqual({
      kind: 'timeout',
      message: 'run timed out after 30 ms',
    });
    expect(pool.stats().deaths).toBe(deaths);
  });

  test('applies to a run that returns an output within the grace period', async () => {
    const { deaths } = pool.stats();
    const wanted = request('hostile/stubborn', { ms: 100 }, { timeoutMs: 30 });
    expect(await pool.run(wanted, silentHandlers).outcome).toMatchObject({ kind: 'timeout' });
    expect(pool.stats().deaths).toBe(deaths);
  });
});

describe('abort', () => {
  test('ends the run as aborted, with its reason as the reason of the signal', async () => {
    const handle = pool.run(request('good/wait', { ms: 10_000 }), silentHandlers);
    handle.abort('enough');
    handle.abort('and again');
    expect(await handle.outcome).toEqual({ kind: 'aborted' });
    handle.abort('too late');
    await waitFor(() => pool.stats().inFlight === 0, { describe: 'nothing is in flight' });
  });

  test('of a run that still completes keeps its output', async () => {
    const handle = pool.run(request('good/stubborn', { ms: 50 }), silentHandlers);
    handle.abort('enough');
    expect(await handle.outcome).toEqual({ kind: 'completed', output: '{"done":true}' });
  });

  test('of a run that has ended already changes nothing', async () => {
    const handle = pool.run(request('good/echo', { a: 1 }), silentHandlers);
    const outcome = await handle.outcome;
    handle.abort('too late');
    expect(outcome).toEqual({ kind: 'completed', output: '{"a":1}' });
  });

  test('of a run that does not stop ends it after the grace period, and its executor soon after', async () => {
    const { deaths } = pool.stats();
    const handle = pool.run(request('hostile/never'), silentHandlers);
    handle.abort('enough');
    expect(await handle.outcome).toEqual({ kind: 'aborted' });
    await waitFor(() => pool.stats().deaths > deaths, { describe: 'the executor is replaced' });
    expect(await outputOf('good/echo', { a: 1 })).toEqual({ a: 1 });
  });
});
