/** What a run that is repeated after a wait sees: the same as before it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { dataDirectory, startStaged } from '../support/staged.ts';

test('parallel steps end in the same order when they are replayed, and the time does not go back', async () => {
  const platform = await startStaged();
  onTestFinished(() => platform.stop());
  const key = await platform.key();
  const log = join(dataDirectory(), 'orders');

  const { body } = await platform.request('POST', '/api/staged/v1.0/parallel', {
    key,
    body: { log },
  });
  await platform.jobIn(key, body.job_id as string, 'waiting');
  const ended = await platform.jobIn(key, body.job_id as string, 'completed', 'failed');

  expect(ended.body).toMatchObject({ status: 'completed', attempt: 1 });
  const [first, ...repeated] = readFileSync(log, 'utf8').trim().split('\n');
  expect(repeated).toEqual([first]);
  const { before, after, id } = ended.body.output as { before: number; after: number; id: string };
  expect(after - before).toBeGreaterThanOrEqual(400);
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
});
