/** The chat with an agent: streaming, tools, approvals, unsaved instructions, and what is kept. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleWorld, desktop, dialogOf, phone, startConsole } from '../support/console.ts';
import {
  answering,
  callingTools,
  inTurn,
  type ScriptedProvider,
  startScriptedProvider,
} from '../support/scripted-provider.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { environmentOf, toolNamed } from '../support/thinkers.ts';

const folder = process.env['SCREENSHOTS'];
if (folder !== undefined) mkdirSync(folder, { recursive: true });

const markdown = [
  '# Opening hours',
  'The harbour is **closed** on Mondays, see [the notice](https://example.com/notice).',
  '- quay *one*\n- quay two',
  '| day | from |\n|---|--:|\n| Tuesday | 8 |',
  '```sh\ncurl https://example.com\n```',
  '<b onclick="x">raw</b> [bad](javascript:alert(1)) ![boat](https://example.com/boat.png)',
].join('\n\n');

describe.skipIf(!(await isInstalled('Chromium')))('the chat of an agent', () => {
  let provider: ScriptedProvider;
  let world: ConsoleWorld;
  beforeAll(async () => {
    provider = await startScriptedProvider();
    const SKILLS_DIR = join(import.meta.dirname, '../fixtures/skills/thinking');
    world = await startConsole({ environment: { ...environmentOf(provider), SKILLS_DIR } });
    await api('POST', '/api/agents', {
      id: 'harbour',
      name: 'Harbour office',
      instructions: 'Be brief.\nBe kind.',
      skills: ['util/*'],
      approvals: ['util/v1.0/echo'],
    });
  });
  afterAll(async () => {
    await world.stop();
    await provider.close();
  });
  afterEach(() => {
    expect(world.errors.splice(0)).toEqual([]);
  });

  const api = async (method: string, path: string, body?: unknown) =>
    (await world.platform.request(method, path, { key: world.key, ...(body ? { body } : {}) }))
      .body;
  const message = () => world.page.getByRole('textbox', { name: 'Message' });
  const messages = () => world.page.getByRole('list', { name: 'Messages' });

  async function say(text: string) {
    await message().fill(text);
    await page().keyboard.press('Enter');
  }
  const page = () => world.page;

  async function seen(name: string) {
    expect(await world.faultsInBoth()).toEqual([]);
    if (folder === undefined) return;
    for (const [size, viewport] of Object.entries({ desktop, phone })) {
      await page().setViewportSize(viewport);
      for (const scheme of ['light', 'dark'] as const) {
        await world.shown(scheme);
        await page().screenshot({ path: join(folder, `${name}-${size}-${scheme}.png`) });
      }
    }
    await world.shown('light');
    await page().setViewportSize(desktop);
  }

  /** A picture of a dot. */
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );

  test('a picture is attached, shown, sent with the message, and shown with it', async () => {
    provider.script(answering('A dot.'));
    await world.open('/agents/harbour');
    const file = (name: string) => ({ name, mimeType: 'image/png', buffer: png });
    const chooser = page().locator('input[type=file]');

    await chooser.setInputFiles([file('dot.png'), file('other.png')]);
    await page().getByRole('img', { name: 'dot.png' }).waitFor();
    await page().getByRole('img', { name: 'other.png' }).waitFor();
    await page().getByRole('button', { name: 'Leave the file out' }).last().click();
    await say('What is it?');
    await messages().getByText('A dot.').first().waitFor();

    await messages().getByRole('img', { name: 'dot.png' }).waitFor();
    expect(await page().getByRole('img', { name: 'other.png' }).count()).toBe(0);
    expect(provider.requests.at(-1)?.body.messages.at(-1).content).toEqual([
      { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } },
      { type: 'text', text: 'What is it?' },
    ]);
    await seen('chat-files');
  });

  test('pictures of tools and of models are shown, and can be saved', async () => {
    await api('POST', '/api/agents', { id: 'painter', skills: ['thinking/*'] });
    const puts = [
      { name: 'plan.png', base64: png.toString('base64') },
      { name: 'notes.txt', base64: Buffer.from('A dot.').toString('base64') },
    ];
    const pictures = [png.toString('base64')];
    const call = { name: toolNamed('thinking/v1.0/files'), input: { puts } };
    provider.script(inTurn({ toolCalls: [call] }, { pictures }));
    await world.open('/agents/painter');
    await say('Draw a dot.');

    await messages().getByRole('img', { name: 'plan.png' }).waitFor();
    const made = messages().getByRole('img', { name: /^picture-.+[.]png$/ });
    await made.waitFor();
    expect(
      await messages()
        .getByText(/^\[picture-/)
        .count(),
    ).toBe(0);
    const saving = page().waitForEvent('download');
    await messages().getByRole('button', { name: 'notes.txt' }).click();
    const saved = await saving;
    expect(saved.suggestedFilename()).toBe('notes.txt');
    expect(readFileSync(await saved.path(), 'utf8')).toBe('A dot.');
    await seen('chat-made-files');
  });

  test('a message waits for its files, and a file of one that was left is not in the next', async () => {
    const kept = Promise.withResolvers<void>();
    await page().route('**/api/files?*', async (route) => {
      await kept.promise;
      await route.continue();
    });
    provider.script(answering('A quay.'));
    await world.open('/agents/harbour');
    await say('Which quay?');
    await messages().getByText('A quay.').first().waitFor();
    await page().getByRole('button', { name: 'Edit' }).click();
    const file = { name: 'late.png', mimeType: 'image/png', buffer: png };
    await page().locator('input[type=file]').setInputFiles([file]);
    await page().getByText('Files are being sent').waitFor();

    const send = page().getByRole('button', { name: 'Send anew' });
    expect(await send.isDisabled()).toBe(true);
    await message().press('Enter');
    expect(await message().inputValue()).toBe('Which quay?');
    await page().getByRole('button', { name: 'Leave it' }).click();
    await page().getByText('Files are being sent').waitFor({ state: 'detached' });
    const answered = page().waitForResponse((one) => one.url().includes('/api/files?'));
    kept.resolve();
    await answered;
    await page().unroute('**/api/files?*');
    await say('And which ship?');
    await messages().getByText('And which ship?').waitFor();
    expect(await page().getByRole('img', { name: 'late.png' }).count()).toBe(0);
  });

  test('an answer streams, is Markdown without HTML, and is told once it is whole', async () => {
    const rest = Promise.withResolvers<void>();
    provider.script(answering(markdown, { piece: 40, hold: { after: 3, until: rest.promise } }));
    await world.open('/agents/harbour');
    await message().fill('When is it open?');
    await page().keyboard.press('Shift+Enter');
    await page().keyboard.type('And where?');
    await page().keyboard.press('Enter');

    await messages().getByRole('heading', { name: 'Opening hours' }).waitFor();
    await page().getByRole('button', { name: 'Stop' }).waitFor();
    expect(await messages().getByRole('table').count()).toBe(0);
    expect(await message().inputValue()).toBe('');
    await page().waitForURL(/conversation=/);
    rest.resolve();
    await messages().getByRole('table').waitFor();
    await page().getByRole('status').filter({ hasText: 'Answer: # Opening hours' }).waitFor();

    await messages()
      .getByText('When is it open? And where?')
      .or(messages().getByText('And where?'))
      .first()
      .waitFor();
    const links = await messages()
      .getByRole('link')
      .evaluateAll((all) =>
        all.map(
          (one) => `${one.textContent} ${one.getAttribute('href')} ${one.getAttribute('rel')}`,
        ),
      );
    const rel = 'noopener noreferrer nofollow';
    expect(links).toEqual([
      `the notice https://example.com/notice ${rel}`,
      `Image: boat https://example.com/boat.png ${rel}`,
    ]);
    await messages().getByText('<b onclick="x">raw</b> [bad](javascript:alert(1))').waitFor();
    await page().getByRole('button', { name: 'Copy code in sh' }).waitFor();
    expect(await messages().locator('img, b').count()).toBe(0);
    await seen('chat');
  });

  test('a tool that needs approval is decided in the chat, and becomes a card', async () => {
    provider.script(
      callingTools([{ name: toolNamed('util/v1.0/echo'), input: { text: 'quay' } }], 'Here it is.'),
    );
    await world.open('/agents/harbour');
    await say('Say quay.');

    await page().getByRole('button', { name: 'Approve' }).waitFor();
    await seen('chat-approval');
    await page().getByRole('button', { name: 'Approve' }).click();
    await dialogOf(page()).getByRole('button', { name: 'Approve' }).click();
    await messages().getByText('Here it is.').waitFor();
    const card = messages().locator('details').filter({ hasText: 'util/v1.0/echo' });
    await card
      .getByText(/\d+ (ms|s|min)/)
      .first()
      .waitFor();
    await card.locator('summary').click();
    await card.getByRole('region', { name: 'Came back' }).waitFor();
    await seen('chat-tool');
  });

  test('what an agent below asks is decided in the chat, too', async () => {
    await api('POST', '/api/agents', { id: 'desk', agents: ['harbour'] });
    provider.script(({ tools, toolResults }) => {
      if (toolResults.length > 0) return { text: 'It is said.' };
      const task = { name: 'agent__harbour', input: { task: 'Say quay.' } };
      const call = { name: toolNamed('util/v1.0/echo'), input: { text: 'quay' } };
      return { toolCalls: [tools.includes(task.name) ? task : call] };
    });
    await world.open('/agents/desk');
    await say('Have it said.');

    await page().getByRole('button', { name: 'Approve' }).click();
    await dialogOf(page()).getByRole('button', { name: 'Approve' }).click();

    await messages().getByText('It is said.').last().waitFor();
  });

  test('a chat stays at its end while what it shows grows, as pictures do once they are loaded', async () => {
    await world.open('/agents/harbour');
    const box = page().getByRole('region', { name: 'Messages of the chat' });
    // The event of an earlier scroll to the end comes before the page has seen that there is more.
    const grow = () =>
      box.evaluate((element) => {
        const more = element.ownerDocument.createElement('div');
        more.style.height = '2000px';
        element.firstElementChild?.append(more);
        element.dispatchEvent(new Event('scroll'));
      });
    const fromEnd = () =>
      box.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight);

    await grow();
    await grow();

    await expect.poll(fromEnd).toBeLessThan(48);
    expect(await box.evaluate((element) => element.scrollTop)).toBeGreaterThan(2_000);
    await box.evaluate((element) => element.scrollTo({ top: 0 }));
    await page().getByRole('button', { name: 'To the newest' }).waitFor();
  });

  test('the trace of a run has its steps as a tree, with tokens, and the jobs of other agents', async () => {
    await api('POST', '/api/agents', { id: 'tides', description: 'Knows the tides.' });
    await api('POST', '/api/agents', { id: 'pilot', agents: ['tides'], skills: ['text/*'] });
    provider.script(({ tools, toolResults }) =>
      tools.includes('agent__tides') && toolResults.length === 0
        ? { toolCalls: [{ name: 'agent__tides', input: { task: 'When?' } }] }
        : { text: 'At noon.' },
    );
    const { id } = await api('POST', '/api/files?name=tides.json', { low: '6:00' });
    const { body: job } = await world.platform.run(
      world.key,
      'agent/v1.0/run-task',
      { task: 'When is the water high?', files: [id] },
      { 'x-agent-id': 'pilot' },
    );
    expect(job.status).toBe('completed');

    await world.open(`/jobs/${job.job_id}`);
    const trace = page().getByRole('table', { name: 'Timeline of the job' });
    const tool = trace.getByRole('row', { name: /agent\/tides/ }).first();
    await expect.poll(() => tool.textContent()).toMatch(/\d+ tokens/);
    const rows = await trace.getByRole('row').count();
    await trace
      .getByRole('button', { name: /^Hide the steps below openai/ })
      .first()
      .click();
    expect(await trace.getByRole('row').count()).toBe(rows - 2);
    await trace.getByRole('button', { name: /^Show the steps below openai/ }).click();
    await trace.getByRole('button', { name: 'openai/test', exact: true }).first().click();
    await page().getByText('tides.json as its text').waitFor();
    await trace.getByRole('button', { name: 'agent/tides', exact: true }).last().click();
    await page().getByRole('button', { name: 'Show the steps of this job' }).click();
    const started = page().getByRole('table', { name: 'Timeline of a job that it started' });
    await started.getByRole('row', { name: /openai/ }).waitFor();
    await seen('trace');
  });

  test('an answer is stopped, and given again', async () => {
    const never = Promise.withResolvers<void>();
    provider.script(answering('It will be long', { hold: { after: 1, until: never.promise } }));
    await world.open('/agents/harbour');
    await say('Tell me a story.');
    await messages().getByText('It will').waitFor();
    await page().getByRole('button', { name: 'Stop' }).click();
    await messages()
      .getByText(/The job was cancelled/)
      .waitFor();
    never.resolve();
    provider.script(answering('Once upon a time.'));
    await page().getByRole('button', { name: 'Try again' }).click();
    await messages().getByText('Once upon a time.').waitFor();
    expect(await messages().getByText('Tell me a story.').count()).toBe(2);
  });

  test('a message is sent while the agent works, and another one stops it', async () => {
    const first = Promise.withResolvers<void>();
    provider.script(answering('It will be long', { hold: { after: 1, until: first.promise } }));
    await world.open('/agents/harbour');
    await say('Tell me of whales.');
    await messages().getByText('It will').waitFor();
    await say('And of gulls.');
    await messages().getByText('And of gulls.').waitFor();
    provider.script(answering('Gulls laugh.'));
    first.resolve();
    await messages().getByText('Gulls laugh.').waitFor();

    const never = Promise.withResolvers<void>();
    provider.script(answering('Once there was', { hold: { after: 1, until: never.promise } }));
    await say('A tale, please.');
    await messages().getByText('Once', { exact: false }).first().waitFor();
    provider.script(answering('Seals sleep.'));
    await message().fill('Rather of seals.');
    await page().getByRole('button', { name: 'Stop and send' }).click();
    await messages().getByText('Seals sleep.').waitFor();
    never.resolve();
    await messages().getByText('The job was cancelled').waitFor();
  });

  test('a message reaches the run after the tools under way, and is shown once', async () => {
    await api('POST', '/api/agents', { id: 'quay', skills: ['util/*'] });
    const until = Promise.withResolvers<void>();
    provider.script(({ toolResults }) =>
      toolResults.length > 0
        ? { text: 'A table for two.' }
        : {
            text: 'I look it up',
            hold: { after: 1, until: until.promise },
            toolCalls: [{ name: toolNamed('util/v1.0/echo'), input: { text: 'table' } }],
          },
    );
    await world.open('/agents/quay');
    await say('A table, please.');
    await messages().getByText('I look', { exact: false }).first().waitFor();
    await message().fill('For two.');
    await page().getByText('Send to this run reaches the agent').waitFor();
    await seen('chat-steer');
    await page().getByRole('button', { name: 'Send to this run' }).click();
    await messages().getByText('For two.').waitFor();
    until.resolve();

    await messages().getByText('A table for two.').waitFor();
    await page().getByRole('button', { name: 'Send', exact: true }).waitFor();
    expect(await messages().getByText('For two.', { exact: true }).count()).toBe(1);
    expect(JSON.stringify(provider.requests.at(-1)?.messages)).toContain('For two.');
  });

  test('a message is written anew, and an answer given again, and what was said stays', async () => {
    provider.script(answering('Cod.'));
    await world.open('/agents/harbour');
    await say('Which fish is there?');
    await messages().getByText('Cod.').waitFor();
    provider.script(answering('Herring.'));
    await say('And which else?');
    await messages().getByText('Herring.').waitFor();
    const first = page().url();

    provider.script(answering('Crab.'));
    await messages().getByRole('button', { name: 'Edit' }).last().click();
    expect(await message().inputValue()).toBe('And which else?');
    await message().fill('And which crabs?');
    await seen('chat-anew');
    await page().getByRole('button', { name: 'Send anew' }).click();
    await messages().getByText('Crab.').waitFor();
    expect(await messages().getByText('Herring.').count()).toBe(0);
    expect(await messages().getByText('Cod.').count()).toBe(1);
    expect(page().url()).not.toBe(first);

    provider.script(answering('Lobster.'));
    await messages().getByRole('button', { name: 'Answer again' }).last().click();
    await messages().getByText('Lobster.').waitFor();
    expect(await messages().getByText('And which crabs?').count()).toBe(1);
    await world.open(first.slice(first.indexOf('/agents/')));
    await messages().getByText('Herring.').waitFor();

    provider.script(answering('None today.'));
    await messages().getByRole('button', { name: 'Edit' }).first().click();
    await message().fill('Is there fish?');
    await page().getByRole('button', { name: 'Send anew' }).click();
    await messages().getByText('None today.').waitFor();
    expect(await messages().getByText('Cod.').count()).toBe(0);
  });

  test('unsaved instructions count in the chat alone, are compared and saved', async () => {
    provider.script(answering('Aye.'));
    await world.open('/agents/harbour');
    const instructions = page().getByLabel('Instructions', { exact: true });
    await instructions.fill('Be brief.\nTalk like a sailor.');
    await page().getByText('Compare with the saved ones').click();
    const difference = page().getByRole('region', { name: 'Difference of the instructions' });
    expect(await difference.textContent()).toBe(
      'Be brief.Removed: Be kind.Added: Talk like a sailor.',
    );
    await say('Ahoy?');
    await messages().getByText('Aye.').waitFor();
    await messages().getByRole('link', { name: 'Unsaved instructions' }).waitFor();
    expect(provider.requests.at(-1)?.system).toContain('Talk like a sailor.');
    expect((await api('GET', '/api/agents/harbour')).instructions).toContain('Be kind.');
    await seen('chat-trial');
    await messages().getByRole('link', { name: 'Unsaved instructions' }).click();
    await page()
      .getByRole('region', { name: 'Settings of this run' })
      .getByText('sailor')
      .waitFor();
    await page().goBack();
    await messages().getByText('Aye.').waitFor();

    await page().reload();
    expect(await instructions.inputValue()).toContain('sailor');
    await page().getByRole('button', { name: 'Save', exact: true }).click();
    await page().getByText('The agent is saved').waitFor();
    expect((await api('GET', '/api/agents/harbour')).instructions).toContain('sailor');
  });

  test('a conversation is continued from its page, and what is typed survives a reload', async () => {
    provider.script(answering('Yes.'));
    const { body } = await world.platform.run(
      world.key,
      'agent/v1.0/run-task',
      { task: 'Is the ferry in?' },
      { 'x-agent-id': 'harbour' },
    );
    await world.open(`/conversations/${body.conversation_id}`);
    await page().getByRole('link', { name: 'Continue' }).click();
    await messages().getByText('Is the ferry in?').waitFor();
    await message().fill('And the pilot');
    await page().reload();
    await messages().getByText('Yes.').waitFor();
    expect(await message().inputValue()).toBe('And the pilot');
    await page().getByLabel('User').fill('Æda');
    await say('And the pilot?');
    await expect.poll(() => messages().getByText('Yes.').count()).toBe(2);
    const { data } = await api(
      'GET',
      `/api/jobs?conversation_id=${body.conversation_id}&include=timing`,
    );
    expect(data[0].user_id).toBe('Æda');
    const list = page().getByRole('navigation', { name: 'Conversations of the agent' });
    expect(await list.locator('[aria-current=page]').textContent()).toContain('Is the ferry in?');
    await page().getByRole('link', { name: 'New', exact: true }).click();
    await page().getByText('Write to Harbour office').waitFor();
  });
});
