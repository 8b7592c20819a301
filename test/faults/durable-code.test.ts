/** Careless code in runs that wait, and code that was changed while its runs waited. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { durableSkills } from '../support/durable-platform.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { resumeUnloaded } from '../support/unloaded.ts';

describe('a run whose code', () => {
  let platform: Platform;
  let tenant: Tenant;
  let log: string;
  beforeAll(async () => {
    platform = await startPlatform({ skillsDirs: [durableSkills] });
    tenant = await newTenant(platform);
  });
  afterAll(() => platform?.stop());
  beforeEach(() => {
    log = join(mkdtempSync(join(tmpdir(), 'skillwright-code-')), 'log');
    writeFileSync(log, '');
  });

  const lines = () => readFileSync(log, 'utf8').split('\n').slice(0, -1);
  const run = async (does: string) => (await tenant.run('durable/v1.0/faulty', { does, log })).body;
  /** Runs a case that is unloaded so many times. */
  async function runUnloaded(does: string, times = 1) {
    const id = await tenant.start('durable/v1.0/faulty', { does, log });
    await resumeUnloaded(tenant, id, times);
    const { body } = await tenant.jobIn(id, 'completed', 'failed');
    return body;
  }

  test('throws in a step fails with that error, after its attempts', async () => {
    expect(await run('throws')).toMatchObject({
      status: 'failed',
      attempt: 3,
      error: { code: 'skill_execution_failed', message: expect.stringContaining('it broke') },
    });
    expect(await run('throws for good')).toMatchObject({ status: 'failed', attempt: 1 });
  });

  test('throws in a step executes it again in the next attempt', async () => {
    expect(await run('throws at first')).toMatchObject({
      status: 'completed',
      attempt: 3,
      output: 'now',
    });
    expect(lines()).toEqual(['moody', 'moody', 'moody']);
  });

  test('goes on after a step that failed gets the same error after a wait', async () => {
    expect(await runUnloaded('goes on after a failure')).toMatchObject({
      status: 'completed',
      output: expect.stringContaining('it broke'),
    });
    expect(lines()).toEqual(['bad']);
  });

  test('hangs in a step is stopped at the time limit of the step', async () => {
    expect(await run('hangs in a step')).toMatchObject({
      status: 'failed',
      error: { code: 'skill_execution_failed', message: expect.stringContaining('hung') },
    });
  });

  test.each(['bigint', 'circle', '2 MiB'])(
    'returns from a step what cannot be recorded (%s) fails for good and names the step',
    async (does) => {
      expect(await run(does)).toMatchObject({
        status: 'failed',
        attempt: 1,
        error: { message: expect.stringMatching(/odd|large/) },
      });
    },
  );

  test('takes one name twice, in a loop or in parallel gets each result', async () => {
    expect((await runUnloaded('one name twice')).output).toEqual(['first', null, 'second']);
    expect((await runUnloaded('one name in a loop', 5)).output).toEqual([0, 1, 2, 3, 4]);
    expect((await runUnloaded('one name in parallel')).output).toEqual([0, 1, 2, 3]);
    expect(lines().toSorted()).toEqual(['0', '0', '1', '1', '2', '2', '3', '3', '4']);
  });

  test.each(['does not await a step', 'does not await a wait'])('%s completes', async (does) => {
    expect(await run(does)).toMatchObject({ status: 'completed', output: 'over' });
  });

  test('lets a wait and a step race gets the first of them', async () => {
    expect((await run('a step wins against a wait')).output).toBe('the step');
    expect((await run('a wait wins against a step')).output).toBe('the wait');
  });

  test('catches around a wait does not swallow the wait', async () => {
    expect((await runUnloaded('catches around a wait')).output).toEqual(['waited', 'finally']);
    expect(lines()).toEqual(['finally']);
  });

  test('waits inside a step is refused with a sentence', async () => {
    expect(await run('waits in a step')).toMatchObject({
      status: 'failed',
      error: { message: expect.stringMatching(/step/) },
    });
  });

  test('asks for the time and for names gets the same after a wait', async () => {
    const { output } = await runUnloaded('keeps time and names');
    expect(output.before).toEqual(output.recorded);
    expect(output.hasMoved).toBe(true);
    expect(new Set(output.before).size).toBe(3);
  });

  test('takes more than 10,000 steps fails for good, also where it catches the error', {
    timeout: 120_000,
  }, async () => {
    const id = await tenant.start('durable/v1.0/faulty', { does: 'has 10,001 steps', log });
    const { body } = await tenant.jobIn(id, 'failed', 'completed');
    expect(body).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { message: expect.stringMatching(/10,?000 steps/) },
    });
  });
});

describe('a run whose code was changed while it waited', () => {
  let directory: string;
  let platform: Platform | undefined;
  let key: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'skillwright-changed-'));
    mkdirSync(join(directory, 'skills'));
  });
  afterEach(async () => {
    await platform?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Starts the platform with a skill of this code, on the data that it left. */
  async function startWith(code: string): Promise<Platform> {
    await platform?.stop();
    const module = `export default {
      category: 'changed', name: 'flow', version: 'v1.0', displayName: 'Flow', description: 'Flow.',
      parameters: { type: 'object' }, output: {},
      async run(input, ctx) { ${code} },
    };`;
    writeFileSync(join(directory, 'skills/flow.js'), module);
    platform = await startPlatform({
      stores: 'embedded',
      skillsDirs: [join(directory, 'skills')],
      environment: { DATA_DIR: join(directory, 'data') },
    });
    return platform;
  }

  const original = `
    const order = await ctx.step('reserve', () => ({ id: 7 }));
    const { approved } = await ctx.approve('ship', { title: 'Ship?', details: order, timeout: '1d' });
    return await ctx.step('print', () => ({ approved, order: order.id }));`;

  /** What becomes of a waiting run of the original that goes on with other code. */
  async function outcomeWith(code: string) {
    const first = await startWith(original);
    key = await first.key();
    const { body } = await first.request('POST', '/api/changed/v1.0/flow', { key, body: {} });
    await first.jobIn(key, body.job_id, 'waiting');
    const second = await startWith(code);
    const approvals = await second.request('GET', `/api/approvals?job_id=${body.job_id}`, { key });
    const { approval_id } = approvals.body.data[0];
    await second.request('POST', `/api/approvals/${approval_id}/approve`, { key, body: {} });
    return (await second.jobIn(key, body.job_id, 'completed', 'failed')).body;
  }

  test('goes on in the new code where that fits the record', async () => {
    const job = await outcomeWith(original.replace('order: order.id', "order: 'new'"));

    expect(job).toMatchObject({ status: 'completed', output: { approved: true, order: 'new' } });
  });

  test.each([
    ['renames a recorded step', original.replace("'reserve'", "'book'"), /reserve/],
    [
      'leaves a recorded step out',
      original.replace(/await ctx.step\('reserve'.*/, '{ id: 7 };'),
      /reserve/,
    ],
    [
      'makes a step of a wait',
      original.replace(
        /await ctx.approve.*/,
        "await ctx.step('ship', () => ({ approved: true }));",
      ),
      /ship/,
    ],
    ['asks something else', original.replace('Ship?', 'Ship it?'), /ship/],
    [
      'asks with other details',
      original.replace('{ id: 7 }', '{ id: 8 }').replace('details: order', 'details: { other: 1 }'),
      /ship/,
    ],
  ])('fails for good where the new code %s', async (_, code, named) => {
    const job = await outcomeWith(code);

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code: 'replay_diverged', message: expect.stringMatching(named) },
    });
  });
});
