/** The console loads fast, and stays fast with much data. */
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleWorld, startConsole } from '../support/console.ts';
import { copyJob } from '../support/copied-jobs.ts';
import { adminSecret } from '../support/platform.ts';
import { isInstalled } from '../support/shared-servers.ts';

const kilobyte = 1_024;
const jobs = 10_000;

describe.skipIf(!(await isInstalled('Chromium')))('the console', () => {
  let world: ConsoleWorld;
  beforeAll(async () => {
    world = await startConsole();
  });
  afterAll(() => world.stop());

  test('sends less than 300 KB, compressed, until its first page is there', async () => {
    const { page } = world;
    const sent = new Map<string, number>();
    page.on('response', async (response) => {
      const url = new URL(response.url());
      if (!url.pathname.startsWith('/console')) return;
      const body = await response.body().catch(() => Buffer.alloc(0));
      const isCompressed = /font|image/.test(response.headers()['content-type'] ?? '');
      sent.set(url.pathname, isCompressed ? body.length : gzipSync(body, { level: 9 }).length);
    });

    await world.signInAs(adminSecret);
    await page.goto(`${world.platform.url}/console/`);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.waitForLoadState('networkidle');

    const total = [...sent.values()].reduce((sum, bytes) => sum + bytes, 0);
    expect(sent.size).toBeGreaterThan(3);
    expect(total / kilobyte).toBeLessThan(300);
    expect(world.errors).toEqual([]);
  });

  test('shows any page of 10,000 jobs, the last one too, with filters', async () => {
    const { page, platform, key } = world;
    const { body } = await platform.run(key, 'util/v1.0/echo', { text: 'one of many' });
    await copyJob(platform.database, body.job_id, jobs - 1);

    await world.open('/jobs');
    await page.getByText('of 10,000').waitFor();
    expect(await page.getByRole('row').count()).toBeLessThanOrEqual(51);
    await world.open('/jobs?page=200');
    await page.getByText('9,951–10,000 of 10,000').waitFor();
    await world.open('/jobs?skill=util/v1.0/echo');
    await page.getByText('of 10,000').waitFor();
    await page.getByRole('button', { name: 'Next page' }).click();
    await page.getByText('51–100 of 10,000').waitFor();

    expect(world.errors).toEqual([]);
  });
});
