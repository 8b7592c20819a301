/** Schedules, webhooks and triggers in the console. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleWorld, desktop, dialogOf, startConsole } from '../support/console.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { receiverAuthority, startTlsReceiver, type TlsReceiver } from '../support/tls-receiver.ts';

/** What browsers say of an answer that refuses; the page shows it in words. */
const refusal = /^Failed to load resource: the server responded with a status of 4/;

describe.skipIf(!(await isInstalled('Chromium')))('the console', () => {
  let world: ConsoleWorld;
  let receiver: TlsReceiver;
  beforeAll(async () => {
    receiver = await startTlsReceiver();
    world = await startConsole({
      environment: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' },
      parts: { webhookEgress: { ca: receiverAuthority } },
    });
    await world.page.setViewportSize(desktop);
  });
  afterAll(async () => {
    await world.stop();
    await receiver.close();
  });
  afterEach(async () => {
    expect(world.errors.filter((error) => !refusal.test(error))).toEqual([]);
    expect(await world.faultsInBoth()).toEqual([]);
  });

  const heading = (name: string | RegExp) =>
    world.page.getByRole('heading', { level: 1, name }).waitFor();
  const button = (name: string | RegExp) => world.page.getByRole('button', { name });
  const dialog = () => dialogOf(world.page);
  const row = (text: string | RegExp) => world.page.getByRole('row').filter({ hasText: text });
  /** Closing a secret that is shown once asks first; it stays until the user confirms that it is saved. */
  async function keepsWhatIsShownOnce() {
    const question = dialogOf(world.page, 'alertdialog');
    await world.page.keyboard.press('Escape');
    await question.getByRole('button', { name: 'Go back' }).click();
    await question.waitFor({ state: 'detached' });
    await world.page.mouse.click(4, 4);
    await question.getByRole('button', { name: 'Go back' }).click();
    await question.waitFor({ state: 'detached' });
    await button('I have copied it').waitFor();
  }
  const told = (text: string) => world.page.getByText(text, { exact: true }).first().waitFor();
  const asked = async (method: string, path: string, body?: unknown) => {
    const { key, platform } = world;
    const answer = await platform.request(method, path, {
      key,
      ...(body === undefined ? {} : { body }),
    });
    expect(answer.status, answer.text).toBeLessThan(300);
    return answer.body;
  };
  const edit = async () => {
    await button('More').click();
    await world.page.getByRole('menuitem', { name: 'Edit' }).click();
  };
  const newSchedule = (cron_expression: string) =>
    asked('POST', '/api/scheduled-jobs', {
      agent_id: 'default',
      skill_category: 'util',
      skill_name: 'echo',
      cron_expression,
      input: { text: 'hello' },
    });
  const newWebhook = (path: string) =>
    asked('POST', '/api/agent-webhooks', {
      agent_id: 'default',
      url: `${receiver.origin}${path}`,
      events: ['skill.failed'],
    });

  describe('on schedules', () => {
    test('creates one, and shows the meaning of its expression in words and times', async () => {
      const { page } = world;
      await world.open('/schedules');
      await page.getByText('No schedules yet').waitFor();

      await button('New schedule').first().click();
      await page.getByLabel('Skill').selectOption('util/v1.0/echo');
      await page.getByLabel('Cron expression').fill('30 6 * * MON-FRI');
      await page.getByLabel('Time zone').fill('Europe/Nowhere');
      await page.getByText('must be a name of the IANA time zone database').waitFor();
      await page.getByLabel('Time zone').fill('Asia/Kolkata');
      await page.getByText('01:00 UTC').first().waitFor();
      await dialog().getByLabel('Priority').selectOption('high');
      await dialog().getByText('At 06:30, Monday through Friday').waitFor();
      await expect.poll(() => dialog().getByRole('listitem').count()).toBe(5);
      const text = dialog().getByLabel('text', { exact: true });
      expect(await text.inputValue()).not.toBe('');
      await text.fill('good morning');
      expect(await world.faultsInBoth()).toEqual([]);
      await page.mouse.click(4, 4);
      await button('Create schedule').click();

      await heading('At 06:30, Monday through Friday');
      const [made] = await asked('GET', '/api/scheduled-jobs');
      const timetable = { cron_expression: '30 6 * * MON-FRI', timezone: 'Asia/Kolkata' };
      expect(made).toMatchObject({ ...timetable, priority: 'high', enabled: true });
      const { input } = await asked('GET', `/api/scheduled-jobs/${made.id}`);
      expect(input).toMatchObject({ text: 'good morning' });
    });

    test('takes its input as JSON too, and shows the skill’s errors at the fields', async () => {
      const { page } = world;
      const { id } = await newSchedule('0 4 1 1 *');
      await world.open(`/schedules/${id}`);
      await edit();
      const json = dialog().getByLabel('Input as JSON');
      const text = dialog().getByLabel('text', { exact: true });
      expect(await text.inputValue()).toBe('hello');

      await button('JSON').click();
      await json.fill('{"text": ');
      await dialog()
        .getByText(/This is not valid JSON/)
        .waitFor();
      await button('Save').click();
      expect(await asked('GET', `/api/scheduled-jobs/${id}`)).toMatchObject({
        input: { text: 'hello' },
      });
      await json.fill('{}');
      await button('Form').click();
      await button('Save').click();
      await dialog().getByRole('alert').first().waitFor();
      expect(await text.getAttribute('aria-invalid')).toBe('true');
      await text.fill('good night');
      await button('Save').click();
      await told('The schedule is changed');

      expect(await asked('GET', `/api/scheduled-jobs/${id}`)).toMatchObject({
        input: { text: 'good night' },
      });
      await page.getByText('good night').first().waitFor();
    });

    test('shows the platform’s error for an expression', async () => {
      const { page } = world;
      await world.open('/schedules');

      await button('New schedule').click();
      await page.getByLabel('Cron expression').fill('0 9 * * FOO');

      await page.getByText('has "FOO" in the field day of week').waitFor();
      await page.getByText('The next five runs appear here').waitFor();
      await page.keyboard.press('Escape');
      await dialog().waitFor({ state: 'detached' });
    });

    test('disables and enables one in the list, and runs it at once', async () => {
      const { page } = world;
      const { id } = await newSchedule('0 3 1 1 *');
      await world.open('/schedules');
      const one = row('0 3 1 1 *');

      await one.getByRole('switch').click();
      await told('The schedule is disabled');
      // By its role, so that a screen reader finds it too.
      await button('Dismiss').first().waitFor();
      expect(await asked('GET', `/api/scheduled-jobs/${id}`)).toMatchObject({ enabled: false });
      await one.getByRole('switch').click();
      await told('The schedule is enabled');
      await one.getByRole('button', { name: 'Run now' }).click();

      await one.getByText('completed').filter({ visible: true }).waitFor();
      await page.getByRole('link', { name: 'At 03:00, on day 1' }).first().click();
      await page.getByRole('link', { name: 'Ran and completed, asked for by hand' }).click();
      await page.waitForURL(/\/jobs\//);
      await page.getByRole('link', { name: 'schedule', exact: true }).click();
      await heading('At 03:00, on day 1 of the month, only in January');
    });

    test('marks each past slot in a calendar with its outcome', async () => {
      const { page, platform } = world;
      const { id } = await newSchedule('0 4 * * *');
      const day = new Date().toISOString().slice(0, 10);
      const slot = Date.parse(`${day}T00:00:00Z`);
      await platform.database.write((tx) =>
        tx.insert('scheduled_runs', [
          {
            id: '019ab0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1',
            organization_id: 'default',
            scheduled_job_id: id,
            slot,
            scheduled_for: slot,
            outcome: 'missed',
            slots: 1,
            message: 'The platform was down',
            job_id: null,
            unwanted: 0,
            ended: 1,
            created_at: slot,
          },
        ]),
      );
      await world.open(`/schedules/${id}`);

      const mark = page.getByRole('button', { name: '00:00 UTC: Missed' });
      await mark.focus();
      await page.getByText('· The platform was down').waitFor();
      await button('By hour').click();

      await page.waitForURL(/view=day/);
      await mark.waitFor();
    });

    test('shows that one cannot run after its key was revoked', async () => {
      const { page, platform } = world;
      const { id: keyId, plaintext_key: key } = (
        await platform.admin('POST', '/admin/api-keys', { client_name: 'gone', scopes: ['*'] })
      ).body;
      const { id } = (
        await platform.request('POST', '/api/scheduled-jobs', {
          key,
          body: {
            agent_id: 'default',
            skill_category: 'util',
            skill_name: 'echo',
            cron_expression: '0 7 1 1 *',
            input: { text: 'hello' },
          },
        })
      ).body;
      await platform.admin('DELETE', `/admin/api-keys/${keyId}`);

      await world.open('/schedules');
      await row('0 7 1 1 *').getByText('cannot run').waitFor();
      expect(await world.faults()).toEqual([]);
      await world.open(`/schedules/${id}`);
      await page.getByText('Its key is revoked or expired').waitFor();

      await asked('DELETE', `/api/scheduled-jobs/${id}`);
      await world.open('/schedules');
    });

    test('changes one and deletes it once it has asked', async () => {
      const { page } = world;
      const { id } = await newSchedule('0 5 1 1 *');
      await world.open(`/schedules/${id}`);

      await edit();
      await page.getByLabel('Cron expression').fill('0 6 1 1 *');
      await button('JSON').click();
      const field = dialog().getByLabel('Input as JSON');
      const input = async () => JSON.parse(await field.inputValue());
      await page.getByLabel('Skill').selectOption('util/v1.0/wait');
      await expect.poll(input).toEqual({ ms: 5 });
      await field.fill('{"ms": 7}');
      await page.getByLabel('Skill').selectOption('text/v1.0/word-count');
      expect(await input()).toEqual({ ms: 7 });
      await page.getByLabel('Skill').selectOption('util/v1.0/wait');
      await button('Save').click();
      await heading(/At 06:00/);
      await button('More').click();
      await page.getByRole('menuitem', { name: 'Delete' }).click();
      await dialogOf(page, 'alertdialog').getByRole('button', { name: 'Delete' }).click();

      await heading('Schedules');
      const all: { id: string }[] = await asked('GET', '/api/scheduled-jobs');
      expect(all.map((one) => one.id)).not.toContain(id);
    });
  });

  describe('on webhooks', () => {
    test('makes one, shows its secret once, and a test that arrives with every attempt', async () => {
      const { page } = world;
      await world.open('/webhooks');
      await page.getByText('No webhooks yet').waitFor();

      await button('New webhook').first().click();
      await page.getByLabel('URL').fill(`${receiver.origin}/made`);
      await button('Create webhook').click();
      await page.getByText(/^whsec_/).waitFor();
      expect(await world.faultsInBoth()).toEqual([]);
      await keepsWhatIsShownOnce();
      await button('I have copied it').click();
      await heading(/\/made$/);
      await page.getByText('untried').waitFor();
      expect(await page.getByText(/whsec_/).count()).toBe(0);
      await button('Send test').click();
      await receiver.receivedWhere(({ path }) => path === '/made');
      await row('test').getByText('delivered').waitFor();
      await page.getByRole('link', { name: 'skill.completed' }).click();

      await dialog().getByText('HTTP 200').waitFor();
      await dialog().getByText('"skill_category"').waitFor();
      await page.waitForURL(/delivery=/);
    });

    test('shows that deliveries are retried, and redelivers one', async () => {
      const { page } = world;
      receiver.answers({ status: 503, body: 'try again later' });
      const { id } = await newWebhook('/down');
      await asked('POST', `/api/agent-webhooks/${id}/test`);
      await world.open(`/webhooks/${id}`);

      await page.getByText('retrying').waitFor();
      await page.getByRole('link', { name: 'skill.failed' }).click();
      await dialog().getByText('try again later').waitFor();
      receiver.answers({ status: 200 });
      await button('Redeliver').click();

      await dialog().getByText('The original delivery').waitFor();
      await dialog().getByText('delivered', { exact: true }).waitFor();
      await page.keyboard.press('Escape');
      await dialog().waitFor({ state: 'detached' });
      await expect.poll(() => page.url()).not.toContain('delivery=');
    });

    test('rotates the secret to one that was made in the browser', async () => {
      const { page } = world;
      const { id } = await newWebhook('/rotated');
      await world.open(`/webhooks/${id}`);

      await button('More').click();
      await page.getByRole('menuitem', { name: 'Rotate secret' }).click();
      await dialog().getByRole('button', { name: 'Rotate secret' }).click();

      await page.getByText(/^whsec_[A-Za-z0-9+/]{43}=$/).waitFor();
      await keepsWhatIsShownOnce();
      await button('I have copied it').click();
      await dialog().waitFor({ state: 'detached' });
      expect(await page.content()).not.toContain('whsec_');
    });

    test('disables one once it has asked, enables and deletes it', async () => {
      const { page } = world;
      const { id } = await newWebhook('/switched');
      await asked('POST', `/api/agent-webhooks/${id}/test`);
      await world.open(`/webhooks/${id}`);

      await button('Disable').click();
      await dialogOf(page, 'alertdialog').getByRole('button', { name: 'Disable' }).click();
      await page.getByText('It is disabled.').waitFor();
      await page.getByRole('link', { name: 'skill.failed' }).click();
      await dialog().getByText('What is sent').waitFor();
      // The platform would refuse it.
      expect(await button('Redeliver').isDisabled()).toBe(true);
      await page.keyboard.press('Escape');
      await dialog().waitFor({ state: 'detached' });
      await button('Enable').click();
      await button('Send test').waitFor();
      await button('More').click();
      await page.getByRole('menuitem', { name: 'Delete' }).click();
      await dialogOf(page, 'alertdialog').getByRole('button', { name: 'Delete' }).click();

      await heading('Webhooks');
      await page.getByText('/switched').waitFor({ state: 'detached' });
    });
  });

  describe('on triggers', () => {
    test('makes one, shows its url once, and its calls as they come', async () => {
      const { page } = world;
      await world.open('/triggers');
      await page.getByText('No triggers yet').waitFor();

      await button('New trigger').first().click();
      await page.getByLabel('Name').fill('Contact form');
      await page.getByLabel('Skill').selectOption('text/v1.0/word-count');
      await page.getByLabel('Mapping').fill('{"text": body.message}');
      expect(await world.faultsInBoth()).toEqual([]);
      await button('Create trigger').click();
      const url = (await page
        .getByText(/^http.*\/trg_/)
        .first()
        .textContent()) as string;
      await keepsWhatIsShownOnce();
      await button('I have copied it').click();
      await heading('Contact form');
      expect(await page.getByText(/trg_/).count()).toBe(0);
      await page.getByText(/api\/webhooks\/agent\/TOKEN/).waitFor();
      await page.getByText('-d @event.json').waitFor();
      await page.getByText('what your sender sends').waitFor();
      await page.getByText('No calls yet').waitFor();
      for (const body of ['{"message": "Hello there"}', '{"subject": "none"}']) {
        await fetch(url ?? '', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        });
      }

      await row('202').waitFor();
      await row('400').getByText('text is required').waitFor();
      await row('202').getByRole('link').click();
      await page.waitForURL(/\/jobs\//);
    });

    test('shows the error of a mapping beside it', async () => {
      const { page } = world;
      await world.open('/triggers');

      await button('New trigger').first().click();
      await page.getByLabel('Name').fill('Broken');
      await page.getByLabel('Mapping').fill('{"text": ');
      await button('Create trigger').click();

      await expect.poll(() => page.getByLabel('Mapping').getAttribute('aria-invalid')).toBe('true');
    });

    test('disables one, changes it, and deletes it once it has asked', async () => {
      const { page } = world;
      const { id } = await asked('POST', '/api/agent-triggers', {
        agent_id: 'default',
        name: 'Tides',
        skill_category: 'util',
        skill_name: 'echo',
        signing_secret: 'the-secret-of-the-tides',
      });
      await world.open('/triggers');

      await row('Tides').getByRole('switch').click();
      await told('The trigger is disabled');
      expect(await asked('GET', `/api/agent-triggers/${id}`)).toMatchObject({ active: false });
      await page.getByRole('link', { name: 'Tides' }).click();
      await button('Edit').click();
      await page.getByLabel('Calls per minute').fill('7');
      await button('Save').click();
      await page.getByText('7 calls per minute').waitFor();
      await page.getByText('Calls have to be signed').waitFor();
      await button('Edit').click();
      await page.getByLabel('Calls per minute').fill('many');
      await button('Save').click();
      await expect
        .poll(() => page.getByLabel('Calls per minute').getAttribute('aria-invalid'))
        .toBe('true');
      await page.getByLabel('Calls per minute').fill('');
      await page.getByLabel('Remove it').check();
      expect(await world.faultsInBoth()).toEqual([]);
      await button('Save').click();
      await page.getByText('60 calls per minute').waitFor();
      await page.getByText('Not asked for').waitFor();
      await button('More').click();
      await page.getByRole('menuitem', { name: 'Delete' }).click();
      await dialogOf(page, 'alertdialog').getByRole('button', { name: 'Delete' }).click();

      await heading('Triggers');
      await page.getByText('Tides').waitFor({ state: 'detached' });
    });
  });
});
