/** A page of the console belongs to one organization and one session, independent of other tabs. */
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ConsoleWorld, startConsole } from '../support/console.ts';
import { adminSecret } from '../support/platform.ts';
import { isInstalled } from '../support/shared-servers.ts';

const echo = '/skills/util/v1.0/echo';

describe.skipIf(!(await isInstalled('Chromium')))('a page of the console', () => {
  let world: ConsoleWorld;
  let elsewhereKey: string;
  beforeAll(async () => {
    world = await startConsole({}, 'own');
    elsewhereKey = await world.platform.key({ organization_id: 'elsewhere' });
  });
  afterAll(() => world.stop());
  beforeEach(async () => {
    await world.page.context().clearCookies();
    await world.signInAs(adminSecret);
  });
  /** The tabs that a test has opened beside the first one. */
  afterEach(async () => {
    const [, ...others] = world.page.context().pages();
    await Promise.all(others.map((page) => page.close()));
    await world.page.goto('about:blank');
  });

  const addressOf = (organization: string, place: string) =>
    `${world.platform.url}/console/o/${organization}${place}`;

  async function open(page: Page, organization: string, place: string) {
    await page.goto(addressOf(organization, place));
    // A dialog hides it from those who hear the page.
    await page.getByRole('heading', { level: 1, includeHidden: true }).waitFor();
  }

  const newTab = () => world.page.context().newPage();

  const inputOf = (page: Page) => page.getByLabel('text', { exact: true });

  async function signInOver(page: Page, secret: string) {
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
    await dialog.getByLabel('Admin secret or API key').fill(secret);
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    return dialog;
  }

  /** Texts that were run in the organization of a key. */
  async function texts(key: string): Promise<string[]> {
    const { platform } = world;
    const path = '/api/jobs?skill_category=util&skill_name=echo&skill_version=v1.0';
    const { body } = await platform.request('GET', path, { key });
    const jobs = await Promise.all(
      body.data.map(({ job_id }: { job_id: string }) =>
        platform.request('GET', `/api/jobs/${job_id}`, { key }),
      ),
    );
    return jobs.map(({ body: job }) => job.input.text);
  }

  test('shows and runs in its own organization after another tab has entered another one', async () => {
    const { page, key } = world;
    await open(page, 'default', echo);
    await inputOf(page).fill('from the first tab');

    const other = await newTab();
    await open(other, 'default', '/skills');
    await other.getByRole('button', { name: /Account/ }).click();
    await other.getByRole('menuitem', { name: 'elsewhere' }).click();
    await other.waitForURL(addressOf('elsewhere', '/skills'));
    await open(other, 'elsewhere', echo);
    await inputOf(other).fill('from the second tab');
    for (const tab of [page, other]) {
      await tab.getByRole('button', { name: 'Run', exact: true }).click();
      await tab.getByRole('link', { name: 'Open the job' }).waitFor();
    }

    expect(await page.getByRole('button', { name: /Account/ }).textContent()).toMatch(/default/);
    expect(await other.getByRole('button', { name: /Account/ }).textContent()).toMatch(/elsewhere/);
    expect(await texts(key)).toContain('from the first tab');
    expect(await texts(key)).not.toContain('from the second tab');
    expect(await texts(elsewhereKey)).toEqual(['from the second tab']);
  });

  test('takes neither input nor a failed job along into another organization', async () => {
    const { page, platform, key } = world;
    const { body } = await platform.request('POST', '/api/web/v1.0/http-request', {
      key,
      body: { url: 'http://127.0.0.1:9/' },
    });
    await platform.jobIn(key, body.job_id, 'failed');
    await open(page, 'default', echo);
    await inputOf(page).fill('a secret of default');
    await page.goto(addressOf('default', `/jobs/${body.job_id}`));
    await page.getByRole('button', { name: 'Retry' }).waitFor();

    await page.getByRole('button', { name: /Account/ }).click();
    await page.getByRole('menuitem', { name: 'elsewhere' }).click();

    await page.waitForURL(addressOf('elsewhere', '/jobs'));
    await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor();
    expect(await page.getByRole('button', { name: 'Retry' }).count()).toBe(0);
    await page.getByRole('link', { name: 'Skills', exact: true }).click();
    await page.getByRole('link', { name: 'Echo' }).click();
    await page.waitForURL(addressOf('elsewhere', echo));
    expect(await inputOf(page).inputValue()).not.toBe('a secret of default');
  });

  test('opens the last organization if the address has none', async () => {
    const { page, platform } = world;
    await open(page, 'elsewhere', '/jobs');

    await page.goto(`${platform.url}/console/jobs?status=failed`);

    await page.waitForURL(addressOf('elsewhere', '/jobs?status=failed'));
  });

  test('shows a note, and sends nothing, after another tab has signed in to another organization', async () => {
    const { page, platform } = world;
    await open(page, 'default', '/agents?dialog=new');
    const name = page.getByLabel(/^Name/);
    await name.fill('My draft');

    const other = await newTab();
    await other.goto(`${platform.url}/console/`);
    await other.getByRole('button', { name: /Account/ }).click();
    await other.getByRole('menuitem', { name: 'Sign out' }).click();
    await other.getByLabel('Admin secret or API key').fill(elsewhereKey);
    await other.getByRole('button', { name: 'Sign in' }).click();
    await other.waitForURL(addressOf('elsewhere', '/'));
    await page.bringToFront();
    // Playwright keeps all tabs visible, so the event of a tab that is shown again does not always come.
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))");

    const dialog = page.getByRole('dialog', { name: 'Another organization' });
    await dialog.getByText(/This page is of the organization “default”/).waitFor();
    expect(await name.inputValue()).toBe('My draft');
    await dialog.getByRole('link', { name: 'go to “elsewhere”' }).click();
    await page.waitForURL(addressOf('elsewhere', '/'));
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();

    // An address that a colleague has sent.
    await page.goto(addressOf('default', '/jobs'));
    await page.getByRole('heading', { level: 1, name: 'Another organization' }).waitFor();
  });

  test('keeps typed input when the session ends and the user signs in again', async () => {
    const { page, platform, key } = world;
    await open(page, 'default', '/agents?dialog=new');
    await page.getByLabel('Id', { exact: true }).fill('drafted');
    await page.getByLabel(/^Name/).fill('My draft');

    await page.context().clearCookies();
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
    await dialog.waitFor();
    expect(await world.faults()).toEqual([]);
    await page.keyboard.press('Escape');
    await signInOver(page, 'wrong');
    await dialog.getByText(/neither the admin secret nor a valid API key/).waitFor();
    await signInOver(page, adminSecret);
    await dialog.waitFor({ state: 'detached' });

    await page.getByRole('dialog', { name: 'New agent' }).getByText('Create agent').click();
    await page.getByRole('heading', { level: 1, name: 'My draft' }).waitFor();
    const made = await platform.request('GET', '/api/agents/drafted', { key });
    expect(made.body.name).toBe('My draft');
  });

  test('is reloaded after a sign-in with another secret', async () => {
    const { page, platform } = world;
    const key = await platform.key({ client_name: 'somebody-else' });
    await open(page, 'default', echo);
    await inputOf(page).fill('not for others');

    await page.context().clearCookies();
    // It is read again when the page is looked at again.
    await page.evaluate('document.dispatchEvent(new Event("visibilitychange", { bubbles: true }))');
    await signInOver(page, key);

    await page
      .getByRole('button', { name: /Account/ })
      .getByText('somebody-else')
      .waitFor();
    expect(await inputOf(page).inputValue()).not.toBe('not for others');
  });
});
