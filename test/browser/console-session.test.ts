/** The frame of the console: sign-in, menu, palette, light and dark, on a phone. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ConsoleWorld, dialogOf, phone, startConsole } from '../support/console.ts';
import { adminSecret } from '../support/platform.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { waitFor } from '../support/wait-for.ts';

describe.skipIf(!(await isInstalled('Chromium')))('the console', () => {
  let world: ConsoleWorld;
  beforeAll(async () => {
    world = await startConsole();
  });
  afterAll(() => world.stop());
  /** Errors that a test brings about: a browser tells of every answer that refuses something. */
  let expected: RegExp | null;
  beforeEach(async () => {
    expected = null;
    await world.page.context().clearCookies();
  });
  afterEach(async () => {
    await world.page.unrouteAll();
    // What is open asks on. After this, none of its errors comes.
    await world.page.goto('about:blank');
    const errors = world.errors.splice(0);
    expect(errors.filter((error) => !expected?.test(error))).toEqual([]);
  });

  const titled = (name: string) => world.page.getByRole('heading', { level: 1, name }).waitFor();

  /** Types into the palette until it shows what is looked for; Enter goes there. */
  async function find(text: string, option: RegExp) {
    const { page } = world;
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search everything' }).waitFor();
    await page.keyboard.type(text);
    // Enter takes the one that is marked.
    await page
      .getByRole('option', { name: option })
      .and(page.locator('[data-highlighted]'))
      .waitFor();
    await page.keyboard.press('Enter');
  }

  test('is where the address alone leads', async () => {
    const { page, platform } = world;

    await page.goto(platform.url);

    await titled('Sign in');
    await expect.poll(() => page.url()).toBe(`${platform.url}/console/`);
  });

  test('lets in who knows the admin secret, and remembers it over a reload', async () => {
    const { page } = world;

    await world.signInAs(adminSecret);
    await titled('Overview');
    await page.reload();
    await titled('Overview');

    expect(await page.getByRole('link', { name: 'API keys' }).isVisible()).toBe(true);
  });

  test('accepts an API key, without the administrator’s pages', async () => {
    const { page, key } = world;

    await world.signInAs(key);
    await titled('Overview');

    await page.getByRole('link', { name: 'Jobs' }).waitFor();
    expect(await page.getByRole('link', { name: 'API keys' }).count()).toBe(0);
  });

  test('keeps the secret out of the browser’s storage and the address', async () => {
    const { page } = world;

    await world.signInAs(adminSecret);
    await titled('Overview');

    const stored = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])',
    );
    expect(stored).not.toContain(adminSecret);
    expect(stored).not.toContain('skillwright_session');
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
    expect(cookie?.value).not.toContain(adminSecret);
  });

  test('signs out', async () => {
    const { page } = world;
    // What the page is asking for when its session ends is refused.
    expected = /status of 401/;
    await world.signInAs(adminSecret);

    await page.getByRole('button', { name: /Account/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();

    await titled('Sign in');
    await page.reload();
    await titled('Sign in');
  });

  test('goes anywhere by the palette, without the mouse', async () => {
    const { page } = world;
    await world.open('/');

    await find('schedu', /Schedules/);

    await titled('Schedules');
    await expect.poll(() => page.url()).toMatch(/\/console\/o\/default\/schedules$/);
  });

  test('leads from the palette to a skill that it finds by its name', async () => {
    const { page } = world;
    await world.open('/');

    await find('word-count', /text\/v1\.0\/word-count/);

    await page.waitForURL(/\/console\/o\/default\/skills\/text\/v1\.0\/word-count/);
  });

  test('makes something new from the palette, and does not open it again to those who go back', async () => {
    const { page } = world;
    await world.open('/');

    await find('new schedule', /New schedule/);
    const dialog = page.getByRole('dialog', { name: 'New schedule' });
    await dialog.waitFor();
    await expect.poll(() => page.url()).toMatch(/\/console\/o\/default\/schedules\?dialog=new$/);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(() => page.url()).toMatch(/\/console\/o\/default\/schedules$/);

    await page.goBack();
    await titled('Overview');
    await page.goForward();
    await titled('Schedules');
    expect(await dialog.count()).toBe(0);
  });

  test('finds in the palette a key by its name, and memories by their words', async () => {
    const { page } = world;
    await world.platform.key({ client_name: 'nightly-reports' });
    await world.platform.request('POST', '/api/agents/default/memories', {
      key: world.key,
      body: { tag: 'facts', content: 'The harbour opens at six' },
    });
    await world.signInAs(adminSecret);

    await find('nightly', /nightly-reports/);
    await titled('nightly-reports');

    await find('harbour opens', /Search memories for “harbour opens”/);
    await titled('Memories');
    await page.getByText('The harbour opens at six').first().waitFor();
  });

  test('is dark for those who choose it, and stays so', async () => {
    const { page } = world;
    await world.open('/');
    const isDark = () => page.evaluate('document.documentElement.classList.contains("dark")');

    await page.getByRole('button', { name: /Account/ }).click();
    await page.getByRole('menuitemradio', { name: 'Dark' }).click();
    expect(await isDark()).toBe(true);
    await page.reload();
    await titled('Overview');

    expect(await isDark()).toBe(true);
    await page.evaluate('localStorage.clear()');
  });

  test('shows a note for an unknown page or resource, and keeps its menu', async () => {
    const { page } = world;
    expected = /status of 404/;
    await world.load('/nowhere');
    await titled('Not found');
    await page.getByRole('link', { name: 'Jobs' }).waitFor();

    await world.open('/jobs/01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11');
    await page.getByText('Job not found').first().waitFor();
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);

    await world.platform.run(world.key, 'util/v1.0/echo', { text: 'one' });
    await world.open('/jobs?page=9');
    await page.getByText('There is no page 9').waitFor();
    await page.getByRole('button', { name: 'Go to the last page' }).click();
    await page.getByText('1–1 of 1').waitFor();
  });

  test('moves the focus to the page that the palette opened', async () => {
    const { page } = world;
    await world.open('/');

    await find('memories', /Memories/);
    await titled('Memories');

    await waitFor(
      async () => (await page.evaluate('document.activeElement.textContent')) === 'Memories',
      { describe: 'the heading has the focus' },
    );
  });

  test('shows that the platform cannot be reached, keeps its data, and recovers', async () => {
    const { page } = world;
    expected = /ERR_FAILED/;
    await world.open('/skills');
    await page.getByRole('link', { name: 'Word count' }).waitFor();
    await page.route(/\/(api|admin|health)/, (route) => route.abort());

    await page.getByText(/The platform cannot be reached/).waitFor();
    await page.getByRole('link', { name: 'Word count' }).waitFor();
    await page.unroute(/\/(api|admin|health)/);

    await page.getByText(/The platform cannot be reached/).waitFor({ state: 'detached' });
  });

  test('loads the code of a page that could not be loaded once the platform is back', async () => {
    const { page } = world;
    expected = /ERR_FAILED/;
    // Loaded anew: a page that was visited before has its code.
    await world.load('/');
    const away = /\/(api|admin|health|console\/assets)/;
    await page.route(away, (route) => route.abort());

    await page.getByRole('link', { name: 'Skills', exact: true }).click();
    // The charts of the overview may be without their code, too: theirs is not the message meant here.
    await titled('Not loaded');
    await page.getByText(/could not be loaded; trying again/).waitFor();
    await page.getByText(/The platform cannot be reached/).waitFor();
    await page.evaluate('window.isSamePage = true');
    await page.unroute(away);

    await titled('Skills');
    await page.getByRole('link', { name: 'Word count' }).waitFor();
    expect(await page.evaluate('window.isSamePage')).toBe(true);
  });

  test('asks for a sign-in after the key was revoked', async () => {
    const { page, platform } = world;
    expected = /status of 401/;
    const { id, plaintext_key } = (
      await platform.admin('POST', '/admin/api-keys', { client_name: 'brief', scopes: ['*'] })
    ).body;
    await world.signInAs(plaintext_key);

    await platform.admin('DELETE', `/admin/api-keys/${id}`);

    // The overview asks by itself, and is refused.
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
  });

  describe('on a phone', () => {
    beforeEach(() => world.page.setViewportSize(phone));
    afterEach(() => world.page.setViewportSize({ width: 1280, height: 800 }));

    test('has its menu behind a button, and closes it after navigation', async () => {
      const { page } = world;
      await world.open('/');

      await page.getByRole('button', { name: 'Menu' }).click();
      await page.getByRole('link', { name: 'Jobs' }).click();
      await titled('Jobs');

      await waitFor(async () => (await dialogOf(page).count()) === 0, {
        describe: 'the menu is closed',
      });
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
        phone.width,
      );
    });
  });
});
