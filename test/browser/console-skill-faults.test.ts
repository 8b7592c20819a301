/** What the console says of skills that do not load, as the administrator sees it on every page. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleWorld, phone, startConsole } from '../support/console.ts';
import { isInstalled } from '../support/shared-servers.ts';

const directory = mkdtempSync(join(tmpdir(), 'skillwright-faults-'));
const file = join(directory, 'greet.ts');
const write = (code: string) => writeFileSync(file, code);
const greet = (required: string[]) => `export default {
  category: 'text', name: 'greet', version: 'v1.0', displayName: 'Greet', description: 'Greets.',
  parameters: { type: 'object', required: ${JSON.stringify(required)} }, output: {}, run: () => ({}),
};`;

describe.skipIf(!(await isInstalled('Chromium')))('a reload of skills in the console', () => {
  let world: ConsoleWorld;
  let page: ConsoleWorld['page'];
  beforeAll(async () => {
    write(greet([]));
    world = await startConsole({ skillsDirs: [directory], executors: 'own' });
    ({ page } = world);
  });
  afterAll(async () => {
    await world.stop();
    rmSync(directory, { recursive: true });
  });

  const faults = () => page.getByRole('region', { name: 'Faults of skills' });
  const reload = () => world.platform.admin('POST', '/admin/skills/reload');

  test('that is refused is shown without a reload of the page, with file, line and reason', async () => {
    await world.open('/jobs');
    await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor();
    expect(await faults().count()).toBe(0);

    write('const a = 1;\nexport default { category: a b };');
    expect((await reload()).status).toBe(409);

    await faults().getByText(`${file}:2`).waitFor();
    expect(await faults().textContent()).toContain('those loaded before stay in use');
    expect(await world.faultsInBoth()).toEqual([]);
    await page.setViewportSize(phone);
    const width = await page.evaluate('document.documentElement.scrollWidth');
    expect(width).toBeLessThanOrEqual(phone.width);
  });

  test('names a version that would break its callers, and goes away once one succeeds', async () => {
    write(greet(['name']));
    expect((await reload()).status).toBe(409);
    await faults().getByText('input.name is now required').waitFor();

    write(greet([]));
    await faults().getByRole('button', { name: 'Reload' }).click();

    await faults().waitFor({ state: 'detached' });
    expect(world.errors).toEqual([]);
  });
});
