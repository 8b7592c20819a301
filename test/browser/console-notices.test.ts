/** The console beside its pages: addresses, the keys of forms, what it says of the connection, and its messages. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { allSkills, runCounters } from '../../src/platform/statistics/statistics.store.ts';
import { type ConsoleWorld, desktop, dialogOf, phone, startConsole } from '../support/console.ts';
import { isInstalled } from '../support/shared-servers.ts';

describe.skipIf(!(await isInstalled('Chromium')))('the console', () => {
  let world: ConsoleWorld;
  beforeAll(async () => {
    world = await startConsole({ stores: 'embedded' });
  });
  afterAll(() => world.stop());
  afterEach(async () => {
    await world.page.unrouteAll({ behavior: 'ignoreErrors' });
    await world.page.context().setOffline(false);
    await world.page.setViewportSize(desktop);
  });

  test.each(['/jobs', '/approvals', '/conversations', '/memories', '/agents/default', '/nowhere'])(
    '%s removes from its address what it does not know',
    async (place) => {
      const { page } = world;

      await world.load(`${place}?x=y&constructor=1&page=2.5`);

      await expect.poll(() => new URL(page.url()).search).toBe('');
      await page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached' });
      expect(await page.getByRole('alert').count()).toBe(0);
      expect(world.errors).toEqual([]);
    },
  );

  test('a filter in an address is the text that stands there, also where it looks like a number', async () => {
    const { page } = world;
    const asked = page.waitForRequest(/\/api\/jobs\?.*user_id=1e3/);

    await world.load('/jobs?user_id=1e3&x=y');

    await asked;
    await page.getByTitle('1e3').waitFor();
    expect(new URL(page.url()).search).toBe('?user_id=1e3');
    expect(world.errors).toEqual([]);
  });

  test('Ctrl Enter submits a form from a field with several lines', async () => {
    const { page } = world;
    await world.open('/memories');
    await page.getByRole('button', { name: 'New memory' }).click();
    await dialogOf(page).getByLabel('Content').fill('The harbour opens at six');
    await page.keyboard.press('Control+Enter');
    await dialogOf(page).waitFor({ state: 'detached' });
    await page.getByText('The harbour opens at six').waitFor();

    await world.open('/agents/default?tab=settings');
    const saved = page.waitForResponse((answer) => answer.request().method() === 'PUT');
    await page.getByLabel('Instructions (optional)').fill('Be brief.\nBe kind.');
    await page.keyboard.press('Control+Enter');
    expect((await saved).status()).toBe(200);
    await page.getByText('A change counts from the next call').waitFor();
    expect(world.errors).toEqual([]);
  });

  test('a device that goes offline is a notice, forms say so, and all goes on afterwards', async () => {
    const { page } = world;
    await world.open('/memories');
    await page.getByRole('button', { name: 'New memory' }).click();
    await dialogOf(page).getByLabel('Content').fill('Kept over an outage');

    await page.context().setOffline(true);

    const notice = page.getByText('This device is offline. The platform cannot be reached');
    await notice.waitFor();
    await dialogOf(page).getByRole('button', { name: 'Add memory' }).click();
    await dialogOf(page).getByText('The platform cannot be reached').waitFor();
    await page.context().setOffline(false);
    await notice.waitFor({ state: 'detached' });
    await dialogOf(page).getByRole('button', { name: 'Add memory' }).click();
    await dialogOf(page).waitFor({ state: 'detached' });
    await page.getByText('Kept over an outage').waitFor();
    expect(world.errors.splice(0).join()).toMatch(/^.*ERR_INTERNET_DISCONNECTED/);
  });

  test('a platform that takes requests and answers none is a notice, too', async () => {
    const { page } = world;
    await world.open('/skills');

    await page.route(/\/health$/, () => undefined);

    await page.getByText('The platform cannot be reached').waitFor();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.getByText('The platform cannot be reached').waitFor({ state: 'detached' });
    expect(world.errors).toEqual([]);
  });

  test.each([
    ['a wide window', desktop],
    ['a phone', phone],
  ])('a message leaves the facts of the page in sight in %s', async (_, size) => {
    const { page, platform, key } = world;
    const { body } = await platform.request('POST', '/api/util/v1.0/wait', {
      key,
      body: { ms: 60_000 },
    });
    await platform.jobIn(key, body.job_id, 'active');
    await page.setViewportSize(size);
    await world.load(`/jobs/${body.job_id}`);
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Cancel the job' }).click();

    const { message, ...others } = await boxes();
    expect(areApart(message, others.title)).toBe(true);
    expect(areApart(message, others.facts)).toBe(true);
    expect(size === phone || areApart(message, others.page)).toBe(true);
    expect(world.errors).toEqual([]);
  });

  test('the tiles of the overview show large numbers of tokens and their cost whole', async () => {
    const { page, platform } = world;
    const run = {
      ...{ organization_id: 'default', seconds: 60, ...allSkills },
      start: Math.floor(Date.now() / 60_000) * 60_000 - 60_000,
      ...{ accepted: 1_234_567, completed: 1_234_567, failed: 0, cancelled: 0 },
      ...{ duration_ms: 1_234_567, longest_ms: 5 },
      ...{ prompt_tokens: 1_234_567_890, completion_tokens: 987_654_321, cost: 123_456_789_000 },
      ...{ unreported_calls: 0, unpriced_calls: 1 },
    };
    await platform.database.write((tx) => runCounters.add(tx, [run]));
    for (const width of [1440, 1280, 1024, 800, 390]) {
      await page.setViewportSize({ width, height: 800 });
      await world.load('/');
      const tiles = page.getByRole('main').getByRole('list').first().getByRole('listitem');
      await tiles.last().getByText('$').waitFor();

      expect(await tiles.last().innerText()).toMatch(/2\.2B.*1\.2B in, 987\.7M out.*\$/s);
      await expect.poll(overflowing, { message: `${width} pixels` }).toEqual([]);
    }
    expect(world.errors).toEqual([]);
  });

  /** The texts of the tiles that are wider than their place. */
  const overflowing = (): Promise<string[]> =>
    world.page.evaluate(`
      [...document.querySelector('main ul').querySelectorAll('span')]
        .filter((one) => one.clientWidth > 0 && one.scrollWidth > one.clientWidth)
        .map((one) => one.textContent)
    `);

  /** Where the message and what is around it are, read at once: the message is there for some seconds. */
  async function boxes(): Promise<Record<'message' | 'title' | 'facts' | 'page', Box>> {
    const found = await world.page.waitForFunction(`(() => {
      const message = document.querySelector('[role="dialog"][aria-modal="false"]');
      const boxOf = (one) => one.getBoundingClientRect().toJSON();
      const [title, facts, page] = ['h1', 'dl', 'main'].map((name) => boxOf(document.querySelector(name)));
      return message && { message: boxOf(message), title, facts, page };
    })()`);
    return (await found.jsonValue()) as Record<'message' | 'title' | 'facts' | 'page', Box>;
  }

  const areApart = (one: Box, other: Box): boolean =>
    one.right <= other.left ||
    other.right <= one.left ||
    one.bottom <= other.top ||
    other.bottom <= one.top;
});

type Box = Readonly<Record<'left' | 'right' | 'top' | 'bottom', number>>;
