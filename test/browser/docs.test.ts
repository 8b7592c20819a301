/** `/docs` as a reader meets it, in a real browser without any other host. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Browser, openBrowser } from '../support/chromium.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { isInstalled } from '../support/shared-servers.ts';

const phone = { width: 390, height: 844 };

describe.skipIf(!(await isInstalled('Chromium')))('the API reference', () => {
  let platform: Platform;
  let browser: Browser;
  beforeAll(async () => {
    platform = await startPlatform();
  });
  afterAll(() => platform.stop());
  beforeEach(async () => {
    browser = await openBrowser(platform.url);
  });
  afterEach(() => browser.close());

  // In one test: to load this page takes seconds of a processor.
  test('shows the operations, fits a phone, and uses no other host', async () => {
    const { page, elsewhere, errors } = browser;
    const operation = page.getByRole('heading', { name: 'Create an API key' });
    await page.goto(`${platform.url}/docs`);
    await operation.waitFor();

    await page.setViewportSize(phone);
    await operation.waitFor();

    const width = await page.evaluate('document.documentElement.scrollWidth');
    expect(width).toBeLessThanOrEqual(phone.width);
    expect(elsewhere).toEqual([]);
    expect(errors).toEqual([]);
  });

  test('finds an operation and tries it, without another host', async () => {
    const { page, elsewhere } = browser;
    await page.goto(`${platform.url}/docs`);

    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('combobox').fill('health');
    await page.getByRole('option', { name: /Path: \/health/ }).click();
    await page.getByRole('button', { name: /Test Request.*\/health/ }).click();
    const [answer] = await Promise.all([
      page.waitForResponse(`${platform.url}/health`),
      page.getByRole('button', { name: 'Send Request' }).click(),
    ]);

    expect(answer.status()).toBe(200);
    expect(elsewhere).toEqual([]);
  });
});
