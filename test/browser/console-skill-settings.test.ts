/** The settings of a skill in the console, as a person sets and clears them. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleWorld, phone, startConsole } from '../support/console.ts';
import { isInstalled } from '../support/shared-servers.ts';

describe.skipIf(!(await isInstalled('Chromium')))('the settings of a skill', () => {
  let world: ConsoleWorld;
  let page: ConsoleWorld['page'];
  beforeAll(async () => {
    world = await startConsole({
      skillsDirs: [join(import.meta.dirname, '../fixtures/skills/settings')],
    });
    ({ page } = world);
  });
  afterAll(() => world.stop());

  const field = (name: string) => page.getByRole('textbox', { name });
  const store = () => page.getByRole('button', { name: 'Store' }).click();
  const shown = (text: string) => page.getByText(text, { exact: true }).first().waitFor();

  test('that are missing are told on its page, set in a form, and cleared again', async () => {
    await world.open('/skills/settings/v1.0/keeper');
    await page.getByText('Runs cannot start:').waitFor();
    await page.getByRole('button', { name: 'Open settings' }).click();
    await shown('missing');
    await expect.poll(() => page.url()).toContain('tab=settings');

    await field('API_KEY').fill('abc');
    await store();
    await page.getByText('must have at least 4 characters, as a secret').waitFor();
    await field('API_KEY').fill('sk-of-the-service');
    await field('NICKNAME').fill('Kay');
    await store();
    await page.getByRole('button', { name: 'Clear API_KEY' }).waitFor();

    expect(await field('API_KEY').inputValue()).toBe('');
    expect(await field('API_KEY').getAttribute('type')).toBe('password');
    expect(await field('NICKNAME').getAttribute('placeholder')).toBe('Kay');
    expect(await page.content()).not.toContain('sk-of-the-service');
    expect(await world.faultsInBoth()).toEqual([]);
    await page.setViewportSize(phone);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
      phone.width,
    );

    await page.getByRole('button', { name: 'Clear NICKNAME' }).click();
    await shown('not set');
    await page.getByRole('button', { name: 'Clear all…' }).click();
    await page.getByRole('button', { name: 'Clear all', exact: true }).click();
    await shown('missing');
    expect(world.errors.filter((one) => !one.includes('400'))).toEqual([]);
  });

  test('are no part of the page of a skill that declares none', async () => {
    await world.open('/skills/settings/v1.0/other');

    await page.getByRole('tab', { name: 'Schemas' }).waitFor();
    expect(await page.getByRole('tab', { name: 'Settings' }).count()).toBe(0);
  });
});
