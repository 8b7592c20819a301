/** A memory index that the database cannot read. */
import { expect, test } from 'vitest';
import { PlatformError } from '../../src/kernel/errors.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';

const path = '/api/agents/default/memories';

test('a search in a damaged index is logged with the cause, for clients once a minute, and for each run', async () => {
  const lines: { level: number; err?: { message: string }; job_id?: string }[] = [];
  const log = createLogger('info', { write: (line: string) => void lines.push(JSON.parse(line)) });
  const platform = await startStaged({ log });
  const tenant = await newTenant(platform);
  await tenant.post(path, { content: 'Ada likes tea' });
  const read = platform.database.read as { first: (...asked: unknown[]) => Promise<unknown> };
  const { first } = read;
  const cause = new Error('database disk image is malformed');
  const damaged = new PlatformError('service_unavailable', 'It cannot be used', { cause });
  read.first = (statement, params) =>
    Object.keys(params as object).includes('terms')
      ? Promise.reject(damaged)
      : first.call(read, statement, params);

  const statuses: number[] = [];
  for (const q of ['tea', 'ada', 'tea']) {
    statuses.push((await tenant.get(`${path}?q=${q}`)).status);
  }
  const steps = { attempts: [[{ recall: { query: 'tea' } }]] };
  const { body: job } = await tenant.run('staged/v1.0/memory', steps);

  await platform.stop();
  expect(statuses).toEqual([503, 503, 503]);
  expect(job.output).toMatchObject([{ error: 'It cannot be used' }]);
  const told = lines.filter(({ level }) => level >= 40);
  expect(told).toMatchObject([
    { err: { message: cause.message }, request_id: expect.any(String) },
    { err: { message: cause.message }, job_id: job.job_id, verb: 'recall' },
  ]);
});
