/** Runs that wait, in real executors: the test is the parent that answers, or does not. */
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { request, startTestPool, type TestPool } from '../../../test/fixtures/skills/driver.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { RunReport } from './run.ts';

let pool: TestPool;
beforeAll(async () => {
  pool = await startTestPool({ size: 1, graceMs: 1_000, stallMs: 20_000 });
});
afterAll(() => pool.stop(100));

/** A gate that never opens. */
const closed = '/no/such/gate';

/** A run that asks; nothing is answered until the test does it. */
function asking(path: string, input: unknown = {}) {
  const reports: RunReport[] = [];
  const asked: { payload: unknown; signal: AbortSignal; answer: (value: unknown) => void }[] = [];
  const handle = pool.run(request(path, input), {
    onReport: (report) => void reports.push(report),
    onAsk(_kind, payload, signal) {
      const { promise, resolve } = Promise.withResolvers<unknown>();
      asked.push({ payload, signal, answer: resolve });
      return promise;
    },
  });
  const hasAsked = (count: number) =>
    waitFor(() => asked.length === count, { describe: `${count} questions` });
  return { handle, reports, asked, hasAsked };
}

describe('a suspended run', () => {
  test('ends as waiting, and frees its place at once', async () => {
    const { handle, asked, hasAsked } = asking('good/suspended', {
      file: '/dev/null',
      gate: closed,
    });
    await hasAsked(1);

    handle.suspend();

    expect(await handle.outcome).toEqual({ kind: 'waiting' });
    expect(pool.stats()).toMatchObject({ inFlight: 0, deaths: 0 });
    expect(asked[0]?.signal.aborted).toBe(true);
  });

  test('notices nothing: no catch, no finally, no later report or question', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'waits-'));
    const [file, gate] = [join(directory, 'lines'), join(directory, 'gate')];
    // Keeps the executor, which an idle pool may replace.
    const neighbour = asking('good/wait', { ms: 60_000 });
    const { handle, asked, reports, hasAsked } = asking('good/suspended', { file, gate });
    await hasAsked(1);

    handle.suspend();
    await handle.outcome;
    await writeFile(gate, '');
    await waitFor(async () => (await readFile(file, 'utf8').catch(() => '')) !== '', {
      describe: 'what goes on beside it',
    });
    // By the same executor, so what the suspended run had said would be here before.
    await asking('good/echo').handle.outcome;

    expect(await readFile(file, 'utf8')).toBe('beside\n');
    expect(reports).toEqual([]);
    expect(asked.length).toBe(1);
    neighbour.handle.abort('the test has ended');
  });

  test('goes on if it has asked something that the parent had not seen', async () => {
    const { handle, asked, hasAsked } = asking('good/suspended', {
      file: '/dev/null',
      gate: '/dev/null',
    });
    await hasAsked(2);
    asked[1]?.answer([]);
    asked[0]?.answer([]);
    handle.suspend();

    expect(await handle.outcome).toEqual({ kind: 'completed', output: '{}' });
    handle.suspend();
  });

  test('that is asked to stop ends as aborted', async () => {
    const { handle, hasAsked } = asking('good/suspended', { file: '/dev/null', gate: closed });
    await hasAsked(1);

    handle.abort('enough');
    handle.suspend();
    // It does not obey, so its executor is replaced.
    expect(await handle.outcome).toEqual({ kind: 'aborted' });
  });
});
