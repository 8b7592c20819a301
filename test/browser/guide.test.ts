/** The guides as a reader meets them, in a real browser without any other host. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
} from 'vitest';
import { type Browser, openBrowser } from '../support/chromium.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { isInstalled } from '../support/shared-servers.ts';

const root = join(import.meta.dirname, '../..');
const phone = { width: 390, height: 844 };

describe.skipIf(!(await isInstalled('Chromium')))('the guides', () => {
  let platform: Platform;
  let browser: Browser;
  beforeAll(async () => {
    // Does nothing where they are built of the present pages.
    await promisify(execFile)(process.execPath, [join(root, 'scripts/docs-build.ts')]);
    platform = await startPlatform();
  });
  afterAll(() => platform.stop());
  beforeEach(async () => {
    browser = await openBrowser(platform.url);
  });
  afterEach(() => {
    expect(browser.elsewhere).toEqual([]);
    expect(browser.errors).toEqual([]);
    return browser.close();
  });

  const open = async (path: string) => {
    await browser.page.goto(`${platform.url}/docs/guide/${path}`);
    await browser.page.locator('.VPDoc h1').waitFor();
  };

  test('lead from page to page in the order of the menu', async () => {
    const { page } = browser;
    await open('start');

    await page.getByRole('link', { name: /^Next page/ }).click();
    await page.waitForURL('**/docs/guide/first-skill');
    await page.getByRole('heading', { level: 1, name: 'Your first skill' }).waitFor();

    await page.getByRole('link', { name: 'API reference' }).first().click();
    await page.waitForURL(`${platform.url}/docs`);
  });

  test('are searched without a server', async () => {
    const { page } = browser;
    await open('');

    await page.getByRole('button', { name: 'Search' }).first().click();
    await page.getByRole('searchbox').or(page.locator('#localsearch-input')).fill('idempotency');
    await page.locator('.VPLocalSearchBox .result').first().click();

    await page.waitForURL(/\/docs\/guide\/[\w/-]+#/);
  });

  test('are dark where the reader chooses so, with their diagrams', async () => {
    const { page } = browser;
    await open('durable');
    const colour = () =>
      page.evaluate("getComputedStyle(document.querySelector('.diagram text')).fill");
    const light = await colour();

    await page.getByRole('switch').first().click();

    await page.locator('html.dark').waitFor();
    expect(await colour()).not.toBe(light);
    await page.reload();
    await page.locator('html.dark').waitFor();
  });

  test.each(['', 'api', 'durable', 'operations', 'skills'])(
    'fit a phone: /docs/guide/%s',
    async (path) => {
      const { page } = browser;
      await page.setViewportSize(phone);

      await open(path);

      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect(width).toBeLessThanOrEqual(phone.width);
    },
  );

  test('say which page is not there', async () => {
    const { page, errors, elsewhere, close } = await openBrowser(platform.url);
    onTestFinished(close);

    await page.goto(`${platform.url}/docs/guide/none`);

    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
    expect(elsewhere).toEqual([]);
    expect(errors).toEqual([expect.stringContaining('404 (Not Found)')]);
  });
});
