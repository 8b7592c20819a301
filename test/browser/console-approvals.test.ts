/** Jobs that wait in the console: approvals decided by keyboard and mouse, the timeline, the tree of jobs. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleWorld, desktop, dialogOf, phone, startConsole } from '../support/console.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { dataDirectory, stagedSkills } from '../support/staged.ts';
import { addWaitingJob } from '../support/waiting-job.ts';

describe.skipIf(!(await isInstalled('Chromium')))('in the console', () => {
  let world: ConsoleWorld;
  beforeAll(async () => {
    // What it shows is written into its database.
    const catalog = join(import.meta.dirname, '../../src/core/skills/catalog');
    const [, staged = ''] = stagedSkills;
    world = await startConsole({ stores: 'embedded', skillsDirs: [catalog, staged] });
  });
  afterAll(() => world.stop());

  const approval = async (id: string) =>
    (await world.platform.request('GET', `/api/approvals/${id}`, { key: world.key })).body;
  const decide = (id: string, verb: string, reason: string) =>
    world.platform.request('POST', `/api/approvals/${id}/${verb}`, {
      key: world.key,
      body: { reason },
    });
  const focused = () => world.page.evaluate('document.activeElement.getAttribute("aria-label")');

  test('approvals are gone through and decided with the keyboard alone', async () => {
    const { page } = world;
    const first = await addWaitingJob(world, { title: 'Ship order 1?', children: 0 });
    const second = await addWaitingJob(world, { title: 'Ship order 2?', children: 0 });
    await world.open('/approvals');
    await page.getByRole('link', { name: 'Approvals 2 pending' }).waitFor();
    const articles = page.getByRole('feed', { name: 'Approvals' }).getByRole('article');
    expect(await articles.first().textContent()).toMatch(/customer.*name.*Ms\. Okafor/);
    expect(await articles.first().textContent()).not.toContain('{');
    expect(await world.faultsInBoth()).toEqual([]);

    await articles.first().focus();
    await page.keyboard.press('j');
    expect(await focused()).toBe('Ship order 1?');
    await page.keyboard.press('k');
    expect(await focused()).toBe('Ship order 2?');

    await page.keyboard.press('r');
    await dialogOf(page).waitFor();
    await page.keyboard.press('Escape');
    await dialogOf(page).waitFor({ state: 'detached' });
    expect(await focused()).toBe('Ship order 2?');
    expect((await approval(second.approvalId)).status).toBe('pending');

    await page.keyboard.press('a');
    await dialogOf(page).getByText('Ship order 2?').waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('TEXTAREA');
    expect(await world.faultsInBoth()).toEqual([]);
    await page.keyboard.type('Paid, and in stock');
    await page.keyboard.press('Control+Enter');
    await articles.filter({ hasText: 'Ship order 2?' }).waitFor({ state: 'detached' });
    await expect.poll(focused).toBe('Ship order 1?');
    expect(await approval(second.approvalId)).toMatchObject({
      status: 'approved',
      reason: 'Paid, and in stock',
      decided_by: { kind: 'console' },
    });

    await page.keyboard.press('r');
    await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('TEXTAREA');
    await page.keyboard.type('Out of stock');
    await page.keyboard.press('Control+Enter');
    await page.getByText('Nothing to decide').waitFor();
    expect(await approval(first.approvalId)).toMatchObject({ status: 'rejected' });

    await page.getByLabel('Status').selectOption('rejected');
    await articles.getByText('Out of stock').waitFor();
    await articles.getByText(/by Administrator.*in the console, session/).waitFor();
    await expect.poll(() => new URL(page.url()).search).toBe('?status=rejected');
    expect(world.errors).toEqual([]);
  });

  test('a run that asks is approved on the page of its job, goes on, and is shown as completed', async () => {
    const { page, platform, key } = world;
    const asks = { title: 'Send the parcel?', details: { to: 'Bergen' }, timeout: '7d' };
    const { body } = await platform.request('POST', '/api/staged/v1.0/asks-person', {
      key,
      body: { asks, log: join(dataDirectory(), 'log') },
    });
    await platform.jobIn(key, body.job_id, 'waiting');
    await world.open(`/jobs/${body.job_id}`);
    const pending = page.getByRole('list', { name: 'Pending approvals' });
    await pending.getByText(asks.title).waitFor();

    await pending.getByRole('button', { name: 'Approve' }).click();
    await dialogOf(page).getByLabel('Reason').fill('It is paid.');
    await dialogOf(page).getByRole('button', { name: 'Approve' }).click();

    await pending.waitFor({ state: 'detached' });
    // The page hears of the end of the job by itself.
    await page.getByRole('row', { name: /Completed/ }).waitFor();
    const { body: job } = await platform.jobIn(key, body.job_id, 'completed');
    expect(job.attempt).toBe(1);
    expect(JSON.stringify(job.output)).toContain('It is paid.');
    expect(world.errors).toEqual([]);
  });

  test('the form of an approval is filled in with its controls, and the run gets the answer', async () => {
    const { page, platform, key } = world;
    const fields = {
      type: 'object',
      properties: {
        name: { type: 'string', title: 'Receiver', description: 'As on the parcel.' },
        parcels: { type: 'integer', title: 'Parcels', minimum: 1, default: 1 },
        fragile: { type: 'boolean', title: 'Fragile', default: false },
        size: { type: 'string', title: 'Size', enum: ['s', 'l'], enumNames: ['Small', 'Large'] },
        way: { type: 'string', title: 'Way', oneOf: [{ const: 'rail', title: 'By rail' }] },
      },
      required: ['name', 'way'],
    };
    const asks = { title: 'How shall it be sent?', fields, timeout: '7d' };
    const { body } = await platform.request('POST', '/api/staged/v1.0/asks-person', {
      key,
      body: { asks, log: join(dataDirectory(), 'log') },
    });
    await platform.jobIn(key, body.job_id, 'waiting');
    await world.open(`/jobs/${body.job_id}`);
    const pending = page.getByRole('list', { name: 'Pending approvals' });
    await pending.getByText('To be filled in: Receiver, Parcels, Fragile, Size, Way').waitFor();
    await pending.getByRole('button', { name: 'Approve' }).click();
    const dialog = dialogOf(page);
    await dialog.getByLabel('Parcels').fill('0');
    await dialog.getByLabel('Size').selectOption('Large');
    await dialog.getByLabel('Way').selectOption('By rail');
    await dialog.getByLabel('Fragile').selectOption('Yes');
    expect(await world.faultsInBoth()).toEqual([]);
    await dialog.getByRole('button', { name: 'Approve' }).click();
    await dialog.getByText('is required').waitFor();
    await dialog.getByText('must be >= 1').waitFor();
    await dialog.getByLabel('Receiver').fill('Ms. Okafor');
    await dialog.getByLabel('Parcels').fill('2');
    await dialog.getByRole('button', { name: 'Approve' }).click();
    const { body: job } = await platform.jobIn(key, body.job_id, 'completed');
    const answer = { name: 'Ms. Okafor', parcels: 2, fragile: true, size: 'l', way: 'rail' };
    expect(job.output).toMatchObject({ approved: true, answer });
    await world.open('/approvals?status=approved');
    await page.getByText('Ms. Okafor').first().waitFor();
    // The browser tells of the refusal.
    expect(world.errors.splice(0)).toEqual([expect.stringContaining('400')]);
  });

  test('a second decision is refused, and the dialog says so', async () => {
    const { page } = world;
    const { approvalId } = await addWaitingJob(world, { title: 'Refund 40 EUR?', children: 0 });
    await world.open(`/approvals/${approvalId}`);
    await page.getByRole('button', { name: 'Reject' }).click();
    await decide(approvalId, 'approve', 'A colleague was faster');

    await dialogOf(page).getByRole('button', { name: 'Reject' }).click();
    await dialogOf(page).getByRole('alert').waitFor();
    await page.keyboard.press('Escape');

    await page.getByText('A colleague was faster').waitFor();
    expect((await approval(approvalId)).status).toBe('approved');
    // The browser tells of each refusal of a request.
    expect(world.errors.splice(0)).toEqual([expect.stringContaining('409')]);
  });

  test('the page of a waiting job says what it waits for, and an approval is decided there', async () => {
    const { page } = world;
    const { jobId, approvalId } = await addWaitingJob(world);
    await world.open(`/jobs/${jobId}`);
    const waits = page.getByRole('list', { name: 'What the job waits for' });
    await waits.getByText(/waits for parcel.scanned \(1042\) until 2/).waitFor();
    await waits.getByText(/sleeps until 2/).waitFor();

    const timeline = page.getByRole('table', { name: 'Timeline of the job' });
    await timeline.getByRole('row', { name: /^parcel .*waits for parcel.scanned/ }).waitFor();
    await timeline.getByRole('row', { name: /^payment .*the event came/ }).waitFor();
    await timeline.getByRole('row', { name: /^Attempt 1 .*waiting/ }).waitFor();
    await page.getByText(/Not to scale where it is hatched/).waitFor();
    const bar = timeline
      .getByRole('row', { name: /^pack / })
      .locator('td span.absolute')
      .first();
    // The bars have their widths once the folded stretches are known.
    await expect.poll(async () => (await bar.boundingBox())?.width).toBeGreaterThan(40);
    await timeline.getByRole('button', { name: 'label', exact: true }).click();
    await page.getByRole('definition').getByRole('link', { name: 'util/v1.0/echo' }).waitFor();
    await timeline.getByRole('button', { name: 'ship', exact: true }).click();
    await page.getByRole('definition').getByRole('link', { name: 'decide' }).waitFor();
    expect(await world.faultsInBoth()).toEqual([]);

    const pending = page.getByRole('list', { name: 'Pending approvals' });
    await pending.getByRole('button', { name: 'Approve' }).click();
    await dialogOf(page).getByRole('button', { name: 'Approve' }).click();
    await pending.waitFor({ state: 'detached' });
    expect((await approval(approvalId)).status).toBe('approved');
    expect(world.errors).toEqual([]);
  });

  test('a waiting job is found by its status, and cancelled', async () => {
    const { page } = world;
    const { jobId } = await addWaitingJob(world, { children: 0 });
    await world.open('/jobs?status=waiting');
    const rows = page.getByRole('table', { name: 'Jobs, newest first' }).getByRole('row');
    await rows.filter({ hasText: 'waiting' }).first().waitFor();

    await world.open(`/jobs/${jobId}`);
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await dialogOf(page, 'alertdialog').getByText('It will not go on').waitFor();
    await page.getByRole('button', { name: 'Cancel the job' }).click();
    await page.getByRole('row', { name: /Cancelled/ }).waitFor();
    expect(world.errors).toEqual([]);
  });

  test('the jobs that a job started are a tree in pages, and each leads to its parent', async () => {
    const { page } = world;
    const { jobId, childIds } = await addWaitingJob(world, { children: 23 });
    await world.open(`/jobs/${jobId}`);
    const tree = page.getByRole('list', { name: 'Jobs that it started' });
    await expect.poll(() => tree.getByRole('listitem').count()).toBe(20);
    await page.getByRole('button', { name: 'Next page' }).click();
    await expect.poll(() => tree.getByRole('listitem').count()).toBe(3);
    await page.getByRole('button', { name: 'Previous page' }).click();
    await expect.poll(() => tree.getByRole('listitem').count()).toBe(20);
    await tree
      .getByRole('button', { name: /^Jobs that/ })
      .first()
      .click();
    await tree.getByText('It started no jobs.').waitFor();
    expect(await world.faultsInBoth()).toEqual([]);

    await tree.getByRole('link').first().click();
    await page.waitForURL(new RegExp(`/jobs/${childIds[0]}`));
    await page.getByRole('link', { name: 'Parent job' }).click();
    await page.waitForURL(new RegExp(`/jobs/${jobId}`));
    expect(world.errors).toEqual([]);
  });

  test('a trigger is made whose calls are events for runs that wait', async () => {
    const { page, platform, key } = world;
    await world.open('/triggers');
    await page.getByRole('button', { name: 'New trigger' }).first().click();
    await page.getByLabel('Name').fill('Payments');
    await page.getByRole('button', { name: 'Sends an event' }).click();
    await page.getByLabel('Event', { exact: true }).fill('order.paid');
    await page.getByLabel('Key (optional)').fill('body.order_id');
    expect(await world.faultsInBoth()).toEqual([]);
    await page.getByRole('button', { name: 'Create trigger' }).click();
    await dialogOf(page).getByText('Trigger created').waitFor();

    const { body } = await platform.request('GET', '/api/agent-triggers', { key });
    expect(body.data[0].event).toEqual({ name: 'order.paid', key_mapping: 'body.order_id' });
    await world.open(`/triggers/${body.data[0].id}`);
    await page.getByRole('definition').getByText('order.paid').waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    expect(await page.getByLabel('Event', { exact: true }).inputValue()).toBe('order.paid');
    expect(world.errors).toEqual([]);
  });

  test('approvals and a waiting job fit a phone', async () => {
    const { page } = world;
    const title = 'Send '.repeat(39);
    const { jobId, approvalId } = await addWaitingJob(world, { title });
    await page.setViewportSize(phone);
    for (const place of ['/approvals', `/approvals/${approvalId}`, `/jobs/${jobId}`]) {
      await world.open(place);
      await page.getByRole('button', { name: 'Approve' }).first().waitFor();
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect(width, place).toBeLessThanOrEqual(phone.width);
    }
    await page.setViewportSize(desktop);
  });
});
