/** The page of the queue, and what changes all jobs of a list. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ConsoleWorld, desktop, dialogOf, phone, startConsole } from '../support/console.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { acting, gate, play, stagedSkills } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';

const folder = process.env['SCREENSHOTS'];
if (folder !== undefined) mkdirSync(folder, { recursive: true });
const later = { 'x-delay-seconds': '3600' };
const echo = 'util/v1.0/echo';

describe.skipIf(!(await isInstalled('Chromium')))('in the console', () => {
  let world: ConsoleWorld;
  beforeAll(async () => {
    world = await startConsole({
      skillsDirs: stagedSkills,
      environment: { WORKER_CONCURRENCY: '1' },
      stores: 'embedded',
    });
  });
  afterAll(() => world.stop());
  beforeEach(async () => {
    await world.leaveSession();
    world.errors.length = 0;
  });

  /** Light and dark, wide and narrow: no fault, and nothing wider than the window. */
  async function expectFine(name: string) {
    const { page } = world;
    for (const [size, viewport] of [
      ['desktop', { width: 1_440, height: 900 }],
      ['phone', phone],
    ] as const) {
      await page.setViewportSize(viewport);
      for (const scheme of ['dark', 'light'] as const) {
        await world.shown(scheme);
        const path = `${name}-${size}-${scheme}.png`;
        if (folder !== undefined) await page.screenshot({ path: join(folder, path) });
      }
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
        viewport.width,
      );
    }
    await page.setViewportSize(desktop);
    expect(await world.faultsInBoth()).toEqual([]);
  }

  test('the queue says why jobs wait, of all organizations and of one, and a key sees its own alone', async () => {
    const { page, platform } = world;
    const [loud, quiet] = [await newTenant(platform), await newTenant(platform)];
    const { path, open } = gate();
    const running = await loud.start(play, acting({ until: path }));
    await loud.jobIn(running, 'active');
    for (let i = 0; i < 3; i++) await quiet.start(echo, { text: 'x' });
    await quiet.start(echo, { text: 'x' }, later);

    await world.open('/queue');
    const verdict = page.getByRole('region', { name: 'Why jobs wait' });
    await verdict.getByText('3 jobs wait').waitFor();
    await verdict
      .getByText(`The one slot of 1 worker process is taken. Under way: ${loud.organization} 1.`)
      .waitFor();
    const organizations = page.getByRole('table', { name: 'By organization' });
    const row = organizations.getByRole('row').filter({ hasText: quiet.organization });
    await row.getByText('The one slot is taken, none by its own runs.').waitFor();
    await expectFine('queue-slow');

    await page.getByRole('button', { name: 'default', exact: true }).click();
    await verdict.getByText('Nothing waits for a slot.').waitFor();
    expect(new URL(page.url()).search).toBe('?of=own');

    await world.leaveSession();
    await world.signInAs(quiet.key);
    await world.open('/queue');
    await verdict.getByText('Jobs of this organization wait for their turn').waitFor();
    expect(await page.getByRole('group', { name: 'Whose jobs' }).count()).toBe(0);
    expect(await page.locator('body').innerText()).not.toContain(loud.organization);
    await expectFine('queue-own-slow');
    open();
    await verdict.getByText('Nothing waits for a slot.').waitFor();
    await page.getByRole('table', { name: 'By skill' }).getByText(echo).click();
    await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor();
    expect(new URL(page.url()).search).toContain('status=queued');
    expect(world.errors).toEqual([]);
  });

  test('a run that is started here has the chosen priority, and so has its command', async () => {
    const { page, platform } = world;
    const tenant = await newTenant(platform);
    await world.signInAs(tenant.key);
    await world.open('/skills/util/v1.0/echo?tab=run');

    await page.getByLabel('Priority').selectOption('high');
    await page.getByText("-H 'x-priority: high'").waitFor();
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    const list = async () => (await tenant.get('/api/jobs')).body;
    await expect.poll(async () => (await list()).total).toBe(1);

    const [{ job_id: jobId }] = (await list()).data;
    expect((await tenant.jobIn(jobId, 'completed')).body.priority).toBe('high');
    await expectFine('run-form');
    expect(world.errors).toEqual([]);
  });

  test('a job that a pause holds says so on its page, and in the queue', async () => {
    const { page, platform } = world;
    const tenant = await newTenant(platform);
    const path = `/admin/organizations/${tenant.organization}`;
    await platform.admin('POST', `${path}/pause`);
    const jobId = await tenant.start(echo, { text: 'x' });
    await expect
      .poll(async () => (await tenant.get(`/api/jobs/${jobId}`)).body.waiting_for)
      .toBe('pause of organization');

    await world.signInAs(tenant.key);
    await world.open(`/jobs/${jobId}`);
    await page.getByText('pause of organization', { exact: true }).waitFor();
    await world.open('/queue');
    const verdict = page.getByRole('region', { name: 'Why jobs wait' });
    await verdict
      .getByText(
        `1 job waits for the end of a pause: pause of organization ${tenant.organization}.`,
      )
      .waitFor();
    await platform.admin('POST', `${path}/resume`);
    await verdict.getByText('Nothing waits for a slot.').waitFor();

    await tenant.jobIn(jobId, 'completed');
    expect(world.errors).toEqual([]);
  });

  test('a count of none that was cut is no statement that nothing waits', async () => {
    const { page } = world;
    await page.route('**/admin/queue', async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      for (const queue of json.queues) Object.assign(queue, { waiting: 0, at_least: true });
      await route.fulfill({ response, json });
    });
    try {
      await world.open('/queue');
      const verdict = page.getByRole('region', { name: 'Why jobs wait' });
      await verdict.getByText('how many wait for a slot was not counted').waitFor();
      expect(await page.getByText('0+', { exact: true }).count()).toBeGreaterThan(0);
    } finally {
      await page.unrouteAll();
    }
    expect(world.errors).toEqual([]);
  });

  test('the administrator ends a pause where the queue names it', async () => {
    const { page, platform } = world;
    const tenant = await newTenant(platform);
    await platform.admin('POST', `/admin/organizations/${tenant.organization}/pause`);
    const jobId = await tenant.start(echo, { text: 'x' });
    await world.open('/queue');
    const verdict = page.getByRole('region', { name: 'Why jobs wait' });
    const reason = verdict.getByRole('listitem').filter({ hasText: tenant.organization });
    const waiting = reason.getByRole('link', { name: 'Waiting jobs' });
    expect(await waiting.getAttribute('href')).toBe(
      `/console/o/${tenant.organization}/jobs?status=queued`,
    );
    await reason.getByRole('button', { name: 'Resume' }).click();
    await verdict.getByText('Nothing waits for a slot.').waitFor();
    await tenant.jobIn(jobId, 'completed');
    expect(world.errors).toEqual([]);
  });

  test('all jobs of a list are cancelled, after their count is shown', async () => {
    const { page, platform } = world;
    const tenant = await newTenant(platform);
    for (let i = 0; i < 60; i++) await tenant.start(echo, { text: 'x' }, later);
    await world.signInAs(tenant.key);
    await world.open('/jobs');
    await page.getByRole('table', { name: 'Jobs, newest first' }).waitFor();
    expect(await page.getByRole('button', { name: 'Cancel all' }).count()).toBe(0);

    await page.getByLabel('Status').selectOption('queued');
    await page.getByRole('button', { name: 'Cancel all' }).click();
    const dialog = dialogOf(page);
    await dialog.getByText('60 jobs of this list have not ended.').waitFor();
    await expectFine('many-jobs');
    expect((await tenant.get('/api/jobs?status=queued')).body.total).toBe(60);
    await dialog.getByRole('button', { name: 'Cancel 60 jobs' }).click();
    await dialog.getByText('60 cancelled.').waitFor();
    expect((await tenant.get('/api/jobs?status=cancelled')).body.total).toBe(60);
    await expectFine('many-jobs-done');
    await dialog.getByRole('button', { name: 'Close' }).last().click();
    await page.getByText('No matching jobs').waitFor();
    expect(world.errors).toEqual([]);
  });

  test('the weight of an organization is set in the list of all, and on its own queue', async () => {
    const { page, platform } = world;
    const tenant = await newTenant(platform);
    await tenant.start(echo, { text: 'x' }, later);
    const weight = async () =>
      (await platform.admin('GET', `/admin/organizations/${tenant.organization}/weight`)).body
        .weight;

    await world.open('/queue');
    await page.getByLabel(`What can be done with ${tenant.organization}`).click();
    await page.getByRole('menuitem', { name: 'Weight' }).click();
    const dialog = dialogOf(page);
    await dialog.getByText(`Weight of ${tenant.organization}`).waitFor();
    await expect.poll(() => dialog.getByLabel('Weight').inputValue()).toBe('1');
    await expectFine('queue-weight');
    await dialog.getByLabel('Weight').fill('101');
    await dialog.getByRole('button', { name: 'Save the weight' }).click();
    await dialog.getByRole('alert').waitFor();
    expect(await weight()).toBe(1);
    await dialog.getByLabel('Weight').fill('3');
    await dialog.getByRole('button', { name: 'Save the weight' }).click();
    await dialog.waitFor({ state: 'hidden' });
    expect(await weight()).toBe(3);

    const own = page.getByRole('group', { name: 'Whose jobs' }).getByRole('button').last();
    const name = await own.textContent();
    await own.click();
    await page.getByRole('button', { name: 'Weight', exact: true }).click();
    await dialog.getByText(`Weight of ${name}`).waitFor();
    await expect.poll(() => dialog.getByLabel('Weight').inputValue()).toBe('1');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect(world.errors.filter((one) => !one.includes('400'))).toEqual([]);
  });

  test.each([
    ['Limit', 'Save the limit', 'queue'],
    ['Weight', 'Save the weight', 'weight'],
  ])('%s cannot be saved before what is set was read', async (item, verb, path) => {
    const { page, platform } = world;
    const tenant = await newTenant(platform);
    await tenant.start(echo, { text: 'x' }, later);
    const address = `**/admin/organizations/${tenant.organization}/${path}`;
    const sent: string[] = [];
    await page.route(address, (route) => {
      sent.push(route.request().method());
      const body = JSON.stringify({ error: 'forbidden', message: 'It cannot be read' });
      return route.fulfill({ status: 403, contentType: 'application/json', body });
    });

    await world.open('/queue');
    await page.getByLabel(`What can be done with ${tenant.organization}`).click();
    await page.getByRole('menuitem', { name: item }).click();
    const dialog = dialogOf(page);
    await dialog.getByText('It cannot be read').waitFor();

    expect(await dialog.getByRole('button', { name: verb }).isDisabled()).toBe(true);
    await dialog.getByRole('button', { name: 'Cancel' }).press('Control+Enter');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect(sent).not.toContain('PUT');
    await page.unroute(address);
  });

  test('where the limit of requests is reached, a change of all jobs waits for as long as it is told, or is stopped', async () => {
    const { page, platform } = world;
    const tenant = await newTenant(platform);
    for (let i = 0; i < 3; i++) await tenant.start(echo, { text: 'x' }, later);
    await world.signInAs(tenant.key);
    await world.open('/jobs?status=queued');
    let retryAfter = '600';
    let refused = 0;
    await page.route('**/api/jobs/cancel', async (route) => {
      const isCount = route.request().postData()?.includes('dry_run') === true;
      if (isCount || retryAfter === '') return route.continue();
      refused += 1;
      const body = JSON.stringify({ error: 'rate_limit_exceeded', message: 'Too many' });
      const headers = { 'retry-after': retryAfter, 'content-type': 'application/json' };
      if (retryAfter === '1') retryAfter = '';
      return route.fulfill({ status: 429, headers, body });
    });
    const dialog = dialogOf(page);
    const cancelAll = async () => {
      await page.getByRole('button', { name: 'Cancel all' }).click();
      await dialog.getByRole('button', { name: 'Cancel 3 jobs' }).click();
    };

    await cancelAll();
    await dialog.getByText('It goes on in 600 s.').waitFor();
    await dialog.getByText('0 cancelled, 3 left.').waitFor();
    await expectFine('many-jobs-paused');
    await dialog.getByRole('button', { name: 'Stop' }).click();
    await dialog.waitFor({ state: 'hidden' });
    expect((await tenant.get('/api/jobs?status=queued')).body.total).toBe(3);

    retryAfter = '1';
    await cancelAll();
    await dialog.getByText('3 cancelled.').waitFor();

    expect(refused).toBe(2);
    expect((await tenant.get('/api/jobs?status=cancelled')).body.total).toBe(3);
    await page.unroute('**/api/jobs/cancel');
    expect(world.errors.filter((one) => !one.includes('429'))).toEqual([]);
  });

  test('failed jobs of a list run again, and those that may not are counted by their reason', async () => {
    const { page, platform } = world;
    const owner = await newTenant(platform);
    const { key } = await newTenant(platform, {
      organization_id: owner.organization,
      scopes: ['util'],
    });
    await owner.run(play, acting({ fail: { message: 'no', retryable: false } }));
    await owner.run('util/v1.0/wait', { ms: 5 }, { 'x-agent-id': 'default' });
    await world.signInAs(key);
    await world.open('/jobs?status=failed');

    await page.getByRole('button', { name: 'Retry all' }).click();
    const dialog = dialogOf(page);
    await dialog.getByRole('button', { name: 'Retry 1 job', exact: true }).click();
    await dialog.getByText('1 refused with insufficient_scope').waitFor();
    expect((await owner.get('/api/jobs')).body.total).toBe(2);
    await dialog.getByRole('button', { name: 'Close' }).last().click();

    await world.open(`/jobs?status=failed&skill=${encodeURIComponent(play)}`);
    await page.getByText('A retry needs the scope staged, which your API key lacks.').waitFor();
    expect(await page.getByRole('button', { name: 'Retry all' }).count()).toBe(0);
    expect(world.errors).toEqual([]);
  });
});
