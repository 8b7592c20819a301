/** What a run that is repeated after a wait sees: the same as before it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { dataDirectory, startStaged } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import { resumeUnloaded } from '../support/unloaded.ts';
import { waitFor } from '../support/wait-for.ts';

test('parallel steps end in the same order when they are replayed, and the time does not go back', async () => {
  const platform = await startStaged();
  onTestFinished(() => platform.stop());
  const tenant = await newTenant(platform);
  const log = join(dataDirectory(), 'orders');

  const id = await tenant.start('staged/v1.0/parallel', { log });
  await resumeUnloaded(tenant, id);
  const ended = await tenant.jobIn(id, 'completed', 'failed');

  expect(ended.body).toMatchObject({ status: 'completed', attempt: 1 });
  const [first, ...repeated] = readFileSync(log, 'utf8').trim().split('\n');
  // Once more after the event; the sleep may end while the run is loaded.
  expect(repeated.length).toBeGreaterThan(0);
  for (const line of repeated) expect(line).toBe(first);
  const { before, after, id: made } = ended.body.output as Record<string, number>;
  expect(Number(after) - Number(before)).toBeGreaterThanOrEqual(400);
  expect(made).toMatch(/^[0-9a-f-]{36}$/);
});

test.each([
  [0, ['event', 'a', 'b', 'c']],
  [1, ['a', 'event', 'b', 'c']],
  [2, ['a', 'b', 'event', 'c']],
])(
  'a chain of steps is told beside an event as before, with %i steps first',
  async (first, told) => {
    const platform = await startStaged();
    onTestFinished(() => platform.stop());
    const tenant = await newTenant(platform);
    const log = join(dataDirectory(), 'chain');
    writeFileSync(log, '');
    const lines = () => readFileSync(log, 'utf8').trim().split('\n');

    const id = await tenant.start('staged/v1.0/chained', { log, first, times: 3 });
    await waitFor(() => lines()[0]?.startsWith('began'), { describe: 'the step that waits' });
    await tenant.post('/api/events', { event: 'paid', job_id: id, data: null });
    await resumeUnloaded(tenant, id, 3);

    const { body } = await tenant.jobIn(id, 'completed', 'failed');
    expect(body).toMatchObject({ status: 'completed', attempt: 1, output: told });
  },
);
