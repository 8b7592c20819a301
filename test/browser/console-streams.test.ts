/** The live log of a job: its stream, through outages, and with many tabs of one browser. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleWorld, startConsole } from '../support/console.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { gate, play, stagedSkills } from '../support/staged.ts';

describe.skipIf(!(await isInstalled('Chromium')))('the live log of a job', () => {
  let world: ConsoleWorld;
  beforeAll(async () => {
    world = await startConsole({ skillsDirs: stagedSkills });
  });
  afterAll(() => world.stop());

  /** Starts a job that says `page 1`, and `page 2` once the gate is open; where its log is. */
  async function startedJob(halfway: ReturnType<typeof gate>): Promise<string> {
    const { platform, key } = world;
    const attempts = [[{ log: 'page 1' }, { until: halfway.path }, { log: 'page 2' }]];
    const { body } = await platform.request('POST', `/api/${play}`, {
      key,
      body: { attempts, output: {} },
    });
    return `/jobs/${body.job_id}?tab=logs`;
  }

  const said = (page: Page, text: string) => page.getByRole('log').getByText(text, { exact: true });

  const see = (page: Page, isSeen: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, value: ${!isSeen} });
      document.dispatchEvent(new Event('visibilitychange'))`);

  test('pauses on a hidden page, and resumes where it was', async () => {
    const { page } = world;
    const halfway = gate();
    const path = await startedJob(halfway);
    const left = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/events'));
    await world.open(path);
    await said(page, 'page 1').first().waitFor();
    const times = await said(page, 'page 1').count();

    await see(page, false);
    await left;
    halfway.open();
    await page.getByRole('main').getByText('completed').first().waitFor();
    expect(await said(page, 'page 2').count()).toBe(0);
    const again = page.waitForRequest(/\/events$/);
    await see(page, true);

    expect((await again).headers()['last-event-id']).toBeDefined();
    await said(page, 'page 2').first().waitFor();
    expect(await said(page, 'page 1').count()).toBe(times);
    expect(await page.getByRole('button', { name: 'To the end' }).count()).toBe(0);
    expect(world.errors).toEqual([]);
  });

  test('is seen in the seventh tab of a browser, as in the first', async () => {
    const context = world.page.context();
    const halfway = gate();
    const path = await startedJob(halfway);
    await world.open(path);
    const tabs = [world.page];
    for (let i = 1; i < 7; i++) tabs.push(await context.newPage());

    await Promise.all(
      tabs.map(async (tab) => {
        await tab.goto(`${world.platform.url}/console${path}`);
        await said(tab, 'page 1').first().waitFor();
      }),
    );
    halfway.open();

    await Promise.all(tabs.map((tab) => said(tab, 'page 2').first().waitFor()));
    const times = await Promise.all(tabs.map((tab) => said(tab, 'page 1').count()));
    expect(new Set(times)).toEqual(new Set([times[0]]));
    const [, ...others] = tabs;
    await Promise.all(others.map((tab) => tab.close()));
  });

  test('resumes as soon as the platform answers again, after any time', async () => {
    const { page } = world;
    const halfway = gate();
    const path = await startedJob(halfway);
    await page.clock.install();
    await world.open(path);
    await said(page, 'page 1').first().waitFor();
    const failed = () => page.waitForEvent('requestfailed', (one) => one.url().endsWith('/events'));

    const left = failed();
    await see(page, false);
    await left;
    const away = /\/(api|admin|health)/;
    await page.route(away, (route) => route.abort());
    const first = failed();
    await see(page, true);
    await first;
    // Each failure makes the next pause longer.
    for (let i = 0; i < 6; i++) {
      const again = failed();
      await page.clock.fastForward(60_000);
      await again;
    }
    await page.getByText(/The platform cannot be reached/).waitFor();
    halfway.open();
    let isAsked = false;
    const events = page.waitForRequest(/\/events$/).then(() => {
      isAsked = true;
    });
    const now = (await page.evaluate('Date.now()')) as number;
    await page.clock.pauseAt(now + 1_000);
    await page.unroute(away);
    // Enough to ask how the platform is and to hear it, and less than the pause of the stream.
    const healthy = page.waitForResponse(/\/health$/);
    await page.clock.runFor(2_500);
    await (await healthy).finished();
    for (let i = 0; i < 10 && !isAsked; i++) await page.clock.runFor(500);

    await events;
    await page.clock.resume();
    await said(page, 'page 2').first().waitFor();
  });
});
