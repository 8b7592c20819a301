/** The overview and the skills in the console, as a person uses them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ConsoleWorld, dialogOf, phone, startConsole } from '../support/console.ts';
import { isInstalled } from '../support/shared-servers.ts';

describe.skipIf(!(await isInstalled('Chromium')))('skills in the console', () => {
  let world: ConsoleWorld;
  let page: ConsoleWorld['page'];
  beforeAll(async () => {
    world = await startConsole();
    ({ page } = world);
  });
  afterAll(() => world.stop());
  beforeEach(async () => {
    // After this, no error comes of what the test before has opened.
    await page.goto('about:blank');
    world.errors.length = 0;
  });

  const run = () => page.getByRole('button', { name: 'Run', exact: true }).click();
  const outcome = (status: string) =>
    page.getByRole('status').filter({ hasText: status }).waitFor();
  const output = () => page.getByRole('region', { name: 'Output' }).textContent();
  const command = () => page.getByRole('region', { name: 'Command' }).textContent();

  async function post(path: string, body: object): Promise<Record<string, string>> {
    const answer = await fetch(`${world.platform.url}${path}`, {
      method: 'POST',
      headers: { 'x-api-key': world.key, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(answer.ok).toBe(true);
    return (await answer.json()) as Record<string, string>;
  }

  async function expectNoFaults(): Promise<void> {
    expect(await world.faultsInBoth()).toEqual([]);
  }

  async function expectPhoneFits(): Promise<void> {
    const size = page.viewportSize();
    await page.setViewportSize(phone);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
      phone.width,
    );
    if (size !== null) await page.setViewportSize(size);
  }

  test('a platform that has run nothing teaches the first step', async () => {
    await world.open('/');

    await page.getByRole('heading', { name: 'First steps' }).waitFor();
    await expectNoFaults();
    await page.getByRole('link', { name: '1. Run a skill' }).click();

    await page.getByRole('heading', { level: 1, name: 'Word count' }).waitFor();
    expect(world.errors).toEqual([]);
  });

  test('the example is filled in, and runs', async () => {
    await world.open('/skills/text/v1.0/word-count');

    expect(await page.getByLabel('text', { exact: true }).inputValue()).not.toBe('');
    await run();
    await outcome('completed');

    expect(await output()).toContain('"words"');
    await page.getByRole('log').getByText('attempt 1').last().waitFor();
    await expectNoFaults();
    await expectPhoneFits();
    await page.getByRole('link', { name: 'Open the job' }).click();
    await page.waitForURL(/\/console\/o\/default\/jobs\/[0-9a-f-]{36}$/);
    expect(world.errors).toEqual([]);
  });

  test('the command does what the form does', async () => {
    await world.open('/skills/util/v1.0/echo');
    await page.getByLabel('text', { exact: true }).fill("it's me");

    expect(await command()).toContain(String.raw`-d '{"text":"it'\''s me"}'`);
  });

  test('the platform’s errors are shown at their fields', async () => {
    await world.open('/skills/util/v1.0/wait');
    const field = page.getByLabel('ms', { exact: true });
    await field.fill('-5');

    await page.keyboard.press('Control+Enter');
    await page.getByRole('alert').waitFor();

    expect(await field.getAttribute('aria-invalid')).toBe('true');
    await page.getByText('must be >= 0', { exact: true }).waitFor();
    expect(await page.evaluate('document.activeElement?.id')).toBe(await field.getAttribute('id'));
    await expectNoFaults();
  });

  test('a run is followed as it happens, and can be cancelled', async () => {
    await world.open('/skills/util/v1.0/wait');
    await page.getByLabel('ms', { exact: true }).fill('60000');

    await run();
    await outcome('active');
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Cancel the job' }).click();

    await outcome('cancelled');
    expect(await page.getByText('The job was cancelled').count()).toBe(0);
  });

  test('lists, choices and entries of any name are filled in without JSON', async () => {
    await world.open('/skills/text/v1.0/classify');
    await page.getByRole('button', { name: 'Remove item 3' }).click();
    await page.getByRole('button', { name: 'Remove item 2' }).click();
    await page.getByRole('button', { name: 'Remove item 1' }).click();
    await page.getByRole('button', { name: 'Add to labels' }).click();
    await page.getByLabel(/^Kind of/).selectOption('object');
    await page.getByLabel('label', { exact: true }).fill('refund');
    await page.getByRole('switch', { name: 'multiple' }).click();

    expect(await command()).toContain('"labels":[{"label":"refund"}],"multiple":true}');
    await expectNoFaults();
    await world.open('/skills/web/v1.0/http-request');
    await page.getByRole('button', { name: 'Add to headers' }).click();
    const name = page.getByLabel('Name of newKey');
    await name.fill('accept');
    await name.blur();
    await page.getByRole('textbox', { name: 'accept', exact: true }).fill('text/plain');
    await page.getByLabel('body').fill('{"a": [1]}');
    await page.getByLabel('method').selectOption('POST');

    const said = await command();
    expect(said).toContain('"headers":{"accept":"text/plain"}');
    expect(said).toContain('"body":{"a":[1]}');
    expect(said).toContain('"method":"POST"');
    await expectNoFaults();
    await expectPhoneFits();
    expect(world.errors).toEqual([]);
  });

  test('the form and JSON are two ways of writing the same', async () => {
    await world.open('/skills/util/v1.0/echo');
    await page.getByRole('button', { name: 'JSON', exact: true }).click();
    const text = page.getByLabel('Input as JSON');

    await text.fill('{"text": ');
    await page.getByText(/^This is not valid JSON/).waitFor();
    expect(await page.getByRole('button', { name: 'Run', exact: true }).isDisabled()).toBe(true);
    await text.fill('{"text": "by hand"}');
    await page.getByRole('button', { name: 'Form', exact: true }).click();

    expect(await page.getByLabel('text', { exact: true }).inputValue()).toBe('by hand');
    expect(world.errors).toEqual([]);
  });

  test('a run begins with the input of an earlier one', async () => {
    const job = await post('/api/util/v1.0/echo', { text: 'once more' });

    await world.open(`/skills/util/v1.0/echo?from=${job['job_id']}`);

    await page.getByRole('link', { name: 'an earlier run' }).waitFor();
    expect(await page.getByLabel('text', { exact: true }).inputValue()).toBe('once more');
    await run();
    await outcome('completed');
    expect(await output()).toContain('once more');
  });

  test('schemas are read as tables', async () => {
    await world.open('/skills/text/v1.0/classify');

    await page.getByRole('tab', { name: 'Schemas' }).click();

    const table = page.getByRole('table', { name: 'Input' });
    const row = table.getByRole('row', { name: /^labels/ });
    expect(await row.textContent()).toMatch(
      /required[\s\S]*array of string or object[\s\S]*2 to 100/,
    );
    await expectNoFaults();
    await expectPhoneFits();
    await page.getByText('As JSON Schema').first().click();
    await page.getByRole('region', { name: 'Input as JSON Schema' }).waitFor();
  });

  test('a version shows its users, and is disabled and enabled', async () => {
    await post('/api/scheduled-jobs', {
      agent_id: 'default',
      skill_category: 'text',
      skill_name: 'diff',
      cron_expression: '0 3 * * *',
      input: { before: 'a', after: 'b' },
    });
    await world.open('/skills/text/v1.0/diff?tab=usages');
    await page.getByRole('table', { name: 'Schedules that run this version' }).waitFor();
    await page.getByRole('link', { name: '0 3 * * *' }).waitFor();
    await expectNoFaults();

    await page.getByRole('button', { name: 'Disable…' }).click();
    await dialogOf(page, 'alertdialog').getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('button', { name: 'Enable' }).waitFor();
    await page.getByRole('tab', { name: 'Run' }).click();
    await page.getByText('This version is disabled').waitFor();
    await page.getByRole('button', { name: 'Enable' }).click();

    await page.getByLabel('before', { exact: true }).waitFor();
    expect(world.errors).toEqual([]);
  });

  test('skills are found by their descriptions', async () => {
    await world.open('/skills');
    await page.getByRole('table', { name: 'Skills of the category web' }).waitFor();
    await expectNoFaults();
    await expectPhoneFits();

    await page.getByLabel('Search skills').fill('unified patch');
    await page.waitForURL(/q=unified/);

    await page.getByRole('link', { name: 'Diff' }).waitFor();
    expect(await page.getByRole('table').count()).toBe(1);
    await page.getByLabel('Search skills').fill('nothing has that');
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('table', { name: 'Skills of the category web' }).waitFor();
    expect(world.errors).toEqual([]);
  });

  test('the overview updates live', async () => {
    await world.open('/');
    await page.getByText('No active jobs.').waitFor();

    await post('/api/util/v1.0/wait', { ms: 60_000 });
    await post('/api/data/v1.0/query-json', { data: [], expression: '$sum(' });

    await page
      .getByRole('table', { name: 'Jobs that run now' })
      .getByRole('link', { name: 'util/v1.0/wait' })
      .waitFor();
    await page
      .getByRole('table', { name: 'Most failing skills' })
      .getByRole('link', { name: /query-json/ })
      .waitFor();
    await page.getByRole('figure', { name: 'Runs that ended, per minute' }).waitFor();
    await expectNoFaults();
    await expectPhoneFits();
    await page.getByRole('button', { name: 'Last day' }).click();
    await page.getByRole('figure', { name: 'Runs that ended, per 15 minutes' }).waitFor();
    await expect.poll(() => page.url()).toContain('window=day');
    await page
      .getByRole('table', { name: 'Most failing skills' })
      .getByRole('link', { name: /query-json/ })
      .click();
    await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get('since')).toBe('24h');
    expect(world.errors).toEqual([]);
  });
});
