/**
 * The pages on agents that think, on what they use and remember, and on runs that wait, say what is so: their commands are
 * run as they are written, against a platform whose provider is scripted, and the skill that they
 * show is loaded and run.
 */
import { execFile } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adminSecret, type Platform, startPlatform } from '../support/platform.ts';
import {
  type Reply,
  type ScriptedProvider,
  type ScriptedRequest,
  startScriptedProvider,
} from '../support/scripted-provider.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { environmentOf } from '../support/thinkers.ts';

const docs = join(import.meta.dirname, '../../docs');
const page = (name: string) => readFileSync(join(docs, `${name}.md`), 'utf8');

/** The blocks of a language in a section, or in the whole page. */
function blocksOf(text: string, language: string, title?: string): string[] {
  const part =
    title === undefined
      ? text
      : text.split(/^## /m).find((section) => section.startsWith(`${title}\n`));
  const blocks = part?.matchAll(/^```(\w*)\n(.*?)^```$/gms) ?? [];
  return [...blocks].flatMap(([, name, code]) => (name === language ? [code as string] : []));
}

/** A model that counts words with a tool, sorts tickets and texts, and remembers events. */
function answer({ system, messages, toolResults, tools }: ScriptedRequest): Reply {
  const isToAnswer = toolResults.length > 0;
  const said = String(messages.at(-1)?.content ?? '');
  if (system.includes('"rivers"')) return { text: '{"rivers": ["Seine", "Loire", "Rhône"]}' };
  if (system.includes('You classify a text'))
    return { text: '{"reason": "It asks for money back.", "label": "refund"}' };
  if (system.includes('Sort the ticket')) return { text: '{"team": "billing", "urgent": true}' };
  if (system.includes('An event has arrived')) {
    return isToAnswer
      ? { text: 'Remembered.' }
      : { toolCalls: [{ name: 'remember', input: { content: 'The ship Ada has moored.' } }] };
  }
  if (isToAnswer)
    return { text: system.includes('"words"') ? '{"words": 6}' : 'It has six words.' };
  if (!tools.includes('text__word-count__v1_0')) return { text: 'Your money is on its way.' };
  return { toolCalls: [{ name: 'text__word-count__v1_0', input: { text: said } }] };
}

let directory: string;
let provider: ScriptedProvider;
let platform: Platform;
let tenant: Tenant;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'skillwright-documents-'));
  mkdirSync(join(directory, 'skills'));
  const [module = ''] = blocksOf(page('skills'), 'ts', 'Call a model');
  writeFileSync(join(directory, 'skills/triage.ts'), module);
  const [refund = ''] = blocksOf(page('durable'), 'ts', 'Quickstart: an approval');
  writeFileSync(join(directory, 'skills/refund.ts'), refund);
  provider = await startScriptedProvider({ script: answer });
  platform = await startPlatform({
    environment: { ...environmentOf(provider), SKILLS_DIR: join(directory, 'skills') },
  });
  tenant = await newTenant(platform);
});
afterAll(async () => {
  await platform.stop();
  await provider.close();
  rmSync(directory, { recursive: true, force: true });
});

/** What shell code prints, with the platform's address and secrets, for each block. */
async function printedBy(blocks: readonly string[]): Promise<string[]> {
  const code = blocks
    .map((block) => `echo; echo 'block'\n${block}`)
    .join('\n')
    .replaceAll('http://127.0.0.1:3000', platform.url);
  const { stdout, stderr } = await promisify(execFile)(
    'bash',
    ['--norc', '-euo', 'pipefail', '-c', code],
    {
      cwd: directory,
      env: { ...process.env, KEY: tenant.key, ADMIN_SECRET: adminSecret },
    },
  );
  expect(stderr).toBe('');
  return stdout
    .split(/^block$/m)
    .slice(1)
    .map((text) => text.trim());
}

test('the commands of the pages on agents create one, run tasks, follow one and continue it', async () => {
  const guide = blocksOf(page('agents'), 'sh').filter((block) => !block.includes('npm start'));
  const [changes = '', setting = '', standingIn = '', following = ''] = blocksOf(
    page('agents-reference'),
    'sh',
  );

  const printed = await printedBy([
    ...guide.slice(0, 2),
    setting,
    standingIn,
    changes,
    ...guide.slice(2),
    following,
    ...blocksOf(page('guards'), 'sh'),
  ]);
  const [agent, values, settings, fallbacks, versions, task, withSchema, trial] = printed;
  const [called, asking, goneOn, stream = '', guarded] = printed.slice(8);

  expect(JSON.parse(agent ?? '')).toMatchObject({ id: 'harbour', model: null });
  expect(JSON.parse(values ?? '')).toMatchObject({ variables: { company: 'Harbour Ltd' } });
  expect(JSON.parse(settings ?? '')).toMatchObject({ id: 'harbour' });
  expect(JSON.parse(fallbacks ?? '')).toMatchObject({ id: 'harbour' });
  // Three bodies: of the list, of a version compared with the first, and of the agent as it was at first.
  expect(JSON.parse(`[${versions?.replaceAll('}{', '},{')}]`)).toMatchObject([
    { total: 4 },
    { version: 2 },
    { id: 'harbour', version: 5 },
  ]);
  expect(JSON.parse(task ?? '')).toMatchObject({
    status: 'completed',
    output: { answer: 'It has six words.' },
  });
  expect(JSON.parse(trial ?? '')).toMatchObject({ status: 'completed' });
  // Two bodies, of the agent that is made and of the one that is changed.
  expect(JSON.parse(`[${called?.replace('}{', '},{')}]`)).toMatchObject([
    { id: 'tides' },
    { id: 'harbour', agents: ['tides'] },
  ]);
  expect(JSON.parse(withSchema ?? '')).toMatchObject({
    status: 'completed',
    output: { answer: '{"words": 6}', output: { words: 6 } },
  });
  expect(JSON.parse(asking ?? '')).toMatchObject({
    id: 'harbour',
    approvals: ['web/v1.0/http-request', 'web/v1.0/fetch-page'],
  });
  expect(JSON.parse(guarded ?? '')).toMatchObject({
    guards: [{ on: ['message', 'tool_result'] }, { on: ['message', 'answer'] }],
  });
  for (const type of ['status', 'tool_call', 'tool_result', 'token', 'message']) {
    expect(stream).toContain(`\nevent: ${type}\n`);
  }
  expect(stream).toContain('"output":{"words":');
  const job = JSON.parse(goneOn ?? '');
  expect(job).toMatchObject({
    status: 'completed',
    input: { task: expect.stringMatching(/^And/) },
  });
  const messages = await tenant.get(`/api/conversations/${job.conversation_id}/messages`);
  expect(messages.body).toHaveLength(8);
});

test('the commands of the page on failures show a job, its steps and its events', async () => {
  const [shown = ''] = await printedBy(blocksOf(page('when-it-fails'), 'sh'));

  expect(shown).toMatch(/"status":"(?:queued|active|completed)"/);
  expect(shown).toContain('"total":');
  expect(shown).toContain('event: status');
});

describe('the stream that the page on agents shows', () => {
  test('has the events of a real one, in their order and with their fields', async () => {
    const [shown = ''] = blocksOf(page('agents-reference'), '', 'Event stream');
    await tenant.post('/api/agents', { id: 'counter', skills: ['text/*'] });
    const named = { 'x-agent-id': 'counter' };
    const id = await tenant.start('agent/v1.0/run-task', { task: 'Count.' }, named);
    await tenant.jobIn(id, 'completed');
    const real = (await tenant.get(`/api/jobs/${id}/events`)).text;
    expect(shapesIn(shown)).toEqual(shapesIn(real));
  });
});

/** Of each event its type and the names in its data, several pieces in a row as one. */
function shapesIn(stream: string): string[] {
  const events = [...stream.matchAll(/^event: (\w+)\ndata: (.*)$/gm)];
  const shapes = events.map(([, type, data]) => `${type} ${Object.keys(JSON.parse(data ?? ''))}`);
  return shapes.filter((shape, i) => shape !== shapes[i - 1]);
}

test('the trigger without a skill has its agent handle the event', async () => {
  const printed = await printedBy(blocksOf(page('triggers'), 'sh', 'Let an agent handle events'));

  const id = /"job_id":"([^"]+)"/.exec(printed.join())?.[1] ?? '';
  const { body: job } = await tenant.jobIn(id, 'completed', 'failed');
  expect(job).toMatchObject({
    status: 'completed',
    skill_name: 'handle-event',
    trigger_type: 'webhook',
    output: { answer: 'Remembered.' },
  });
  const memories = (await tenant.get('/api/agents/lookout/memories')).body;
  expect(memories.data).toMatchObject([{ content: 'The ship Ada has moored.' }]);
});

test('the commands of the page on usage make an agent and limit it', async () => {
  const [shown = ''] = blocksOf(page('usage'), 'json');

  const [agent, usage, budget] = await printedBy(blocksOf(page('usage'), 'sh'));

  expect(JSON.parse(agent ?? '')).toMatchObject({ id: 'support' });
  const { days: _, ...asked } = JSON.parse(usage ?? '');
  const { days: __, ...expected } = JSON.parse(shown);
  expect(namesIn(asked)).toEqual(namesIn(expected));
  expect(asked).toMatchObject({ agent_id: 'support', from: expected.from, to: expected.to });
  expect(JSON.parse(budget ?? '')).toMatchObject({
    tokens_per_day: 50_000,
    tokens_per_month: 1_000_000,
  });
});

test('the days that the page on usage shows have the fields of real ones', async () => {
  const [shown = ''] = blocksOf(page('usage'), 'json');
  await tenant.post('/api/agents', { id: 'busy' });
  await tenant.run('agent/v1.0/run-task', { task: 'Hello.' }, { 'x-agent-id': 'busy' });

  const { body } = await tenant.get('/api/agents/busy/usage');

  expect(body.days).toHaveLength(1);
  for (const day of JSON.parse(shown).days) expect(namesIn(day)).toEqual(namesIn(body.days[0]));
});

/** The names of all fields, inner ones too. */
function namesIn(value: object): string[] {
  return Object.entries(value).flatMap(([name, inner]) =>
    typeof inner === 'object' && inner !== null
      ? [name, ...namesIn(inner).map((one) => `${name}.${one}`)]
      : [name],
  );
}

test('the commands of the page on credentials store a key and an address', async () => {
  // The page stores them for the organization of keys that name none.
  await platform.key();

  const [key, address] = await printedBy(blocksOf(page('credentials'), 'sh'));

  expect(JSON.parse(key ?? '')).toMatchObject({ provider: 'openai', has_api_key: true });
  expect(JSON.parse(address ?? '')).toMatchObject({
    provider: 'ollama',
    base_url: 'http://127.0.0.1:11434/v1',
    has_api_key: false,
  });
});

test('the commands of the page on memories add one and find it', async () => {
  const commands = blocksOf(page('memories'), 'sh').filter((block) => !block.includes('npm start'));
  const [added, found] = await printedBy(commands);

  const memory = JSON.parse(added ?? '');
  expect(memory).toMatchObject({ tag: 'preference', metadata: { customer: 'ada' } });
  expect(JSON.parse(found ?? '')).toMatchObject({ data: [{ id: memory.id }], total: 1 });
});

test('the commands of the page on skills run those of the catalog that think', async () => {
  const commands = blocksOf(page('skills'), 'sh', 'Catalog skills that call a model');

  const [task, choice] = await printedBy(commands);

  expect(JSON.parse(task ?? '')).toMatchObject({
    status: 'completed',
    output: { output: { rivers: ['Seine', 'Loire', 'Rhône'] } },
  });
  expect(JSON.parse(choice ?? '')).toMatchObject({
    status: 'completed',
    output: { label: 'refund' },
  });
});

test('the commands of the page on runs that wait start a refund, and approve it', async () => {
  const [started] = await printedBy(blocksOf(page('durable'), 'sh', 'Quickstart: an approval'));
  const [event] = await printedBy(blocksOf(page('durable'), 'sh', 'Events'));

  expect(started).toContain('"status":"approved"');
  expect(started).toContain('"output":{"state":"refunded","receipt":"A-17-40"}');
  expect(JSON.parse(event ?? '')).toMatchObject({ event_id: expect.any(String), delivered: 0 });
});

test('no page names the platform by a variable that it does not define', () => {
  const names = globSync('*.md', { cwd: docs }).map((file) => basename(file, '.md'));
  expect(names).toContain('usage');
  for (const name of names) expect(page(name), name).not.toContain('$URL');
});

test('the skill that asks a model sorts a ticket and drafts an answer', async () => {
  const { body } = await tenant.run('tickets/v1.0/triage', { ticket: 'I paid twice.' });

  expect(body).toMatchObject({
    status: 'completed',
    output: { team: 'billing', urgent: true, draft: 'Your money is on its way.' },
  });
});
