/** Outside servers that ask their caller during a call: a person answers an approval with a form. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  type AskingServer,
  sizeForm,
  type sizeQuestion,
  startAskingServer,
  startHoldingServer,
} from '../support/asking-server.ts';
import { follow } from '../support/event-stream.ts';
import { askMcp } from '../support/mcp.ts';
import { startMcpServer } from '../support/mcp-server.ts';
import type { Platform } from '../support/platform.ts';
import { callingTools } from '../support/scripted-provider.ts';
import { acting, dataDirectory, play, startStaged } from '../support/staged.ts';
import { newThinker, startThinkers, type Thinkers, toolNamed } from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

const environment = { SKILLS_ALLOW_CIDRS: '127.0.0.0/8' };
let world: Thinkers;
let platform: Platform;
let key: string;
beforeAll(async () => {
  world = await startThinkers({ environment });
  platform = world.platform;
  key = await platform.key();
});
afterAll(() => world.stop());

let made = 0;
/** Adds a server; the skill of its one tool. */
async function added(server: { url: string }, fields: object = {}, on = platform) {
  made += 1;
  const body = { name: `asks-${made}`, organizations: ['*'], url: server.url, ...fields };
  const answer = await on.admin('POST', '/admin/mcp-servers', body);
  expect(answer.body, answer.text).toMatchObject({ status: 'available' });
  return answer.body.skills[0].skill as string;
}

const begin = async (skill: string, input: object = { text: 'a' }) =>
  (await platform.request('POST', `/api/${skill}`, { key, body: input })).body.job_id as string;
const pendingOf = (jobId: string, on = platform, by = key) =>
  waitFor(
    async () => {
      const path = `/api/approvals?status=pending&job_id=${jobId}`;
      const { body } = await on.request('GET', path, { key: by });
      return body.data.length > 0 ? body.data : null;
    },
    { describe: 'a pending approval' },
  );
const decide = (id: string, verb: string, body: object = {}, on = platform, by = key) =>
  on.request('POST', `/api/approvals/${id}/${verb}`, { key: by, body });
const ended = async (jobId: string) =>
  (await platform.jobIn(key, jobId, 'completed', 'failed', 'cancelled')).body;

describe('a server that is called again with the answers', () => {
  test('waits for a person in a job that is unloaded', async () => {
    const server = await startAskingServer();
    const skill = await added(server);
    const job = await begin(skill, { item: 'cup' });
    await platform.jobIn(key, job, 'waiting');
    const [approval] = await pendingOf(job);
    expect(approval).toMatchObject({
      title: expect.stringMatching(/^asks-\d+ asks: Which size shall it be\?$/),
      details: { tool: 'order', input: { item: 'cup' }, message: 'Which size shall it be?' },
      fields: sizeForm,
    });
    expect((await decide(approval.approval_id, 'approve', { answer: {} })).status).toBe(400);
    const answer = { size: 'l', gift: true };
    expect((await decide(approval.approval_id, 'approve', { answer })).status).toBe(200);
    const answers = { size: { action: 'accept', content: answer } };
    expect(await ended(job)).toMatchObject({
      status: 'completed',
      attempt: 1,
      output: { answers },
    });
    expect(server.calls).toEqual([
      { answers: undefined, state: undefined },
      { answers, state: 'state-1' },
    ]);
  });

  test('is told what the person refuses, and is asked nothing that no form can show', async () => {
    const server = await startAskingServer();
    const skill = await added(server);
    const names = Array.from({ length: 51 }, (_, i) => [`field${i}`, { type: 'boolean' }]);
    const requestedSchema = { type: 'object', properties: Object.fromEntries(names) };
    server.questions = { ...server.questions, all: { message: 'All?', requestedSchema } };
    const job = await begin(skill);
    const [approval, ...others] = await pendingOf(job);
    expect(others).toEqual([]);
    await decide(approval.approval_id, 'reject', { reason: 'Too large' });
    const answers = { size: { action: 'decline' }, all: { action: 'decline' } };
    expect((await ended(job)).output).toEqual({ answers });
    const stream = await follow(`${platform.url}/api/jobs/${job}/events`, { 'x-api-key': key });
    const logged = (await stream.ended).filter(({ event }) => event === 'log');
    expect(logged[0]?.data.message).toContain('Its form has more than 50 fields');
  });

  test('goes on after a restart of the platform', async () => {
    const server = await startAskingServer();
    const stores = { environment: { ...environment, DATA_DIR: dataDirectory() } };
    const first = await startStaged(stores);
    const by = await first.key();
    const skill = await added(server, {}, first);
    const { body } = await first.request('POST', `/api/${skill}`, { key: by, body: {} });
    await first.jobIn(by, body.job_id, 'waiting');
    await first.stop();
    const second = await startStaged(stores);
    onTestFinished(() => second.stop());
    const [approval] = await pendingOf(body.job_id, second, by);
    await decide(approval.approval_id, 'approve', { answer: { size: 's' } }, second, by);
    const { body: job } = await second.jobIn(by, body.job_id, 'completed', 'failed');
    expect(job).toMatchObject({ status: 'completed', attempt: 1 });
    expect(server.calls).toHaveLength(2);
  });

  test('is cancelled with its job, and so is its approval', async () => {
    const server = await startAskingServer();
    const job = await begin(await added(server));
    await platform.jobIn(key, job, 'waiting');
    const [approval] = await pendingOf(job);
    await platform.request('POST', `/api/jobs/${job}/cancel`, { key });
    expect((await ended(job)).status).toBe('cancelled');
    const path = `/api/approvals/${approval.approval_id}`;
    expect((await platform.request('GET', path, { key })).body.status).toBe('cancelled');
    expect(server.calls).toHaveLength(1);
  });

  test.each<[string, (server: AskingServer) => Promise<{ job: string; by: string }>]>([
    [
      'the code of a skill calls it',
      async (server) => {
        const job = await begin(play, acting({ call: [await added(server), {}] }));
        return { job, by: key };
      },
    ],
    [
      'the model of an agent calls it',
      async (server) => {
        const skill = await added(server);
        const thinker = await newThinker(platform, { skills: [skill] });
        world.provider.script(
          callingTools([{ name: toolNamed(skill), input: {} }], 'It is ordered.'),
        );
        return { job: await thinker.begin('Order a cup.'), by: thinker.key };
      },
    ],
  ])('waits as well where %s', async (_, start) => {
    const server = await startAskingServer();
    const { job, by } = await start(server);
    await platform.jobIn(by, job, 'waiting');
    const [approval] = await pendingOf(job, platform, by);
    const body = { answer: { size: 's' } };
    await decide(approval.approval_id, 'approve', body, platform, by);
    const { body: done } = await platform.jobIn(by, job, 'completed', 'failed');
    expect(done).toMatchObject({ status: 'completed', attempt: 1 });
    expect(server.calls.at(-1)).toMatchObject({ state: 'state-1' });
    expect(server.calls).toHaveLength(2);
  });
});

describe('a server that asks to open a page', () => {
  const page = { message: 'Pay first.', url: 'https://pay.example/o/1?t=x', elicitationId: 'e1' };
  const link = { url: page.url, host: 'pay.example' };

  test('is called again once a person has approved, who sees the host and the whole address', async () => {
    const server = await startAskingServer();
    server.questions = { page: { mode: 'url', ...page } };
    const job = await begin(await added(server));
    const [approval] = await pendingOf(job);
    expect(approval).toMatchObject({
      title: expect.stringMatching(/^asks-\d+ asks to open a page of pay\.example: Pay first\.$/),
      ...{ link, fields: null },
    });
    await decide(approval.approval_id, 'approve');
    expect((await ended(job)).output).toEqual({ answers: { page: { action: 'accept' } } });
  });

  test.each([
    ['approve', 'completed', 2],
    ['reject', 'failed', 1],
  ])('and refuses the call until then (-32042): %s', async (verb, status, calls) => {
    const server = await startMcpServer();
    let refused = 0;
    server.answers['tools/call'] = (_params, { id }) => {
      refused += 1;
      if (refused > 1) return { content: [] };
      const data = { elicitations: [{ mode: 'url', ...page }] };
      return { jsonrpc: '2.0', id, error: { code: -32_042, message: 'Pay first', data } };
    };
    const job = await begin(await added(server));
    await platform.jobIn(key, job, 'waiting');
    const [approval] = await pendingOf(job);
    expect(approval).toMatchObject({ link });
    await decide(approval.approval_id, verb);
    expect(await ended(job)).toMatchObject({ status });
    expect(refused).toBe(calls);
  });

  test('while it holds the call gets no content with the answer; an address in clear is declined', async () => {
    const server = await startHoldingServer({ mode: 'url', ...page });
    const job = await begin(await added(server));
    const [approval] = await pendingOf(job);
    await decide(approval.approval_id, 'approve');
    expect((await ended(job)).output).toEqual({ answer: { action: 'accept' } });
    const plain = await startHoldingServer({ mode: 'url', ...page, url: 'http://pay.example/' });
    const declined = await ended(await begin(await added(plain)));
    expect(declined.output).toEqual({ answer: { action: 'decline' } });
  });

  test('asks it of an MCP client that opens pages, and of no other one', async () => {
    const skill = await added(await startHoldingServer({ mode: 'url', ...page }));
    const [category = '', , name = ''] = skill.split('/');
    const params = { name: `${category}__${name}`, arguments: { text: 'a' } };
    const capabilities = { elicitation: { form: {}, url: {} } };
    const { result } = await askMcp(platform, key, 'tools/call', params, { capabilities });
    const [request] = Object.values(result.inputRequests) as { params: object }[];
    expect(request?.params).toMatchObject({ mode: 'url', url: page.url });
  });
});

describe('a server that holds the call', () => {
  test('gets the answer on its connection; the job stays active meanwhile', async () => {
    const server = await startHoldingServer();
    const job = await begin(await added(server));
    const stream = await follow(`${platform.url}/api/jobs/${job}/events`, { 'x-api-key': key });
    const told = await stream.event(({ event }) => event === 'approval', 'the question');
    expect(told.data.title).toContain('Which size shall it be?');
    const [approval] = await pendingOf(job);
    const { body } = await platform.request('GET', `/api/jobs/${job}`, { key });
    expect(body.status).toBe('active');
    await decide(approval.approval_id, 'approve', { answer: { size: 'l' } });
    const answer = { action: 'accept', content: { size: 'l' } };
    expect(await ended(job)).toMatchObject({ status: 'completed', output: { answer } });
    const logged = (await stream.ended).filter(({ event }) => event === 'log');
    expect(logged.map(({ data }) => data)).toMatchObject([
      { message: 'shop: asking for the size', fields: { level: 'info' } },
    ]);
  });

  test('is told that the person refuses', async () => {
    const server = await startHoldingServer();
    const job = await begin(await added(server));
    const [approval] = await pendingOf(job);
    await decide(approval.approval_id, 'reject');
    expect((await ended(job)).output).toEqual({ answer: { action: 'decline' } });
  });

  test('loses its call when the job is cancelled', async () => {
    const server = await startHoldingServer();
    const job = await begin(await added(server));
    await pendingOf(job);
    await platform.request('POST', `/api/jobs/${job}/cancel`, { key });
    expect((await ended(job)).status).toBe('cancelled');
    await waitFor(() => server.gone === 1, { describe: 'the end of the call' });
    expect(server.answered).toEqual([]);
  });

  test('is asked again by a further attempt, and the same question is the same approval', async () => {
    const server = await startHoldingServer();
    const skill = await added(server, { idempotent_tools: ['echo'] });
    const usual = server.answers['tools/call'];
    const responses: { destroy(): void }[] = [];
    server.answers['tools/call'] = (params, message, response) => {
      responses.push(response);
      return usual?.(params, message, response);
    };
    const job = await begin(skill);
    await pendingOf(job);
    responses[0]?.destroy();
    await waitFor(() => responses.length === 2, { describe: 'the second attempt' });
    const [approval, ...others] = await pendingOf(job);
    expect(others).toEqual([]);
    await decide(approval.approval_id, 'approve', { answer: { size: 's' } });
    expect(await ended(job)).toMatchObject({ status: 'completed', attempt: 2 });
  });

  test('asks the person of an MCP client through us, with the same form', async () => {
    const server = await startHoldingServer();
    const skill = await added(server);
    const [category = '', , name = ''] = skill.split('/');
    const params = { name: `${category}__${name}`, arguments: { text: 'a' } };
    const capabilities = { elicitation: { form: {} } };
    const call = (more: object = {}) =>
      askMcp(platform, key, 'tools/call', { ...params, ...more }, { capabilities });
    const { result } = await call();
    const [[questionKey, question]] = Object.entries(result.inputRequests) as [
      [string, { params: typeof sizeQuestion }],
    ];
    expect(question.params.requestedSchema).toEqual(sizeForm);
    const inputResponses = { [questionKey]: { action: 'accept', content: { size: 's' } } };
    const { result: done } = await call({ inputResponses, requestState: result.requestState });
    expect(done.structuredContent).toEqual({
      answer: { action: 'accept', content: { size: 's' } },
    });
  });
});
