/** Steps and waits of runs in real executors. The test is the parent: it keeps the journal, and replays it. */
import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { request, startTestPool, type TestPool } from '../../../test/fixtures/skills/driver.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { RunHandle, RunReport } from './run.ts';

let pool: TestPool;
beforeAll(async () => {
  pool = await startTestPool({ size: 1, graceMs: 1_000, stallMs: 20_000 });
});
afterAll(() => pool.stop(100));

const began = 1_767_225_600_000;

interface Asked {
  readonly kind: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly step: number | null;
}

/** A journal in memory, which answers as the parent of a claim does: the ends on record in their order. */
function journal() {
  const records = new Map<string, { readonly at: number }>();
  const untold: { readonly known: { readonly at: number }; tell(known: object): void }[] = [];
  const open = new Map<number, string>();
  const waits = new Map<string, (answer: unknown) => void>();
  const keyOf = ({ payload: { name, nth }, step }: Asked) =>
    step === null ? `${name} ${nth}` : `${step} ${name} ${nth}`;
  let at = began;
  const told = (known: { readonly at: number }): Promise<object> => {
    const { promise, resolve } = Promise.withResolvers<object>();
    if (untold.push({ known, tell: resolve }) === 1) {
      setImmediate(() => {
        const inOrder = untold.splice(0).sort((one, other) => one.known.at - other.known.at);
        for (const { known: next, tell } of inOrder) tell(next);
      });
    }
    return promise;
  };
  const recorded = (key: string, ending: object) => {
    at += 1_000;
    records.set(key, { ...ending, at });
    return { at };
  };

  return {
    records,
    /** The wait ends, also for a run that is there. */
    end(key: string, value: unknown): void {
      recorded(key, { value });
      waits.get(key)?.(records.get(key));
    },
    async answer(asked: Asked): Promise<unknown> {
      const { kind, payload } = asked;
      const key = keyOf(asked);
      if (kind === 'begin-step') {
        const known = records.get(key);
        if (known !== undefined) return told(known);
        open.set(open.size + 1, key);
        return { step: open.size };
      }
      if (kind === 'end-step') {
        const { step, ...ending } = payload;
        return recorded(open.get(step as number) ?? '', ending);
      }
      if (kind !== 'wait') return [];
      const { promise, resolve } = Promise.withResolvers<unknown>();
      waits.set(key, resolve);
      const known = records.get(key);
      return known === undefined ? promise : told(known);
    },
  };
}

/** A run of one play of the fixture. */
function play(name: string, kept = journal(), file = '/dev/null') {
  const asked: Asked[] = [];
  const reports: RunReport[] = [];
  const handle: RunHandle = pool.run(request('good/durable', { play: name, file }), {
    onReport: (report) => void reports.push(report),
    onAsk(kind, payload, _signal, step) {
      asked.push({ kind, payload: payload as Asked['payload'], step });
      return kept.answer({ kind, payload: payload as Asked['payload'], step });
    },
  });
  const waitsFor = (kind: string) =>
    waitFor(() => asked.some(({ payload }) => payload?.['kind'] === kind), { describe: kind });
  return { handle, asked, reports, waitsFor };
}

async function outputOf(name: string, kept = journal(), file?: string): Promise<unknown> {
  const outcome = await play(name, kept, file).handle.outcome;
  if (outcome.kind !== 'completed') throw new Error(JSON.stringify(outcome));
  return JSON.parse(outcome.output);
}

async function notes() {
  const file = join(await mkdtemp(join(tmpdir(), 'steps-')), 'notes');
  const lines = async () =>
    (await readFile(file, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
  return { file, lines };
}

describe('a run that waits', () => {
  test('is repeated after each wait, and goes on with what is recorded', async () => {
    const kept = journal();
    const { file, lines } = await notes();
    const received = { id: 'e', event: 'paid', key: 'A-17', data: 1, received_at: 'then' };
    const decision = { approved: true, by: { kind: 'key', id: 'k' }, reason: null };
    const waits: [string, string, unknown][] = [
      ['sleep', 'cool down 1', null],
      ['event', 'payment 1', received],
      ['approval', 'ship 1', decision],
      ['run', 'letter 1', { text: 'Dear' }],
    ];
    for (const [kind, key, value] of waits) {
      const run = play('order', kept, file);
      await run.waitsFor(kind);
      run.handle.suspend();
      expect(await run.handle.outcome).toEqual({ kind: 'waiting' });
      kept.end(key, value);
    }

    const output = await outputOf('order', kept, file);

    expect(output).toEqual({
      order: { id: 'A-17', at: '1970-01-01T00:00:00.000Z' },
      paid: received,
      answer: decision,
      labels: ['a0', 'b1'],
      letter: { text: 'Dear' },
      began,
      at: began + 7_000,
      ref: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-5/),
    });
    expect(await outputOf('order', kept, file)).toEqual(output);
    expect(await lines()).toEqual([expect.stringMatching(/^reserve [\w-]{43}$/)]);
  });

  test('says what it waits for', async () => {
    const kept = journal();
    const payloads: unknown[] = [];
    const ends: [string, string, unknown][] = [
      ['sleep', 'cool down 1', null],
      ['event', 'payment 1', null],
      ['approval', 'ship 1', { approved: false, by: null, reason: 'expired' }],
      ['run', 'letter 1', 1],
    ];
    const run = play('order', kept);
    for (const [kind, key, value] of ends) {
      await run.waitsFor(kind);
      payloads.push(run.asked.find(({ payload }) => payload?.['kind'] === kind)?.payload);
      kept.end(key, value);
    }
    expect(await run.handle.outcome).toMatchObject({ kind: 'completed' });
    const day = 86_400_000;
    expect(payloads).toEqual([
      { kind: 'sleep', name: 'cool down', nth: 1, ms: 900_000 },
      { kind: 'event', name: 'payment', nth: 1, event: 'paid', key: 'A-17', timeoutMs: 3 * day },
      {
        ...{ kind: 'approval', name: 'ship', nth: 1 },
        ...{ title: 'Ship?', details: { total: 4 }, timeoutMs: 30 * day },
      },
      { kind: 'run', name: 'letter', nth: 1, skill: 'text/v1.0/render', input: { a: 1 } },
    ]);
  });

  test('is not suspended while the answer to a wait lets it go on', async () => {
    const kept = journal();
    const run = play('caught wait', kept);
    await run.waitsFor('sleep');
    kept.end('nap 1', null);
    await new Promise(setImmediate);
    run.handle.suspend();
    expect(await run.handle.outcome).toEqual({ kind: 'completed', output: '{"slept":true}' });
  });

  test('does not see its suspension in catch or finally', async () => {
    const { file, lines } = await notes();
    const run = play('caught wait', journal(), file);
    await run.waitsFor('sleep');
    run.handle.suspend();
    expect(await run.handle.outcome).toEqual({ kind: 'waiting' });
    await outputOf('nothing');
    expect(await lines()).toEqual([]);
  });

  test('gets what was recorded first, first', async () => {
    const kept = journal();
    const run = play('race', kept);
    expect(await run.handle.outcome).toMatchObject({ output: '{"winner":"work"}' });
    kept.end('nap 1', null);
    expect(await outputOf('race', kept)).toEqual({ winner: 'work' });
  });

  test('sees parallel steps end in the recorded order', async () => {
    const kept = journal();
    expect(await outputOf('race of steps', kept)).toEqual({ order: ['fast', 'slow'] });
    expect(await outputOf('race of steps', kept)).toEqual({ order: ['fast', 'slow'] });
  });
});

describe('a step', () => {
  test('is recorded before it begins and after it has ended', async () => {
    const run = play('nothing');
    expect(await run.handle.outcome).toMatchObject({ output: '{"result":"undefined"}' });
    expect(run.asked).toEqual([
      {
        kind: 'begin-step',
        payload: { kind: 'step', name: 'nothing', nth: 1, digest: '' },
        step: null,
      },
      { kind: 'end-step', payload: { step: 1 }, step: 1 },
    ]);
  });

  test('rejects with the same error when it fails and when that is replayed', async () => {
    const kept = journal();
    const error = { name: 'Error', message: 'no money: the skill threw 1', retryable: null };
    const first = await outputOf('caught', kept);
    expect(first).toEqual({ ...error, at: began + 1_000 });
    expect(await outputOf('caught', kept)).toEqual(first);
  });

  test('that fails for good fails the run as its error says', async () => {
    const kept = journal();
    const wanted = { kind: 'failed', code: 'missing_credentials', message: 'no key' };
    expect(await play('thrown', kept).handle.outcome).toMatchObject({
      ...wanted,
      retryable: false,
    });
    expect(await play('thrown', kept).handle.outcome).toMatchObject({
      ...wanted,
      retryable: false,
    });
  });

  test.each([
    ['not JSON', 'the step "odd" returned a bigint, which JSON cannot carry'],
    ['too large', 'the step "large" returned more than 1024 KiB of JSON'],
  ])('whose result is %s fails for good, by its name', async (name, message) => {
    const run = play(name);
    expect(await run.handle.outcome).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining(message),
      retryable: false,
    });
    expect(run.asked.at(-1)?.payload).toMatchObject({ error: { retryable: false } });
  });

  test('is retried as often as it says', async () => {
    const { file, lines } = await notes();
    expect(await outputOf('retried', journal(), file)).toBe(3);
    expect(await lines()).toEqual(['try 1', 'try 2', 'try 3']);
  });

  test('is not retried after a permanent error', async () => {
    const { file, lines } = await notes();
    const outcome = await play('retried for good', journal(), file).handle.outcome;
    expect(outcome).toMatchObject({ kind: 'failed', message: 'never', retryable: false });
    expect(await lines()).toEqual(['try 1']);
  });

  test('fails at its timeout, which aborts its signal', async () => {
    const { file, lines } = await notes();
    const outcome = await play('late', journal(), file).handle.outcome;
    const message = 'the step "slow" did not end within 30 ms';
    expect(outcome).toMatchObject({ kind: 'failed', message, retryable: true });
    expect(await lines()).toEqual([`aborted: ${message}`]);
  });

  test('of the same name has another number and key', async () => {
    const { steps } = (await outputOf('same name')) as { steps: string[] };
    expect(new Set(steps.map((key) => key.split(' ').at(-1))).size).toBe(3);
    expect(await outputOf('same name')).toEqual({ steps });
  });

  test('that the run does not await disturbs neither the run nor another', async () => {
    const { deaths } = pool.stats();
    expect(await outputOf('unawaited')).toEqual({ done: true });
    expect(await outputOf('nothing')).toEqual({ result: 'undefined' });
    expect(pool.stats().deaths).toBe(deaths);
    expect(pool.lines.filter(({ message }) => message.includes('outside of its run'))).toEqual([]);
  });

  test.each([
    ['wait in a step', 'ctx.sleep cannot be used inside a step'],
    ['step in a step', 'ctx.step cannot be used inside a step'],
    ['map in a step', 'ctx.map cannot be used inside a step'],
    ['called in a step', 'cannot be used inside a step'],
  ])('refuses a %s', async (name, message) => {
    const outcome = await play(name).handle.outcome;
    expect(outcome).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining(message),
      retryable: false,
    });
  });

  test('speaks and asks as itself', async () => {
    const run = play('says in a step');
    await run.handle.outcome;
    expect(run.reports).toEqual([{ type: 'message', role: 'assistant', content: 'hi', step: 1 }]);
    expect(run.asked.find(({ kind }) => kind === 'recall')?.step).toBe(1);
  });

  test('has a key of its own in each part of the job', async () => {
    const { keys } = (await outputOf('parts')) as { keys: string[] };
    expect(new Set(keys).size).toBe(9);
    expect(await outputOf('parts')).toEqual({ keys });
  });

  test.each([['misuses']])('and a wait refuse wrong arguments for good', async (name) => {
    const run = play(name);
    expect(await run.handle.outcome).toMatchObject({ output: '{"wrong":[]}' });
    expect(run.asked).toEqual([]);
  });
});

describe('a map', () => {
  test('gives the results in order, and executes a bounded number at a time', async () => {
    expect(await outputOf('large map')).toEqual({ isInOrder: true, most: 20 });
  });

  test('rejects with its first failure, after what was under way', async () => {
    const { file, lines } = await notes();
    const run = play('map that fails', journal(), file);
    expect(await run.handle.outcome).toMatchObject({ kind: 'failed', message: 'item 1 broke' });
    expect(await lines()).toEqual(['item 1', 'item 0']);
  });

  test('knows each item by its place and its content', async () => {
    const run = play('map that fails');
    await run.handle.outcome;
    const begun = run.asked.filter(({ kind }) => kind === 'begin-step');
    expect(begun.map(({ payload }) => payload['nth'])).toEqual([1, 2]);
    expect(new Set(begun.map(({ payload }) => payload['digest'])).size).toBe(2);
  });
});
