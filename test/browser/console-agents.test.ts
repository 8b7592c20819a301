/** Agents with memories and usage, API keys, and the platform, in the console. */
import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleWorld, dialogOf, startConsole } from '../support/console.ts';
import {
  answering,
  type ScriptedProvider,
  startScriptedProvider,
} from '../support/scripted-provider.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { environmentOf } from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

describe.skipIf(!(await isInstalled('Chromium')))('in the console', () => {
  let provider: ScriptedProvider;
  let world: ConsoleWorld;
  beforeAll(async () => {
    provider = await startScriptedProvider({
      script: answering('Six.', { usage: { prompt: 1_200, completion: 34 } }),
    });
    world = await startConsole({ environment: environmentOf(provider) });
  });
  afterAll(async () => {
    await world.stop();
    await provider.close();
  });
  afterEach(() => {
    // A browser tells of every answer that refuses something.
    const refused = /the server responded with a status of 4(00|09)/;
    expect(world.errors.splice(0).filter((error) => !refused.test(error))).toEqual([]);
  });

  const api = async (method: string, path: string, body?: unknown, headers = {}) =>
    (
      await world.platform.request(method, path, {
        key: world.key,
        headers,
        ...(body === undefined ? {} : { body }),
      })
    ).body;
  const titled = (name: string) => world.page.getByRole('heading', { level: 1, name }).waitFor();
  const dialog = () => dialogOf(world.page);
  const asked = (verb: string) =>
    dialogOf(world.page, 'alertdialog').getByRole('button', { name: verb }).click();
  const told = (text: string | RegExp) => world.page.getByText(text).first().waitFor();

  /** Nothing serious is wrong with what is shown, light or dark. */
  async function isSound() {
    expect(await world.faultsInBoth()).toEqual([]);
  }

  test('an agent is made, changed, paused, resumed and deleted', async () => {
    const { page } = world;
    await world.open('/agents');
    await page.getByRole('button', { name: 'New agent' }).click();
    await dialog().getByRole('textbox', { name: 'Id', exact: true }).fill('No Spaces');
    await dialog().getByRole('combobox', { name: 'Skills' }).fill('text/');
    await page.getByRole('option', { name: /^text\/\*/ }).click();
    await page.keyboard.type('own/v1.0/skill');
    await page.keyboard.press('Enter');
    await dialog().getByRole('button', { name: 'Remove own/v1.0/skill' }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.type('own/v1.0/refund');
    await page.keyboard.press('Enter');
    await dialog().getByRole('button', { name: 'Remove own/v1.0/refund' }).waitFor();
    await dialog().getByRole('combobox', { name: 'Ask before' }).fill('text/');
    await page.getByRole('option', { name: /^text\/\*/ }).click();
    // Elsewhere in the dialog, so that the choices close.
    await dialog().getByRole('textbox', { name: 'Id', exact: true }).click();
    await page.getByRole('listbox').waitFor({ state: 'hidden' });
    await dialog().getByRole('button', { name: 'Create agent' }).click();
    await dialog().getByRole('alert').waitFor();
    await isSound();
    await dialog().getByRole('textbox', { name: 'Id', exact: true }).fill('harbour');
    await dialog().getByRole('button', { name: 'Create agent' }).click();
    await titled('harbour');
    expect(await api('GET', '/api/agents/harbour')).toMatchObject({
      skills: ['text/*', 'own/v1.0/skill'],
      approvals: ['own/v1.0/refund', 'text/*'],
    });
    await isSound();

    await page.getByRole('tab', { name: 'Settings' }).click();
    await page.getByLabel('Name').fill('Harbour office');
    await page.getByLabel('Instructions').fill('Answer in one sentence.');
    await page.getByLabel('Metadata').fill('{"team"');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await told(/This is not JSON yet/);
    await page.getByLabel('Metadata').fill('{"team": "port"}');
    await page.getByRole('button', { name: 'Remove own/v1.0/skill' }).click();
    await page.getByRole('button', { name: 'Save changes' }).click();
    await titled('Harbour office');
    expect(await api('GET', '/api/agents/harbour')).toMatchObject({
      instructions: 'Answer in one sentence.',
      skills: ['text/*'],
      metadata: { team: 'port' },
      model: null,
    });

    await page.getByRole('button', { name: 'Pause' }).click();
    await asked('Pause');
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    expect((await api('GET', '/api/agents/harbour')).status).toBe('paused');
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('button', { name: 'Pause' }).waitFor();

    const trigger = await api('POST', '/api/agent-triggers', {
      agent_id: 'harbour',
      name: 'arrivals',
      skill_category: 'util',
      skill_name: 'echo',
    });
    await page.getByRole('button', { name: 'Delete' }).click();
    await asked('Delete');
    await told(/Schedules, triggers or other agents name the agent harbour/);
    await api('DELETE', `/api/agent-triggers/${trigger.id}`);
    await asked('Delete');
    await titled('Agents');
    expect((await api('GET', '/api/agents/harbour')).error).toBe('not_found');
  });

  test('how the model is called is set for a new agent, by its settings and its chat, and each is a version', async () => {
    const { page } = world;
    const pilot = async () => api('GET', '/api/agents/pilot');
    await api('POST', '/api/agents', { id: 'researcher', model: 'ollama/qwen3' });
    await world.open('/agents');
    await page.getByRole('button', { name: 'New agent' }).click();
    await dialog().getByRole('textbox', { name: 'Id', exact: true }).fill('pilot');
    await dialog().getByRole('combobox', { name: 'Agents' }).fill('resea');
    await page.getByRole('option', { name: /^researcher/ }).click();
    await dialog().getByLabel('Description').fill('Brings ships in');
    await dialog().getByLabel('Memory', { exact: true }).selectOption('read');
    await dialog().getByLabel('Memories in the prompt').fill('many');
    await dialog().getByLabel('Priority').selectOption('low');
    await dialog().getByText('Metadata', { exact: true }).click();
    await dialog().getByLabel('Metadata (a JSON object)').fill('{"berth": 4}');
    await dialog().getByText('Fallback models and model settings').click();
    await dialog().getByRole('combobox', { name: 'Fallback models' }).fill('qwen');
    await page.getByRole('option', { name: /^ollama\/qwen3/ }).click();
    await dialog().getByLabel('Longest answer').fill('8');
    await dialog().getByLabel('Temperature').fill('0,2');
    await page.getByRole('listbox').waitFor({ state: 'hidden' });
    await dialog().getByRole('button', { name: 'Create agent' }).click();
    await expect.poll(() => dialog().getByRole('alert').count()).toBe(3);
    await isSound();
    await dialog().getByLabel('Memories in the prompt').fill('3');
    await dialog().getByLabel('Bytes of a user’s profile').fill('300');
    await dialog().getByLabel('Longest answer').fill('8,000');
    await dialog().getByLabel('Temperature').fill('0.2');
    await dialog().getByRole('button', { name: 'Create agent' }).click();
    await titled('pilot');
    expect(await pilot()).toMatchObject({
      ...{ description: 'Brings ships in', memory: 'read', recall: { limit: 3 }, priority: 'low' },
      profile: { max_bytes: 300 },
      ...{ metadata: { berth: 4 }, agents: ['researcher'] },
      fallback_models: ['ollama/qwen3'],
      model_settings: { max_output_tokens: 8_000, temperature: 0.2 },
    });

    await page.getByText('Fallback models and model settings').click();
    await page.getByLabel('Temperature').press('ControlOrMeta+a');
    await page.getByLabel('Temperature').pressSequentially('0.5');
    await isSound();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await told('The agent is saved');
    expect((await pilot()).model_settings).toEqual({ max_output_tokens: 8_000, temperature: 0.5 });

    await page.getByRole('tab', { name: 'Settings' }).click();
    const settings = page.getByRole('group', { name: 'Model settings' });
    await settings.getByLabel('Temperature').fill('');
    await settings.getByLabel('Effort').selectOption('low');
    await page.getByRole('button', { name: 'Remove ollama/qwen3' }).click();
    await page.getByRole('button', { name: 'Save changes' }).click();
    await told('A change counts from the next call of the model on');
    expect(await pilot()).toMatchObject({
      fallback_models: [],
      model_settings: { max_output_tokens: 8_000, effort: 'low' },
    });
    await isSound();

    await page.getByRole('tab', { name: 'Versions' }).click();
    const changed = page.getByRole('region', { name: 'Model settings: what has changed' });
    await changed.getByText('"effort": "low"').waitFor();
    await changed.getByText('"temperature": 0.5').waitFor();
    await isSound();
    await page.getByRole('button', { name: /^Version 1/ }).click();
    await page.getByRole('button', { name: 'Go back to it' }).click();
    await asked('Go back');
    await page.getByText('Back to version 1: Model settings').waitFor();
    expect(await pilot()).toMatchObject({
      version: 4,
      fallback_models: ['ollama/qwen3'],
      model_settings: { max_output_tokens: 8_000, temperature: 0.2 },
    });
  });

  test('leaving an agent with unsaved changes asks first', async () => {
    const { page } = world;
    await api('POST', '/api/agents', { id: 'careful' });
    await world.open('/agents/careful?tab=settings');
    await page.getByLabel('Description').fill('Half a sentence');

    await page.getByRole('tab', { name: 'Jobs' }).click();
    await asked('Stay here');
    expect(await page.getByLabel('Description').inputValue()).toBe('Half a sentence');
    await page.getByRole('tab', { name: 'Jobs' }).click();
    await asked('Leave');

    await told('No jobs yet');
  });

  test('the usage of an agent is shown by day, beside a budget that can be set', async () => {
    const { page } = world;
    await api('POST', '/api/agents', { id: 'spender' });
    await world.open('/agents/spender?tab=use');
    await told('No calls of models in the last 30 days');

    await world.platform.run(
      world.key,
      'agent/v1.0/run-task',
      { task: 'How many berths?' },
      { 'x-agent-id': 'spender' },
    );
    await page.getByRole('row', { name: /1,200 34 1,234 0 0 unknown 1$/ }).waitFor();
    await page.getByRole('button', { name: 'Edit budget' }).click();
    await dialog().getByLabel('Tokens a day').fill('5,000');
    await dialog().getByLabel('US dollars a month').fill('12.5');
    await isSound();
    await dialog().getByRole('button', { name: 'Save budget' }).click();

    const meter = page.getByRole('meter', { name: /^Today/ });
    await meter.waitFor();
    expect(await meter.getAttribute('aria-valuetext')).toBe('1,234 of 5,000 tokens');
    await isSound();
    expect(await api('GET', '/api/agents/spender/budget')).toMatchObject({
      tokens_per_day: 5_000,
      tokens_per_month: null,
      usd_per_month: 12.5,
    });
    const money = page.getByRole('meter', { name: /^Cost this month/ });
    expect(await money.getAttribute('aria-valuetext')).toBe('$0.00 of $12.50');
    await page.getByRole('button', { name: 'Edit budget' }).click();
    await dialog().getByLabel('Tokens a day').fill('');
    await dialog().getByLabel('US dollars a month').fill('');
    await dialog().getByRole('button', { name: 'Save budget' }).click();
    await meter.waitFor({ state: 'detached' });
  });

  test('memories are searched while one types, added, changed and deleted', async () => {
    const { page } = world;
    for (const content of ['Crème brûlée is served at the quay.', 'Berth 12 is under repair.']) {
      await api('POST', '/api/agents/default/memories', { content });
    }
    await world.open('/memories?agent_id=default');
    await page.getByRole('button', { name: /^Berth 12/ }).waitFor();

    await page.getByLabel('Search memories').pressSequentially('creme');
    await page.getByRole('button', { name: /^Berth 12/ }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: /^Crème/ }).waitFor();
    await expect.poll(() => page.url()).toContain('q=creme');
    await page.getByLabel('Search memories').fill('nothing of the kind');
    await told('No memories found');
    await page.getByRole('button', { name: 'Clear the search' }).click();

    await page.getByRole('button', { name: 'New memory' }).click();
    await dialog().getByLabel('Content').fill('Ada prefers short answers.');
    await page.mouse.click(4, 4);
    await dialog().getByLabel('Tag').fill('preference');
    await isSound();
    await dialog().getByRole('button', { name: 'Add memory' }).click();
    await page.getByRole('button', { name: 'preference' }).click();
    await page.getByRole('button', { name: /^Berth 12/ }).waitFor({ state: 'detached' });
    await expect.poll(() => page.url()).toContain('tag=preference');

    await page.getByRole('button', { name: /^Ada prefers short/ }).click();
    await dialog().getByLabel('Content').fill('Ada prefers long answers.');
    await dialog().getByRole('button', { name: 'Save memory' }).click();
    await page.getByRole('button', { name: /^Ada prefers long/ }).waitFor();
    await isSound();

    await page.getByRole('button', { name: 'Actions for this memory' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await asked('Delete');
    await told('No memories found');
    expect((await api('GET', '/api/agents/default/memories?tag=preference')).total).toBe(0);
  });

  test('memories tell whose they are and when they expire, and are narrowed to a user', async () => {
    const { page } = world;
    await api('POST', '/api/agents/default/memories', { content: 'Open on Sundays.' });
    await world.open('/memories?agent_id=default');
    await page.getByRole('button', { name: 'New memory' }).click();
    await dialog().getByLabel('Content').fill('Likes a window seat.');
    await dialog().getByLabel('User').fill('grace');
    await dialog().getByLabel('Expires').fill('2999-01-01T00:00:00Z');
    await isSound();
    await dialog().getByRole('button', { name: 'Add memory' }).click();

    await page.getByRole('button', { name: 'grace', exact: true }).click();
    await page.getByRole('button', { name: /^Open on/ }).waitFor({ state: 'detached' });
    await expect.poll(() => page.url()).toContain('user=grace');
    await page.getByRole('button', { name: 'Write a profile' }).click();
    await dialog().getByLabel('Profile').fill('Name: Grace');
    await isSound();
    await dialog().getByRole('button', { name: 'Save profile' }).click();
    await page.getByText('Name: Grace').waitFor();
    const profile = '/api/agents/default/profiles/grace';
    expect(await api('GET', profile)).toMatchObject({ content: 'Name: Grace', version: 1 });
    await page.getByRole('button', { name: 'Delete the profile' }).click();
    await asked('Delete');
    await told('None yet.');
    await page.getByRole('button', { name: /^Likes a window/ }).click();
    await dialog()
      .getByText(/^Of grace, for default, since .*, from a client$/)
      .waitFor();
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    await page.getByLabel('Whose memories').selectOption('agent');
    await page.getByRole('button', { name: /^Open on/ }).waitFor();
    expect(await page.getByRole('button', { name: /^Likes a window/ }).count()).toBe(0);
    expect((await api('GET', '/api/agents/default/memories?user_id=grace')).data).toMatchObject([
      { content: 'Likes a window seat.', expires_at: '2999-01-01T00:00:00.000Z' },
    ]);
  });

  test('the data of a user are exported, and erased once the user’s id is typed', async () => {
    const { page } = world;
    const heidi = { 'x-user-id': 'heidi/7', prefer: 'wait=20' };
    await api('POST', '/api/util/v1.0/echo', { text: 'for heidi' }, heidi);
    const made = { content: 'Skis on Sundays.', user_id: 'heidi/7' };
    await api('POST', '/api/agents/default/memories', made);
    await api('POST', '/api/agents', { id: 'ski-school' });
    const other = { content: 'Edges need wax.', user_id: 'heidi/7' };
    await api('POST', '/api/agents/ski-school/memories', other);
    await world.open('/memories?agent_id=default&user=heidi%2F7');
    await page.getByRole('link', { name: 'Data of this user' }).click();
    await titled('heidi/7');
    await isSound();
    const byAgent = page.getByRole('table', { name: 'Agents with memories of this user' });
    await byAgent.getByRole('row', { name: 'default 1' }).waitFor();
    await byAgent.getByRole('link', { name: 'ski-school' }).click();
    await page.getByText('Edges need wax.').waitFor();
    await world.open('/memories?user=heidi%2F7');
    await byAgent.getByRole('row', { name: 'ski-school 1' }).waitFor();
    await isSound();
    await world.open('/users/heidi%2F7');
    await titled('heidi/7');

    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export the data' }).click(),
    ]);
    const lines = (await readFile(await download.path(), 'utf8')).trim().split('\n');
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ type: 'end', memories: 2, jobs: 1 });

    await page.getByRole('button', { name: 'Erase the data' }).click();
    const erase = dialog().getByRole('button', { name: 'Erase the data' });
    await dialog().getByLabel('Type heidi/7 to confirm').fill('heidi');
    expect(await erase.isDisabled()).toBe(true);
    await isSound();
    await dialog().getByLabel('Type heidi/7 to confirm').fill('heidi/7');
    await api('POST', '/api/util/v1.0/wait', { ms: 20_000 }, { 'x-user-id': 'heidi/7' });
    await erase.click();
    await dialog().getByText('Jobs of the user that have not ended: 1').first().waitFor();
    await dialog().getByLabel('Cancel the jobs of this user that have not ended').check();
    await erase.click();
    await told('Erased. Memories: 2, conversations: 2, jobs without their text: 2.');
    await isSound();
    expect((await api('GET', '/api/agents/default/memories?user_id=heidi/7')).total).toBe(0);
    await page.getByRole('link', { name: 'Conversations of this user' }).click();
    await page.getByRole('link', { name: 'Data of this user' }).waitFor();
  });

  test('a key is made for a new organization, shown once, and revoked', async () => {
    const { page, platform } = world;
    await world.open('/api-keys');
    await page.getByRole('button', { name: 'New API key' }).click();
    await dialog().getByRole('combobox', { name: 'Organization' }).fill('-/-');
    await dialog().getByLabel('Requests a minute').fill('0');
    await dialog().getByRole('button', { name: 'Create key' }).click();
    // Every field says what is wrong with it, after one attempt.
    for (const field of ['Name', 'Organization', 'Scopes of the key', 'Requests a minute']) {
      const control = dialog().getByLabel(new RegExp(`^${field}`));
      await control.and(page.locator('[aria-invalid]')).waitFor();
    }
    expect(await dialog().getByRole('alert').count()).toBe(4);
    await dialog().getByLabel('Name').fill('nightly reports');
    await dialog().getByRole('combobox', { name: 'Organization' }).fill('acme');
    await dialog().getByRole('combobox', { name: 'Scopes of the key' }).fill('tex');
    await page.getByRole('option', { name: /text/ }).first().waitFor();
    await page.keyboard.press('Enter');
    await dialog().getByRole('button', { name: 'Remove text' }).waitFor();
    await dialog().getByLabel('Requests a minute').click();
    await page.getByRole('listbox').waitFor({ state: 'hidden' });
    await dialog().getByLabel('Requests a minute').fill('60');
    await isSound();
    await dialog().getByRole('button', { name: 'Create key' }).click();

    const key = (await dialog().getByText(/^sk_/).first().textContent()) ?? '';
    expect(key).toMatch(/^sk_/);
    await dialog().getByRole('region', { name: 'curl' }).getByText(key).waitFor();
    const answer = await platform.request('GET', '/api/skills', { key });
    expect(answer.status).toBe(200);
    await isSound();
    await page.keyboard.press('Escape');
    await asked('Go back');
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await dialog().waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(key);

    await page.getByLabel('Search by name, organization, scope').fill('acme text');
    await page.getByRole('link', { name: 'nightly reports' }).waitFor();
    await waitFor(async () => (await page.getByRole('row').count()) === 2, {
      describe: 'it is the only key that is found',
    });
    await isSound();
    await page.getByRole('link', { name: 'nightly reports' }).click();
    await titled('nightly reports');
    await told('60 requests a minute');
    await told('Switch to acme to see them');
    await isSound();
    await page.getByRole('button', { name: 'Revoke' }).click();
    await told(/Schedules that were created with it/);
    await told('Cancel its active jobs too');
    await asked('Revoke');
    await page.getByText('revoked', { exact: true }).waitFor();

    expect((await platform.request('GET', '/api/skills', { key })).status).toBe(401);
    await world.open('/');
    await page.getByRole('button', { name: /Account/ }).click();
    await page.getByRole('menuitem', { name: 'acme' }).waitFor();
  });

  test('a key leads to its jobs, and revoking it can cancel those that run', async () => {
    const { page, platform } = world;
    const issue = (client_name: string) =>
      platform.admin('POST', '/admin/api-keys', { client_name, scopes: ['*'] });
    const { id, plaintext_key: key } = (await issue('leaving')).body;
    const { job_id } = (
      await platform.request('POST', '/api/util/v1.0/wait', { key, body: { ms: 60_000 } })
    ).body;
    await platform.jobIn(key, job_id, 'active');
    await world.open(`/api-keys/${id}`);

    await page.getByRole('link', { name: 'Jobs of this key' }).click();
    await titled('Jobs');
    await page.getByRole('button', { name: 'Clear api key' }).waitFor();
    await expect.poll(() => page.getByRole('row').count()).toBe(2);
    await isSound();
    await page.goBack();
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('switch', { name: 'Cancel its active jobs too' }).click();
    await isSound();
    await asked('Revoke');
    await page.getByText('revoked', { exact: true }).waitFor();

    const cancelled = async () =>
      (await platform.request('GET', `/api/jobs/${job_id}`, { key: world.key })).body.status;
    await expect.poll(cancelled).toBe('cancelled');
  });

  test('credentials of a provider are stored, replaced and deleted', async () => {
    const { page, platform } = world;
    const stored = async () =>
      (await platform.admin('GET', '/admin/organizations/default/credentials')).body.data;
    await world.open('/system');
    await told('Everything that the platform needs is there, and it takes work.');
    await page.getByRole('button', { name: 'Add credentials' }).click();
    await dialog().getByLabel('Provider').fill('ollama');
    await dialog().getByLabel('API key').fill('sk-from-the-provider');
    await dialog().getByLabel('Address').fill('not an address');
    await dialog().getByRole('button', { name: 'Store' }).click();
    await dialog().getByRole('alert').waitFor();
    await dialog().getByLabel('Address').fill('http://127.0.0.1:11434/v1');
    await isSound();
    await dialog().getByRole('button', { name: 'Store' }).click();
    await page.getByRole('cell', { name: 'http://127.0.0.1:11434/v1' }).waitFor();
    expect(await stored()).toMatchObject([{ provider: 'ollama', has_api_key: true }]);
    expect(await page.content()).not.toContain('sk-from-the-provider');

    await page.getByRole('button', { name: 'What can be done with ollama' }).click();
    await page.getByRole('menuitem', { name: 'Replace' }).click();
    await dialog().getByRole('button', { name: 'Store' }).click();
    await page.getByRole('cell', { name: 'none is sent' }).waitFor();
    expect(await stored()).toMatchObject([{ provider: 'ollama', has_api_key: false }]);

    await page.getByRole('button', { name: 'What can be done with ollama' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await asked('Delete');
    await told('No credentials');
    expect(await stored()).toEqual([]);
    await isSound();
  });

  test('the system names its processes, and who used how many tokens', async () => {
    const { page } = world;
    await api('POST', '/api/agents', { id: 'counted' });
    await world.platform.run(
      world.key,
      'agent/v1.0/run-task',
      { task: 'Count' },
      { 'x-agent-id': 'counted' },
    );

    await world.open('/system');
    await page.getByRole('table', { name: 'Live processes' }).getByText('worker').first().waitFor();
    await page.getByRole('row', { name: /counted default 1,200 34 1,234/ }).waitFor();
    await page.getByLabel('Counted for').selectOption('API keys');

    await page.getByRole('link', { name: 'counted' }).waitFor({ state: 'detached' });
    await expect.poll(() => page.url()).toContain('owner_kind=api_key');
    for (const path of ['/docs', '/openapi.json', '/metrics']) {
      expect(await page.locator(`a[href="${path}"]`).count()).toBe(1);
    }
  });

  test('pages for the administrator say so in a session with a key', async () => {
    await world.leaveSession();
    await world.signInAs(world.key);

    for (const path of ['/api-keys', '/api-keys/01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11', '/system']) {
      await world.open(path);
      await told('For the administrator only');
    }
    await isSound();
    await world.leaveSession();
  });
});
