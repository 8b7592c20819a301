/** Tools of `@modelcontextprotocol/server-everything` as skills: the server of others that uses all of the protocol. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { toolFile } from '../../scripts/tools.ts';
import { follow } from '../support/event-stream.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { callingTools, startScriptedProvider } from '../support/scripted-provider.ts';
import { startStaged } from '../support/staged.ts';
import { environmentOf, newThinker, thinkersSkills, toolNamed } from '../support/thinkers.ts';
import { areToolsHere } from '../support/tools.ts';
import { waitFor } from '../support/wait-for.ts';

const here = await areToolsHere('scripts/tools/checks');
const program = toolFile(
  'scripts/tools/checks',
  '@modelcontextprotocol/server-everything/dist/index.js',
);

let platform: Platform;
let key: string;
beforeAll(async () => {
  platform = await startStaged({
    environment: { SKILLS_ALLOW_CIDRS: '127.0.0.0/8', MCP_COMMANDS: 'on' },
  });
  key = await platform.key();
});
afterAll(() => platform.stop());

async function add(fields: Record<string, unknown>): Promise<void> {
  const all = { organizations: ['*'], ...fields };
  const { status, text, body } = await platform.admin('POST', '/admin/mcp-servers', all);
  expect(status, text).toBe(201);
  expect(body).toMatchObject({ status: 'available', left_out: [] });
}

/** A server over HTTP, on a free port. */
async function startOverHttp(): Promise<string> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  const child = spawn(process.execPath, [program, 'streamableHttp'], {
    env: { PATH: process.env['PATH'] ?? '', PORT: String(port) },
    stdio: 'ignore',
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}/mcp`;
  const isThere = () =>
    fetch(url).then(
      () => true,
      () => false,
    );
  await waitFor(isThere, { describe: 'the server to listen' });
  return url;
}

const pendingOf = (jobId: string) =>
  waitFor(
    async () => {
      const path = `/api/approvals?status=pending&job_id=${jobId}`;
      const { body } = await platform.request('GET', path, { key });
      return body.data.length > 0 ? body.data : null;
    },
    { describe: 'a pending approval' },
  );

async function journey(category: string): Promise<void> {
  const run = async (skill: string, input: unknown) =>
    (await platform.run(key, `${category}/v1.0/${skill}`, input)).body;
  expect(await run('echo', { message: 'hello' })).toMatchObject({
    status: 'completed',
    output: { content: [{ type: 'text', text: 'Echo: hello' }] },
  });
  expect(await run('get-structured-content', { location: 'Chicago' })).toMatchObject({
    status: 'completed',
    output: { temperature: expect.any(Number) },
  });
  expect(await run('get-structured-content', { location: 'Atlantis' })).toMatchObject({
    error: 'validation_error',
  });
  const uri = 'demo://resource/dynamic/text/1';
  expect(await run('read-resource', { uri })).toMatchObject({
    status: 'completed',
    output: { contents: [{ uri }] },
  });
  const env = await run('get-env', {});
  expect(JSON.stringify(env.output)).not.toContain('ADMIN_SECRET');
}

describe.skipIf(!here)('the tools of a server', () => {
  test('that is a command are skills, in a child without our environment', async () => {
    await add({ name: 'command', command: process.execPath, args: [program, 'stdio'] });
    await journey('mcp-command');
  });

  test('over HTTP are skills', async () => {
    await add({ name: 'http', url: await startOverHttp() });
    await journey('mcp-http');
  });

  test('of the newest revision are skills: the platform imported into itself', async () => {
    const headers = { authorization: `Bearer ${key}` };
    const fields = { name: 'itself', organizations: ['*'], url: `${platform.url}/mcp`, headers };
    const { body } = await platform.admin('POST', '/admin/mcp-servers', fields);
    expect(body).toMatchObject({ status: 'available', server: { protocol: '2026-07-28' } });
    const text = 'through the protocol';
    const answer = await platform.run(key, 'mcp-itself/v1.0/util-echo', { text });
    expect(answer.body).toMatchObject({ status: 'completed', output: { text } });
    const refused = {
      name: 'refused',
      url: `${platform.url}/mcp`,
      organizations: ['*'],
      headers: { authorization: 'Bearer none' },
    };
    const { body: without } = await platform.admin('POST', '/admin/mcp-servers', refused);
    expect(without.fault).toContain('refused the credentials (401)');
  });

  test('pass their progress on, and end when their job is cancelled', async () => {
    await add({ name: 'slow', command: process.execPath, args: [program, 'stdio'] });
    const path = '/api/mcp-slow/v1.0/trigger-long-running-operation';
    const body = { duration: 20, steps: 100 };
    const { body: accepted } = await platform.request('POST', path, { key, body });
    const stream = await follow(`${platform.url}/api/jobs/${accepted.job_id}/events`, {
      'x-api-key': key,
    });
    const progress = await stream.event(({ event }) => event === 'progress', 'progress');
    expect(progress.data).toMatchObject({ fraction: expect.any(Number) });
    stream.leave();
    await platform.request('POST', `/api/jobs/${accepted.job_id}/cancel`, { key });
    const { body: job } = await platform.jobIn(key, accepted.job_id, 'cancelled');
    expect(job.status).toBe('cancelled');
    // Another child takes the next call.
    const answer = await platform.run(key, 'mcp-slow/v1.0/echo', { message: 'again' });
    expect(answer.body.status).toBe('completed');
  });

  test('ask a person in the middle of a call, whose answers they get', async () => {
    await add({ name: 'asking', command: process.execPath, args: [program, 'stdio'] });
    const path = '/api/mcp-asking/v1.0/trigger-elicitation-request';
    const begin = async () =>
      (await platform.request('POST', path, { key, body: {} })).body.job_id as string;
    const first = await begin();
    const [approval] = await pendingOf(first);
    // Another call meanwhile is of another child, so it is clear which of them asks.
    const second = await begin();
    const [other] = await pendingOf(second);
    const { body: echoed } = await platform.run(key, 'mcp-asking/v1.0/echo', { message: 'hello' });
    expect(echoed.status).toBe('completed');
    expect(approval.fields.properties.name).toMatchObject({ type: 'string' });
    const answer = { name: 'Ms. Okafor', check: true };
    const decide = (id: string, verb: string, body: object) =>
      platform.request('POST', `/api/approvals/${id}/${verb}`, { key, body });
    expect((await decide(approval.approval_id, 'approve', { answer })).status).toBe(200);
    const { body: done } = await platform.jobIn(key, first, 'completed', 'failed');
    expect(JSON.stringify(done.output)).toContain('Ms. Okafor');
    await decide(other.approval_id, 'reject', {});
    const { body: refused } = await platform.jobIn(key, second, 'completed', 'failed');
    expect(JSON.stringify(refused.output)).toContain('declined');
  });

  test('are called by the model of an agent, with all of it on record', async () => {
    const provider = await startScriptedProvider();
    onTestFinished(() => provider.close());
    const environment = { ...environmentOf(provider), MCP_COMMANDS: 'on' };
    const thinkers = await startPlatform({ skillsDirs: thinkersSkills, environment });
    onTestFinished(() => thinkers.stop());
    const command = { command: process.execPath, args: [program, 'stdio'] };
    const fields = { name: 'sums', organizations: ['*'], ...command };
    const { body: server } = await thinkers.admin('POST', '/admin/mcp-servers', fields);
    expect(server.status).toBe('available');
    const skill = 'mcp-sums/v1.0/get-sum';
    const clerk = await newThinker(thinkers, { skills: [skill] });
    provider.script(
      callingTools([{ name: toolNamed(skill), input: { a: 19, b: 23 } }], 'It is 42.'),
    );

    const job = await clerk.task('How much is 19 and 23?');

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'It is 42.' } });
    const [asked, answered] = provider.requests;
    expect(JSON.stringify(asked?.body)).toContain('Returns the sum of two numbers');
    expect(JSON.stringify(answered?.body)).toContain('The sum of 19 and 23 is 42.');
    const steps = await clerk.steps(job.job_id);
    expect(steps.map(({ kind, name, status }) => [kind, name, status])).toEqual([
      ['model', 'openai/test', 'completed'],
      ['tool', skill, 'completed'],
      ['model', 'openai/test', 'completed'],
    ]);
    const messages = await clerk.messages(job.conversation_id);
    expect(messages.map(({ role }: { role: string }) => role)).toEqual([
      ...['user', 'assistant', 'tool', 'assistant'],
    ]);
    expect(JSON.stringify(messages[2])).toContain('The sum of 19 and 23 is 42.');
    const { breakdown, total_tokens } = await clerk.tokens(job.conversation_id);
    const calls = steps.filter(({ kind }) => kind === 'model');
    const sum = (rows: { prompt_tokens: number; completion_tokens: number }[]) =>
      rows.reduce((all, one) => all + one.prompt_tokens + one.completion_tokens, 0);
    expect(total_tokens).toBeGreaterThan(0);
    expect([sum(breakdown), sum(calls)]).toEqual([total_tokens, total_tokens]);
  });

  test('that is a command end with their platform', async () => {
    const own = await startStaged({ environment: { MCP_COMMANDS: 'on' } });
    const marker = `m-${Date.now()}`;
    const command = { command: process.execPath, args: [program, 'stdio', marker] };
    const fields = { name: 'own', organizations: ['*'], ...command };
    expect((await own.admin('POST', '/admin/mcp-servers', fields)).body.status).toBe('available');
    expect(childrenWith(marker)).toHaveLength(1);
    await own.stop();
    await waitFor(() => childrenWith(marker).length === 0, { describe: 'the child to end' });
  });
});

/** Ids of the children of this process whose command line has a text. */
function childrenWith(text: string): string[] {
  return readdirSync('/proc').filter((id) => {
    if (!/^\d+$/.test(id)) return false;
    try {
      const parent = /^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${id}/status`, 'utf8'))?.[1];
      const isOurs = parent === String(process.pid);
      return isOurs && readFileSync(`/proc/${id}/cmdline`, 'utf8').includes(text);
    } catch {
      return false;
    }
  });
}
