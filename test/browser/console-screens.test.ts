/**
 * Every screen of the console with something on it: it raises no error, asks no other host, fits a
 * phone, and axe finds nothing serious, light or dark. With SCREENSHOTS=folder it also writes there what
 * each looks like.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { desktop, phone } from '../support/console.ts';
import { type BusyConsole, startBusyConsole } from '../support/console-world.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { waitFor } from '../support/wait-for.ts';

const folder = process.env['SCREENSHOTS'];
if (folder !== undefined) mkdirSync(folder, { recursive: true });

const screens = [
  ...['overview', 'skills', 'skill', 'skill-schemas', 'jobs', 'job', 'job-failed'],
  ...['conversations', 'conversation', 'agents', 'agent', 'memories'],
  ...['schedules', 'schedule', 'webhooks', 'webhook', 'triggers', 'trigger', 'api-keys', 'system'],
];

describe.skipIf(!(await isInstalled('Chromium')))('the screen', () => {
  let world: BusyConsole;
  beforeAll(async () => {
    world = await startBusyConsole();
  });
  afterAll(() => world.stop());

  /** Everything that a screen reads has come, and is drawn. */
  async function settled() {
    const { page } = world;
    await page.waitForLoadState('networkidle');
    await waitFor(
      async () =>
        (await page.getByRole('status', { name: 'Loading' }).count()) === 0 &&
        (await page.evaluate(
          'document.getAnimations().every((one) => one.playState !== "running" || one.effect.getTiming().iterations === Infinity)',
        )),
      { describe: 'nothing is being loaded' },
    );
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))');
  }

  test.each(screens)('%s', async (name) => {
    const { page, places } = world;
    for (const scheme of ['light', 'dark'] as const) {
      for (const [size, viewport] of Object.entries({ desktop, phone })) {
        await page.setViewportSize(viewport);
        await world.shown(scheme);
        await world.open(places[name] as string);
        await settled();
        if (folder !== undefined) {
          await page.screenshot({ path: join(folder, `${name}-${size}-${scheme}.png`) });
        }
        expect(await world.faults(), `${size}, ${scheme}`).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
          viewport.width,
        );
      }
    }
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(world.errors).toEqual([]);
  });
});
