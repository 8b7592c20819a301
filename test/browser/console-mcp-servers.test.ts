/** Services outside in the console: added, changed and refreshed, what has changed read before it is accepted, accounts. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { sendJson, startApiServer } from '../support/api-server.ts';
import { protect, startAuthorizationServer } from '../support/authorization-server.ts';
import { type ConsoleWorld, desktop, dialogOf, phone, startConsole } from '../support/console.ts';
import { echoTool, startMcpServer } from '../support/mcp-server.ts';
import { isInstalled } from '../support/shared-servers.ts';

const folder = process.env['SCREENSHOTS'];
if (folder !== undefined) mkdirSync(folder, { recursive: true });

describe.skipIf(!(await isInstalled('Chromium')))('services outside in the console', () => {
  let world: ConsoleWorld;
  let page: ConsoleWorld['page'];
  beforeAll(async () => {
    world = await startConsole({ environment: { SKILLS_ALLOW_CIDRS: '127.0.0.0/8' } });
    ({ page } = world);
  });
  afterAll(() => world.stop());
  /** A test that is repeated adds services of other names, and begins without the errors of its first try. */
  let tries = 0;
  beforeEach(() => {
    tries += 1;
    world.errors.length = 0;
  });

  /** The page as it is: axe finds nothing, it fits a phone, and pictures are taken where they are asked for. */
  async function looked(name: string) {
    expect(await world.faultsInBoth(), name).toEqual([]);
    for (const [size, viewport] of Object.entries({ desktop, phone })) {
      await page.setViewportSize(viewport);
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect(width, `${name} on a ${size}`).toBeLessThanOrEqual(viewport.width);
      if (folder === undefined) continue;
      for (const scheme of ['dark', 'light'] as const) {
        await world.shown(scheme);
        await page.waitForTimeout(300);
        await page.screenshot({ path: join(folder, `${name}-${size}-${scheme}.png`) });
      }
    }
    await page.setViewportSize(desktop);
  }

  test('a server is added and changed, and a change of its tools is read side by side', async () => {
    const server = await startMcpServer();
    const name = `tickets${tries}`;
    await world.open('/mcp-servers');
    await page.getByRole('button', { name: 'Add server' }).first().click();
    const dialog = dialogOf(page);
    await dialog.getByLabel('Name', { exact: true }).fill(name);
    await dialog.getByLabel('Address', { exact: true }).fill(server.url);
    await dialog.getByLabel('Authorization', { exact: true }).selectOption('headers');
    await dialog.getByLabel('Value of header 1').fill('Bearer of-the-server');
    const organizations = dialog.getByRole('group', { name: 'Organizations' });
    await organizations.getByText('Each of them acts').waitFor();
    await organizations.scrollIntoViewIfNeeded();
    await looked('mcp-server-form');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('link', { name, exact: true }).click();
    await page.getByText(`mcp-${name}/v1.0/echo`, { exact: true }).waitFor();
    expect(server.headers.at(-1)?.authorization).toBe('Bearer of-the-server');

    await page.getByRole('button', { name: 'Edit' }).click();
    await dialog.getByLabel('Retried tools').fill('echo');
    await page.getByRole('option', { name: 'echo' }).click();
    await dialog.getByLabel('Seconds of one call').fill('5');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    const { body } = await world.platform.admin('GET', `/admin/mcp-servers/${name}`);
    expect(body).toMatchObject({
      ...{ timeout_ms: 5_000, idempotent_tools: ['echo'], headers: ['authorization'] },
      status: 'available',
    });
    expect(server.headers.at(-1)?.authorization).toBe('Bearer of-the-server');

    const annotations = { readOnlyHint: true };
    server.tools = [{ ...echoTool, description: 'Echoes, and more.', annotations }];
    await page.getByRole('button', { name: 'Refresh' }).click();
    const difference = page.getByRole('region', { name: `What differs in mcp-${name}/v1.1/echo` });
    await difference.getByRole('cell', { name: 'description: Echoes, and more.' }).waitFor();
    await difference
      .getByRole('cell', { name: 'description: Echoes.', exact: false })
      .first()
      .waitFor();
    await page.getByText(`The whole definition of mcp-${name}/v1.1/echo`).click();
    await page.getByText('description: Echoes, and more.\n').first().waitFor();
    await page.getByText('"required": [').first().waitFor();
    await page.getByText('reads only').first().waitFor();
    await looked('mcp-server');
    await page.getByRole('button', { name: 'Reject' }).click();
    await difference.waitFor({ state: 'detached' });
    await page.getByText('rejected').waitFor();
    server.tools = [{ ...echoTool, description: 'Echoes, and even more.' }];
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('button', { name: 'Activate' }).click();
    await difference.waitFor({ state: 'detached' });
    expect(world.errors).toEqual([]);
  });

  test('an account is connected where a server asks for it', async () => {
    const server = await startMcpServer();
    const by = await startAuthorizationServer();
    protect(server, by);
    const name = `guarded${tries}`;
    const added = { name, url: server.url };
    await world.platform.admin('POST', '/admin/mcp-servers', added);
    await world.open(`/mcp-servers/${name}`);
    await page.getByText('needs authorization').first().waitFor();
    await page.getByRole('button', { name: 'Connect' }).click();
    await page.getByText('The account is connected').waitFor();
    await expect
      .poll(() => page.url())
      .toBe(`${world.platform.url}/console/o/default/oauth/callback/${name}`);
    await page.getByRole('link', { name: 'Server', exact: true }).click();
    await page.getByText(`mcp-${name}/v1.0/echo`, { exact: true }).waitFor();
    if (folder !== undefined) await looked('mcp-server-account');
    await page.getByRole('link', { name: 'Accounts', exact: true }).click();
    const row = page.getByRole('row').filter({ hasText: name });
    await row.getByText('connected', { exact: true }).waitFor();
    await looked('accounts');
    await page.getByRole('button', { name: `More for the account at ${name}` }).click();
    await page.getByRole('menuitem', { name: 'Disconnect' }).click();
    await dialogOf(page, 'alertdialog').getByRole('button', { name: 'Disconnect' }).click();
    await row.getByText('not connected').waitFor();
    expect(by.revoked).toHaveLength(2);
    // The browser goes to the authorization server and comes back.
    const elsewhere = world.errors.filter((error) => !error.includes(by.origin));
    expect(elsewhere).toEqual([]);
    world.errors.length = 0;
  });

  test('operations of a document are chosen, and what changes in it is accepted', async () => {
    const service = await startApiServer();
    const name = `orders${tries}`;
    let summary = 'List orders';
    service.answer = (_request, response) =>
      sendJson(response, 200, {
        openapi: '3.1.0',
        info: { title: 'Orders', version: '1' },
        servers: [{ url: service.url }],
        paths: {
          '/orders': {
            get: { operationId: 'listOrders', summary, responses: {} },
            post: { operationId: 'createOrder', responses: {} },
          },
        },
      });
    await world.open('/openapi-imports');
    await page.getByRole('button', { name: 'Import document' }).first().click();
    const dialog = dialogOf(page);
    await dialog.getByLabel('Name', { exact: true }).fill(name);
    await dialog.getByLabel('Address of the document').fill(`${service.url}/openapi.json`);
    await dialog.getByLabel('Authorization', { exact: true }).selectOption('header');
    await dialog.getByLabel('Header', { exact: true }).fill('x-key');
    await dialog.getByLabel('Value', { exact: true }).fill('the-key-of-it');
    await dialog.getByRole('button', { name: 'Some', exact: true }).click();
    await dialog.getByRole('button', { name: 'List the operations' }).click();
    await dialog.getByText('The document has 2 operations.').waitFor();
    await dialog.getByLabel('Chosen operations').fill('list');
    const option = page.getByRole('option', { name: /GET \/orders/ });
    await option.and(page.locator('[data-highlighted]')).waitFor();
    // Escape comes before the list that Enter closes has gone, and leaves the dialog open.
    await page.evaluate(`(async () => {
      for (const key of ['Enter', 'Escape']) {
        const options = { key, bubbles: true, cancelable: true };
        document.activeElement.dispatchEvent(new KeyboardEvent('keydown', options));
        await null;
      }
    })()`);
    await looked('openapi-import-form');
    await dialog.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByRole('link', { name, exact: true }).click();
    await page.getByText(`api-${name}/v1.0/list-orders`).waitFor();
    summary = 'List all orders';
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('cell', { name: 'List all orders' }).first().waitFor();
    // It has the parts of the page of a server.
    if (folder !== undefined) await looked('openapi-import');
    await page.getByRole('button', { name: 'Activate' }).click();
    await page.getByText('waits in quarantine').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Edit' }).click();
    await dialog.getByLabel('Base address').fill(`${service.url}/v2`);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText(`${service.url}/v2`, { exact: true }).waitFor();
    const { body } = await world.platform.admin('GET', `/admin/openapi-imports/${name}`);
    expect(body).toMatchObject({
      ...{ base_url: `${service.url}/v2`, operations: ['GET /orders'] },
      auth: { type: 'header', name: 'x-key' },
    });
    expect(world.errors).toEqual([]);
  });
});
