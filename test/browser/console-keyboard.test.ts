/** The console without a mouse: from signing in to the result of a run. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleWorld, startConsole } from '../support/console.ts';
import { adminSecret } from '../support/platform.ts';
import { isInstalled } from '../support/shared-servers.ts';

/** More stops than any page has before what is looked for. */
const stopsMax = 60;

describe.skipIf(!(await isInstalled('Chromium')))('without a mouse', () => {
  let world: ConsoleWorld;
  beforeAll(async () => {
    world = await startConsole();
  });
  afterAll(() => world.stop());

  /** Goes from stop to stop until one is called so; each has to be visible. */
  async function tabTo(name: RegExp): Promise<void> {
    const { page } = world;
    for (let i = 0; i < stopsMax; i++) {
      await page.keyboard.press('Tab');
      const stop = (await page.evaluate(`(() => {
        const { activeElement: element } = document;
        const name = element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? element.textContent;
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        return { name: name.trim(), isSeen: outlineStyle !== 'none' && outlineWidth !== '0px' };
      })()`)) as { name: string; isSeen: boolean };
      if (!name.test(stop.name)) continue;
      expect(stop.isSeen, `${stop.name} shows that it has the focus`).toBe(true);
      return;
    }
    throw new Error(`Nothing called ${name} in ${stopsMax} stops`);
  }

  test('a user signs in, finds a skill, runs it and reads the result', async () => {
    const { page, platform } = world;

    await page.goto(platform.url);
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await page.keyboard.type(adminSecret);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();

    await tabTo(/^Skills$/);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Skills' }).waitFor();
    await page.getByRole('link', { name: 'Word count' }).waitFor();
    await tabTo(/^Search skills$/);
    await page.keyboard.type('word-count');
    await page.waitForURL(/q=word-count/);
    await tabTo(/^Word count$/);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Word count' }).waitFor();

    await page.getByRole('textbox', { name: 'text' }).waitFor();
    await tabTo(/^text$/);
    await page.keyboard.press('Control+a');
    await page.keyboard.type('one two three');
    await tabTo(/^Run$/);
    await page.keyboard.press('Enter');

    await page.getByText('"words": 3').waitFor();
    expect(world.errors).toEqual([]);
  });

  test('a menu opens, closes by Escape, and the focus is where it was', async () => {
    const { page } = world;
    await world.load('/');

    await tabTo(/Account(?!s)/);
    await page.keyboard.press('Enter');
    await page.getByRole('menuitem', { name: 'Sign out' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('menu').waitFor({ state: 'hidden' });

    const focused = await page.evaluate('document.activeElement.textContent');
    expect(focused).toContain('Account');
  });

  test('a keyboard user can skip the menu', async () => {
    const { page } = world;
    await world.load('/jobs');

    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');

    await expect.poll(() => page.url()).toMatch(/#content$/);
  });
});
