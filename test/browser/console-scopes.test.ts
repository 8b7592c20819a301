/** What a session of an API key may not do: each page leaves it out, or says which scope it needs. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleWorld, dialogOf, startConsole } from '../support/console.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { waitFor } from '../support/wait-for.ts';

const echo = { skill_category: 'util', skill_name: 'echo' };
const installed = await isInstalled('Chromium');

describe.skipIf(!installed)('a session of an API key with the scope text alone', () => {
  let world: ConsoleWorld;
  /** Addresses, by what they show. */
  let places: Readonly<Record<string, string>>;
  /** Requests that the platform refused for a missing scope. */
  const refused: string[] = [];

  beforeAll(async () => {
    world = await startConsole();
    const { platform, key, page } = world;
    page.on('response', (answer) => {
      if (answer.status() === 403) refused.push(answer.url());
    });
    const post = async (path: string, body: object, headers = {}) => {
      const answer = await platform.request('POST', path, { key, body, headers });
      if (answer.status >= 300) throw new Error(`${path}: ${answer.text}`);
      return answer.body;
    };
    await post('/api/agents', { id: 'helper', skills: ['util/*'], approvals: ['util/*'] });
    await platform.request('PUT', '/api/agents/helper', {
      key,
      body: { instructions: 'Be brief.' },
    });
    const whose = { content: 'Ada likes tea', user_id: 'ada' };
    await post('/api/agents/helper/memories', whose);
    const { job_id } = await post(
      '/api/util/v1.0/wait',
      { ms: 60_000 },
      { 'x-agent-id': 'helper' },
    );
    await platform.request('POST', `/api/jobs/${job_id}/cancel`, { key });
    await platform.jobIn(key, job_id, 'cancelled');
    const input = { text: 'x' };
    const cron = { agent_id: 'helper', ...echo, cron_expression: '0 0 1 1 *', input };
    const schedule = await post('/api/scheduled-jobs', cron);
    const calls = { agent_id: 'helper', name: 'Calls', ...echo };
    const trigger = await post('/api/agent-triggers', calls);
    const event = { agent_id: 'helper', name: 'Payments', event: { name: 'order.paid' } };
    const events = await post('/api/agent-triggers', event);
    const hook = { agent_id: 'helper', url: 'https://receiver.example/hook' };
    for (const id of ['plain', 'saver']) await post('/api/agents', { id, skills: ['text/*'] });
    await platform.request('PUT', '/api/agents/saver/budget', {
      key,
      body: { tokens_per_day: 1_000 },
    });
    const webhook = await post('/api/agent-webhooks', { ...hook, events: ['approval.requested'] });
    places = {
      job: `/jobs/${job_id}`,
      schedule: `/schedules/${schedule.id}`,
      use: `/schedules/${schedule.id}?tab=use`,
      trigger: `/triggers/${trigger.id}`,
      'trigger of events': `/triggers/${events.id}`,
      webhook: `/webhooks/${webhook.id}`,
      skill: '/skills/util/v1.0/echo',
      chat: '/agents/helper',
      settings: '/agents/helper?tab=settings',
      versions: '/agents/helper?tab=versions&version=1',
      budget: '/agents/helper?tab=use',
      memories: '/agents/helper?tab=memories',
      user: '/users/ada',
    };
    await world.signInAs(await platform.key({ scopes: ['text'] }));
  });
  afterAll(() => world.stop());
  afterEach(() => {
    refused.length = 0;
    world.errors.length = 0;
  });

  const needs = (scopes: string) => new RegExp(`needs the scopes? ${scopes}`);

  test.each([
    ['job', needs('util'), ['Resume', 'Retry']],
    ['schedule', needs('util'), ['Run now', 'Disable']],
    ['use', needs('budgets'), ['Edit budget']],
    ['trigger', needs('util'), ['Edit', 'Disable']],
    ['trigger of events', needs('events'), ['Edit', 'Disable']],
    ['skill', needs('util'), []],
    ['chat', /A message needs the scope agent/, ['Delete']],
    ['chat', /Trying or changing what the agent works with needs the scope util/, []],
    ['chat', /Deleting it needs the scopes util, approvals/, ['Delete']],
    ['settings', /lacks the scope util for/, ['Delete']],
    ['settings', /Changing this needs the scope approvals/, []],
    ['versions', /Going back to it needs the scope util/, ['Go back to it']],
    ['budget', needs('budgets'), ['Edit budget']],
    ['memories', needs('memories'), []],
    ['user', needs('memories'), []],
    ['user', needs('user-data'), ['Export the data', 'Erase the data']],
  ])('the page of a %s says %s, and has no button for it', async (place, words, buttons) => {
    const { page } = world;

    await world.open(places[place] ?? '');

    await page.getByText(words).first().waitFor();
    for (const name of buttons) {
      expect(await page.getByRole('button', { name, exact: true }).count(), name).toBe(0);
    }
    expect(await world.faultsInBoth()).toEqual([]);
    expect(refused).toEqual([]);
  });

  test('an agent whose skills it may run can be deleted, unless the agent has a budget', async () => {
    const { page } = world;
    const remove = page.getByRole('button', { name: 'Delete', exact: true });

    await world.open('/agents/plain');
    await remove.waitFor();
    await world.open('/agents/saver');
    await page.getByText(needs('budgets')).first().waitFor();

    expect(await remove.count()).toBe(0);
    expect(refused).toEqual([]);
  });

  test('a webhook of approvals can be read, tested, disabled and deleted, and not changed', async () => {
    const { page, platform, key } = world;

    await world.open(places['webhook'] ?? '');

    await page.getByText(needs('approvals')).waitFor();
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).waitFor();
    expect(await page.getByRole('menuitem').allInnerTexts()).toEqual(['Delete']);
    await page.keyboard.press('Escape');
    // Its deliveries are those of approvals.
    await page.getByText('Not for this session').waitFor();

    await page.getByRole('button', { name: 'Disable' }).click();
    await dialogOf(page, 'alertdialog').getByRole('button', { name: 'Disable' }).click();
    await page.getByText('The webhook is disabled').first().waitFor();
    const path = `/api/agent-${(places['webhook'] ?? '').slice(1)}`;
    expect((await platform.request('GET', path, { key })).body.active).toBe(false);
    await page.getByText(needs('approvals')).waitFor();
    for (const name of ['Disable', 'Enable', 'Send test']) {
      expect(await page.getByRole('button', { name }).count(), name).toBe(0);
    }
  });

  test.each(['/schedules', '/triggers'])(
    'the list %s shows the state of what the session cannot switch, also while the skills are read',
    async (place) => {
      const { page } = world;
      const state = page
        .getByRole('cell')
        .getByText(/^enabled$/i)
        .first();
      const skills = Promise.withResolvers<void>();
      await page.route('**/api/skills', async (route) => {
        await skills.promise;
        await route.continue();
      });
      await world.load(place);

      await state.waitFor();
      expect(await page.getByRole('switch').count()).toBe(0);
      const read = page.waitForResponse('**/api/skills');
      skills.resolve();
      await read;
      await state.waitFor();
      expect(await page.getByRole('switch').count()).toBe(0);
      await page.unroute('**/api/skills');
      expect(refused).toEqual([]);
    },
  );

  test('forms offer what the session may choose, and name the scope of the rest', async () => {
    const { page } = world;
    await world.open('/schedules');
    await page.getByRole('button', { name: 'New schedule' }).first().click();
    const skill = (name: RegExp) => dialogOf(page).getByRole('option', { name });
    expect(await skill(/util\/v1\.0\/echo .needs the scope util/).isDisabled()).toBe(true);
    expect(await skill(/^text\/v1\.0\/word-count$/).isDisabled()).toBe(false);
    await page.keyboard.press('Escape');

    await world.load('/webhooks');
    await page.getByRole('button', { name: 'New webhook' }).first().click();
    const approval = dialogOf(page).getByRole('checkbox', { name: /approval\.requested/ });
    expect(await approval.isDisabled()).toBe(true);
    await dialogOf(page).getByText('needs the scope approvals').first().waitFor();
    expect(refused).toEqual([]);
  });

  test('the menu and the palette leave approvals out, and their page says why', async () => {
    const { page } = world;
    await world.load('/');
    await page.getByRole('link', { name: 'Jobs', exact: true }).waitFor();
    expect(await page.getByRole('link', { name: /^Approvals/ }).count()).toBe(0);
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search everything' }).fill('approvals');
    await page.getByRole('option', { name: /Search memories/ }).waitFor();
    expect(await page.getByRole('option', { name: /^Approvals/ }).count()).toBe(0);
    await page.keyboard.press('Escape');
    expect(refused).toEqual([]);

    await world.load('/approvals');

    await page.getByText('Not for this session').waitFor();
    await page
      .getByText(/scope.*approvals/)
      .first()
      .waitFor();
    const before = refused.length;
    // A list that is not refused would be read again every three seconds.
    for (let i = 0; i < 3; i++) await page.waitForResponse(/\/health$/);
    expect(refused.length).toBe(before);
  });
});

describe.skipIf(!installed)('where permissions are strict', () => {
  test('the menu has the areas of the key, and other pages say what they need', async () => {
    const world = await startConsole({ environment: { API_KEY_PERMISSIONS: 'strict' } });
    const { page, platform } = world;
    await world.signInAs(await platform.key({ scopes: ['text', 'schedules'] }));

    const menu = page.getByRole('navigation', { name: 'Main' });
    await menu.getByRole('link', { name: 'Schedules' }).waitFor();
    const names = await menu.getByRole('link').allInnerTexts();
    expect(names).toEqual([
      ...['Overview', 'Jobs', 'Queue', 'Agents', 'Schedules', 'Triggers', 'Connect', 'Accounts'],
    ]);
    for (const place of ['/skills', '/conversations', '/memories', '/webhooks']) {
      await world.load(place);
      await page.getByText('Not for this session').waitFor();
    }
    await waitFor(async () => (await world.faultsInBoth()).length === 0, {
      describe: 'the page is accessible',
    });
    await world.stop();
  });

  test('a webhook can be changed where the key may read its events', async () => {
    const world = await startConsole({ environment: { API_KEY_PERMISSIONS: 'strict' } });
    const { page, platform, key } = world;
    /** Changes that the platform refused; a list that it refuses, the page explains. */
    const refused: string[] = [];
    page.on('response', (answer) => {
      if (answer.status() === 403 && answer.request().method() !== 'GET') {
        refused.push(answer.url());
      }
    });
    const created = async (event: string) => {
      const body = { agent_id: 'default', url: 'https://receiver.example/hook', events: [event] };
      const webhook = await platform.request('POST', '/api/agent-webhooks', { key, body });
      expect(webhook.status, webhook.text).toBe(201);
      const path = `/api/agent-webhooks/${webhook.body.id}`;
      await platform.request('PUT', path, { key, body: { active: false } });
      return `/webhooks/${webhook.body.id}`;
    };
    const ofSchedules = await created('scheduled_job.failed');
    const ofJobs = await created('skill.failed');
    await world.signInAs(await platform.key({ scopes: ['text', 'webhooks'] }));

    await world.open(ofSchedules);
    await page
      .getByText(/needs the scope schedules/)
      .first()
      .waitFor();
    expect(await page.getByRole('button', { name: 'Enable' }).count()).toBe(0);

    await world.open(ofJobs);
    await page.getByRole('button', { name: 'Enable' }).click();
    await page.getByText('The webhook is enabled').first().waitFor();
    expect(refused).toEqual([]);
    await world.stop();
  });
});
