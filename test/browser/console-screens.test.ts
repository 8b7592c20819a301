/**
 * Every screen of the console with something on it: it raises no error, asks no other host, fits a
 * phone, does not jump while it loads, and axe finds nothing serious, light or dark. With SCREENSHOTS=folder it also writes there what
 * each looks like.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { desktop, dialogOf, phone } from '../support/console.ts';
import { isReading } from '../support/console-moves.ts';
import { type BusyConsole, startBusyConsole } from '../support/console-world.ts';
import { isInstalled } from '../support/shared-servers.ts';

const folder = process.env['SCREENSHOTS'];
if (folder !== undefined) mkdirSync(folder, { recursive: true });

const screens = [
  ...['overview', 'skills', 'skill', 'skill-schemas', 'connect', 'jobs', 'job', 'job-failed'],
  ...['queue', 'queue-own', 'jobs-filtered'],
  ...['job-waiting', 'approvals', 'approvals-all', 'approval'],
  ...['conversations', 'conversation', 'agents', 'agent', 'agent-settings', 'memories'],
  ...['schedules', 'schedule', 'webhooks', 'webhook', 'triggers', 'trigger', 'api-keys', 'system'],
];

const drawn = 'new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))';

/** How far a page may move under the eyes of its reader while it loads: the sum of its layout shifts. */
const shiftMax = 0.02;
const watchShifts = `
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries()) {
      const moved = sources.map(({ node }) => node?.outerHTML?.slice(0, 160) ?? node?.textContent);
      if (!hadRecentInput) window.shifts.push({ value, moved });
    }
  }).observe({ type: 'layout-shift', buffered: true });`;

describe.skipIf(!(await isInstalled('Chromium')))('the screen', () => {
  let world: BusyConsole;
  beforeAll(async () => {
    world = await startBusyConsole();
    await world.page.addInitScript(watchShifts);
  });
  afterAll(() => world.stop());

  /** Everything that a screen reads has come, and is drawn. */
  async function settled(name: string) {
    const { page } = world;
    // The events of a job that waits never end.
    if (name === 'job-waiting') {
      await page.getByRole('row', { name: /^remind/ }).waitFor();
      await page.getByRole('table', { name: 'What is asked' }).waitFor();
    }
    const isStill = async () =>
      !(await isReading(page)) &&
      (await page.getByRole('status', { name: 'Loading' }).count()) === 0;
    // What an answer brings is drawn, and may read more.
    const isSettled = async () => {
      if (!(await isStill())) return false;
      await page.evaluate(drawn);
      return await isStill();
    };
    await expect.poll(isSettled).toBe(true);
  }

  /** In each size it is opened in one scheme, and changed to the other. */
  const ways = [
    { size: 'desktop', viewport: desktop, schemes: ['light', 'dark'] },
    { size: 'phone', viewport: phone, schemes: ['dark', 'light'] },
  ] as const;

  test.each(screens)('%s', async (name) => {
    const { page, places } = world;
    for (const [nth, { size, viewport, schemes }] of ways.entries()) {
      await page.setViewportSize(viewport);
      await world.shown(schemes[0]);
      // The page is loaded in one size, and moved to in the other.
      const isLoaded = screens.indexOf(name) % 2 === nth;
      await page.evaluate(drawn).then(() => page.evaluate('window.shifts = []'));
      await (isLoaded ? world.load : world.open)(places[name] as string);
      await settled(name);
      const shifts = (await page.evaluate('window.shifts')) as { value: number }[];
      const shifted = shifts.reduce((sum, { value }) => sum + value, 0);
      expect(shifted, `${size}: ${JSON.stringify(shifts)}`).toBeLessThan(shiftMax);
      for (const scheme of schemes) {
        await world.shown(scheme);
        if (folder !== undefined) {
          await page.screenshot({ path: join(folder, `${name}-${size}-${scheme}.png`) });
        }
        // What is no colour is the same in both.
        const of = scheme === schemes[0] ? undefined : 'colours';
        expect(await world.faults(of), `${size}, ${scheme}`).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
          viewport.width,
        );
      }
    }
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(world.errors).toEqual([]);
  });

  test('keeps buttons visible beside long names and below long texts', async () => {
    const { page, platform, key } = world;
    await page.setViewportSize(desktop);
    const { body: webhook } = await platform.request('POST', '/api/agent-webhooks', {
      key,
      body: {
        agent_id: 'analyst',
        url: `https://hooks.example.com/${'orders-and-returns/'.repeat(40)}`,
        events: ['skill.failed'],
      },
    });
    await world.open(`/webhooks/${webhook.id}`);
    const title = await page.getByRole('heading', { level: 1 }).boundingBox();
    const button = await page.getByRole('button', { name: 'Disable' }).boundingBox();
    if (title === null || button === null) throw new Error('The title and its button are shown');
    expect(button.x).toBeGreaterThan(title.x + title.width);
    expect(title.height).toBeLessThan(100);
    const breadcrumb = page.getByRole('navigation', { name: 'Breadcrumb' });
    expect(await breadcrumb.locator('> :last-child').textContent()).toBe('Webhooks');
    const background = 'getComputedStyle(document.documentElement).backgroundColor';
    const open = await page.evaluate(background);
    await page.getByRole('button', { name: 'Disable' }).click();
    await dialogOf(page, 'alertdialog').waitFor();
    expect(await page.evaluate(background)).not.toBe(open);
    await platform.request('DELETE', `/api/agent-webhooks/${webhook.id}`, { key });

    await world.open('/agents/analyst?tab=settings');
    await page.getByLabel('Name').fill('Analyst of reports');
    await page.getByRole('button', { name: 'Save changes' }).click();
    const told = await page.getByText('The agent is saved').boundingBox();
    const save = await page.getByRole('button', { name: 'Save changes' }).boundingBox();
    if (told === null || save === null) throw new Error('It is told, and the form is shown');
    expect(told.x + told.width).toBeLessThan(save.x);
  });

  test('gives tables the width of a large window', async () => {
    const { page } = world;
    await page.setViewportSize({ width: 1_920, height: 1_080 });
    await world.open('/jobs');
    const table = await page.getByRole('table', { name: 'Jobs, newest first' }).boundingBox();
    expect(table?.width).toBeGreaterThan(1_500);
  });
});
