/** Jobs and conversations in the console: search, live view, timeline, retry. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ConsoleWorld, phone, startConsole } from '../support/console.ts';
import {
  callingTools,
  type ScriptedProvider,
  startScriptedProvider,
} from '../support/scripted-provider.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { acting, gate, play } from '../support/staged.ts';
import { asks, environmentOf, runTask, thinkersSkills, toolNamed } from '../support/thinkers.ts';

const outage = { message: 'The shop answered 503', code: 'upstream_unavailable' };

describe.skipIf(!(await isInstalled('Chromium')))('in the console', () => {
  let provider: ScriptedProvider;
  let world: ConsoleWorld;
  beforeAll(async () => {
    provider = await startScriptedProvider();
    world = await startConsole({
      skillsDirs: thinkersSkills,
      environment: { ...environmentOf(provider), RETRY_BACKOFF_MS: '200' },
    });
  });
  afterAll(async () => {
    await world.stop();
    await provider.close();
  });

  /** A test that is repeated has a user of its own, and begins without the errors of its first try. */
  let user = '';
  let tries = 0;
  beforeEach(() => {
    tries += 1;
    user = `user-${tries}-of-the-tests`;
    world.errors.length = 0;
  });

  /** Starts a job; its id and its conversation's. */
  async function started(skill: string, input: unknown, headers = {}) {
    const { platform, key } = world;
    const { body } = await platform.request('POST', `/api/${skill}`, { key, body: input, headers });
    return body as { job_id: string; conversation_id: string };
  }

  async function ended(skill: string, input: unknown, headers = {}) {
    const job = await started(skill, input, headers);
    await world.platform.jobIn(world.key, job.job_id, 'completed', 'failed', 'cancelled');
    return job;
  }

  test('jobs are filtered in the url, appear while one looks, and lead to their page', async () => {
    const { page } = world;
    await ended('util/v1.0/echo', { text: 'hello' });
    await ended(play, acting({ fail: { ...outage, retryable: false } }));
    await world.open('/jobs');
    const rows = page.getByRole('table', { name: 'Jobs, newest first' }).getByRole('row');
    await rows.filter({ hasText: 'echo' }).waitFor();

    await page.getByLabel('Status').selectOption('failed');
    await rows.filter({ hasText: 'echo' }).waitFor({ state: 'detached' });
    await expect.poll(() => new URL(page.url()).search).toBe('?status=failed');
    expect(await rows.filter({ hasText: 'The shop answered 503' }).count()).toBe(1);
    await ended(play, acting({ fail: { message: 'Out of paper', retryable: false } }));
    await rows.filter({ hasText: 'Out of paper' }).waitFor();
    expect(await world.faultsInBoth()).toEqual([]);

    await page.getByLabel('Skill').selectOption('util/v1.0/echo');
    await page.getByText('No matching jobs').waitFor();
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await page.getByLabel('Accepted').selectOption('15m');
    await rows.filter({ hasText: 'echo' }).getByRole('link', { name: /echo/ }).click();
    await page.getByRole('heading', { level: 1, name: 'util/v1.0/echo' }).waitFor();
    expect(world.errors).toEqual([]);
  });

  test('a job is followed while it runs: its bar, its log, its progress, its end', async () => {
    const { page } = world;
    const halfway = gate();
    const { job_id } = await started(play, {
      attempts: [
        [{ log: 'asking the shop' }, { fail: outage }],
        [{ progress: 0.5, note: '1 of 2 pages' }, { log: 'page 1' }, { until: halfway.path }],
      ],
      output: { orders: 24 },
    });

    await world.open(`/jobs/${job_id}`);
    const timeline = page.getByRole('table', { name: 'Timeline of the job' });
    await timeline.getByRole('row', { name: /Attempt 1.*The shop answered 503/ }).waitFor();
    await timeline.getByRole('row', { name: /Attempt 2.*running/ }).waitFor();
    await page.getByRole('progressbar', { name: 'Progress' }).waitFor();
    await page.getByText('50 % · 1 of 2 pages').waitFor();
    expect(await world.faultsInBoth()).toEqual([]);
    await page.getByRole('tab', { name: 'Logs' }).click();
    await page.getByRole('log').getByText('page 1').first().waitFor();
    await expect.poll(() => new URL(page.url()).search).toBe('?tab=logs');
    expect(await world.faultsInBoth()).toEqual([]);
    halfway.open();
    await page.getByRole('log').getByText('completed').waitFor();

    await page.getByRole('tab', { name: 'Overview' }).click();
    await timeline.getByRole('row', { name: /Completed/ }).waitFor();
    await page.getByRole('region', { name: 'Output', exact: true }).getByText('24').waitFor();
    expect(world.errors).toEqual([]);
  });

  test('the keyboard moves through the timeline, and a row shows all its details', async () => {
    const { page } = world;
    const { job_id } = await ended(play, acting({ fail: { ...outage, retryable: false } }));
    await world.open(`/jobs/${job_id}`);

    const attempt = page.getByRole('button', { name: 'Attempt 1' });
    await page.getByRole('button', { name: 'Accepted' }).focus();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');

    expect(await attempt.getAttribute('aria-expanded')).toBe('true');
    await page
      .getByRole('definition')
      .filter({ hasText: /^failed$/ })
      .waitFor();
    await page.getByText('An external service').first().waitFor();
  });

  test('a running job is cancelled once one has said yes, and run again as a new one', async () => {
    const { page } = world;
    const never = gate();
    const { job_id } = await started(play, acting({ until: never.path }));
    await world.open(`/jobs/${job_id}`);

    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Keep it' }).click();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    expect(await world.faultsInBoth()).toEqual([]);
    await page.getByRole('button', { name: 'Cancel the job' }).click();
    await page.getByRole('row', { name: /Cancelled/ }).waitFor();

    await page.getByRole('button', { name: 'Retry' }).waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('link', { name: job_id }).waitFor();
    await page.getByText('Goes on from').waitFor();
    await expect.poll(() => page.url()).not.toContain(job_id);
    await page.getByRole('link', { name: 'Run with changes' }).click();
    await page.waitForURL(/\/skills\/staged\/v1.0\/play\?tab=run&from=/);
  });

  test('a job links to its deliveries', async () => {
    const { page, platform, key } = world;
    const { body: webhook } = await platform.request('POST', '/api/agent-webhooks', {
      key,
      body: {
        agent_id: 'default',
        url: 'https://hooks.example.com/jobs',
        events: ['skill.completed'],
      },
    });
    const { job_id } = await ended('util/v1.0/echo', { text: 'hello' });

    await world.open(`/jobs/${job_id}?tab=deliveries`);
    await page.getByRole('link', { name: 'skill.completed' }).waitFor();
    expect(await world.faultsInBoth()).toEqual([]);
    await page.getByRole('link', { name: 'skill.completed' }).click();

    await page.waitForURL(new RegExp(`/webhooks/${webhook.id}\\?delivery=`));
    // Its page would go on asking for a webhook that is gone.
    await world.open('/jobs');
    await platform.request('DELETE', `/api/agent-webhooks/${webhook.id}`, { key });
  });

  test('a conversation is read as a transcript, with its tools folded and its tokens', async () => {
    const { page } = world;
    const wait = { name: toolNamed('util/v1.0/echo'), input: { text: 'folded' } };
    provider.script(callingTools([wait], 'It is done.'));
    await world.platform.request('POST', '/api/agents', {
      key: world.key,
      body: { id: 'harbour', skills: ['util/*'] },
    });
    const { conversation_id, job_id } = await ended(
      runTask,
      { task: 'Say after me what you are told, and then say that it is done, if you please.' },
      { 'x-agent-id': 'harbour', 'x-user-id': user },
    );

    await world.open('/conversations');
    await page.getByLabel('User').fill(user);
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(`user_id=${user}`));
    const rows = page.getByRole('table', { name: 'Conversations, newest first' }).getByRole('row');
    await rows.nth(2).waitFor({ state: 'detached' });
    expect(await world.faultsInBoth()).toEqual([]);
    await rows.nth(1).getByRole('link').first().click();
    await page.waitForURL(new RegExp(`/conversations/${conversation_id}`));

    const messages = page.getByRole('list', { name: 'Messages' }).getByRole('listitem');
    await messages.filter({ hasText: 'It is done.' }).waitFor();
    expect(await messages.count()).toBe(4);
    expect(await messages.last().textContent()).toMatch(/\d+ in · \d+ out/);
    const output = page.getByRole('region', { name: 'Came back' });
    expect(await output.isVisible()).toBe(false);
    await page.locator('summary').focus();
    await page.keyboard.press('Enter');
    await output.getByText('"folded"').waitFor();
    expect(await world.faultsInBoth()).toEqual([]);

    await page.getByRole('link', { name: 'agent/v1.0/run-task' }).click();
    await page.waitForURL(new RegExp(`/jobs/${job_id}`));
    await page.getByRole('row', { name: /util\/v1.0\/echo/ }).waitFor();
    expect(world.errors).toEqual([]);
  });

  test('a failed turn shows its error, before the turns after it', async () => {
    const { page } = world;
    provider.script(() => ({
      fault: { status: 400, body: { error: { message: 'No such model' } } },
    }));
    const { conversation_id, job_id } = await ended(runTask, { task: 'Is it open?' });
    provider.script(() => ({ text: 'It is.' }));
    await ended(runTask, { task: 'And now?' }, { 'x-conversation-id': conversation_id });

    await world.open(`/conversations/${conversation_id}`);
    const messages = page.getByRole('list', { name: 'Messages' }).locator('> li');
    await messages.filter({ hasText: 'It is.' }).waitFor();
    const failed = messages.filter({
      has: page.getByRole('link', { name: 'The job of this turn' }),
    });
    await failed.waitFor();

    const texts = await messages.allTextContents();
    expect(texts).toEqual(
      ['Is it open?', 'No such model', 'And now?', 'It is.'].map((text) =>
        expect.stringContaining(text),
      ),
    );
    expect(texts.join()).not.toContain('{');
    expect(await world.faultsInBoth()).toEqual([]);
    await failed.getByRole('link').click();
    await page.waitForURL(new RegExp(`/jobs/${job_id}`));
  });

  test('tools stand below the answer that called them, of several given at the same time', async () => {
    const { page } = world;
    const { promise: isAsked, resolve: ask } = Promise.withResolvers<void>();
    provider.script(async ({ toolResults, messages }) => {
      if (toolResults.length > 0) return { text: 'Done.' };
      const name = JSON.stringify(messages).includes('Look for Bergen') ? 'Bergen' : 'Narvik';
      // Both have been asked before either answers.
      if (name === 'Narvik') ask();
      else await isAsked;
      const call = { name: toolNamed('util/v1.0/echo'), input: { text: name } };
      return { text: `I look for ${name}.`, toolCalls: [call, call] };
    });
    await world.platform.request('POST', '/api/agents', {
      key: world.key,
      body: { id: 'lookout', skills: ['util/*'] },
    });
    const requests = ['Bergen', 'Narvik'].map((name) => ({
      prompt: `Look for ${name}`,
      tools: true,
    }));
    const { conversation_id, job_id } = await ended(
      asks,
      { requests: [requests] },
      { 'x-agent-id': 'lookout' },
    );

    // Until the steps tell which answer called them, the tools are not shown.
    const { promise: isShown, resolve: showSteps } = Promise.withResolvers<void>();
    await page.route(/\/steps/, (route) => isShown.then(() => route.continue()));
    await world.open(`/conversations/${conversation_id}`);
    const lists = page.getByRole('list', { name: 'Tools it called' });
    for (const name of ['Bergen', 'Narvik']) {
      await page.getByText(`I look for ${name}.`).waitFor();
    }
    expect(await lists.count()).toBe(0);
    showSteps();
    for (const name of ['Bergen', 'Narvik']) {
      const answer = page.getByRole('listitem').filter({ hasText: `I look for ${name}.` });
      const tools = answer.getByRole('list', { name: 'Tools it called' }).getByRole('listitem');
      await tools.filter({ hasText: name }).nth(1).waitFor();
      expect(await tools.count()).toBe(2);
    }
    await page.unroute(/\/steps/);
    expect(await world.faultsInBoth()).toEqual([]);
    await world.open(`/jobs/${job_id}`);
    const rows = page.getByRole('table', { name: 'Timeline of the job' }).getByRole('row');
    await rows.filter({ hasText: 'util/v1.0/echo' }).nth(3).waitFor();
    const kinds = (await rows.allTextContents()).map((text) => /echo|openai/.exec(text)?.[0] ?? '');
    expect(kinds.filter((kind) => kind !== '').join(' ')).toMatch(
      /openai echo echo openai echo echo/,
    );
  });

  test('the answer of a model is shown as it streams', async () => {
    const { page } = world;
    const rest = Promise.withResolvers<void>();
    const text = 'The harbour is closed on Mondays.';
    provider.script(() => ({ text, piece: 8, hold: { after: 2, until: rest.promise } }));
    const { conversation_id } = await started(runTask, { task: 'When is it closed?' });

    await world.open(`/conversations/${conversation_id}`);
    const messages = page.getByRole('list', { name: 'Messages' }).getByRole('listitem');
    await messages.filter({ hasText: 'The harbour' }).waitFor();
    expect(await messages.filter({ hasText: 'closed on Mondays' }).count()).toBe(0);
    rest.resolve();
    // For a moment what was streamed stands beside what is recorded.
    await messages.filter({ hasText: text }).first().waitFor();

    await page.getByRole('main').getByText('completed').first().waitFor();
    await messages
      .filter({ hasText: text })
      .getByText(/\d+ in · \d+ out/)
      .waitFor();
    await expect.poll(() => messages.count()).toBe(2);
  });

  test('jobs and conversations fit a phone', async () => {
    const { page } = world;
    const { job_id, conversation_id } = await ended(
      play,
      acting({ log: 'a'.repeat(300) }, { fail: { message: 'b'.repeat(300), retryable: false } }),
    );
    await page.setViewportSize(phone);
    const places = ['/jobs', `/jobs/${job_id}`, `/jobs/${job_id}?tab=logs`, '/conversations'];
    for (const place of [...places, `/conversations/${conversation_id}`]) {
      await world.open(place);
      await page.getByText('failed', { exact: true }).filter({ visible: true }).first().waitFor();

      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect(width, place).toBeLessThanOrEqual(phone.width);
    }
  });
});
