/** Outside servers in the console: added, refreshed, and what has changed read before it is activated. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleWorld, dialogOf, phone, startConsole } from '../support/console.ts';
import { echoTool, startMcpServer } from '../support/mcp-server.ts';
import { isInstalled } from '../support/shared-servers.ts';

describe.skipIf(!(await isInstalled('Chromium')))('outside servers in the console', () => {
  let world: ConsoleWorld;
  let page: ConsoleWorld['page'];
  beforeAll(async () => {
    world = await startConsole({ environment: { SKILLS_ALLOW_CIDRS: '127.0.0.0/8' } });
    ({ page } = world);
  });
  afterAll(() => world.stop());

  test('are added, and a change of a tool is read and activated', async () => {
    const server = await startMcpServer();
    await world.open('/mcp-servers');
    await page.getByRole('button', { name: 'Add server' }).first().click();
    const dialog = dialogOf(page);
    await dialog.getByLabel('Name').fill('tickets');
    await dialog.getByLabel('Address').fill(server.url);
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('link', { name: 'tickets' }).click();
    await page.getByText('mcp-tickets/v1.0/echo').waitFor();

    server.tools = [{ ...echoTool, description: 'Echoes, and more.' }];
    await page.getByRole('button', { name: 'Refresh' }).click();

    const waiting = page.getByRole('region', { name: 'What differs in mcp-tickets/v1.1/echo' });
    await waiting.getByText('+description: Echoes, and more.').waitFor();
    expect(await world.faultsInBoth()).toEqual([]);
    await page.getByRole('button', { name: 'Activate' }).click();
    await waiting.waitFor({ state: 'detached' });
    await page.setViewportSize(phone);
    const width = await page.evaluate('document.documentElement.scrollWidth');
    expect(width).toBeLessThanOrEqual(phone.width);
    expect(world.errors).toEqual([]);
  });
});
