/** A rate of a skill holds, and its work goes on, while the process is killed and started again on the same data. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startProcess } from '../support/process.ts';
import { randomInteger } from '../support/random.ts';
import { beginChance, rounds } from '../support/soak.ts';
import { waitFor } from '../support/wait-for.ts';

const kills = rounds(1, 10);

test(`a rate holds over kills (${kills}), and every job ends`, { timeout: 400_000 }, async () => {
  beginChance();
  const dataDir = mkdtempSync(join(tmpdir(), 'skillwright-rates-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const environment = {
    SKILLS_DIR: join(import.meta.dirname, '../fixtures/skills/limited'),
    RETRY_BACKOFF_MS: '10',
  };
  const log = join(dataDir, 'beginnings');
  const read = () =>
    existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').map(Number).toSorted() : [];
  let platform = await startProcess(dataDir, environment);
  const key = await platform.key();
  const items = Array.from({ length: 4 * (kills + 1) }, () => ({
    skill: 'limited/v1.0/paced',
    input: { log },
  }));
  const { body: batch } = await platform.request('POST', '/api/batches', { key, body: { items } });

  for (let kill = 1; kill <= kills; kill++) {
    const target = 4 * (kill - 1) + randomInteger(1, 4);
    await waitFor(() => read().length >= target, {
      describe: 'some have begun',
      everyMs: 1,
      deadlineMs: 60_000,
    });
    platform.signal('SIGKILL');
    await platform.exit;
    platform = await startProcess(dataDir, environment);
  }
  const done = await waitFor(
    async () => {
      const { body } = await platform.request('GET', `/api/batches/${batch.id}`, { key });
      return body.completed_at === null ? null : body;
    },
    { describe: 'all have ended', deadlineMs: 150_000 },
  );
  await platform.stop();

  const moments = read();
  const most = Math.max(
    ...moments.map((at) => moments.filter((one) => one >= at && one < at + 5_000).length),
  );
  expect(done.counts).toEqual(expect.objectContaining({ completed: items.length }));
  expect(moments.length).toBeGreaterThanOrEqual(items.length);
  expect(most).toBeLessThanOrEqual(4);
});
