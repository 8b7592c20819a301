import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../src/kernel/ids.ts';
import { askMcp, sendMcp } from '../support/mcp.ts';
import type { Platform } from '../support/platform.ts';
import { openRaw } from '../support/raw-http.ts';
import { acting, gate, stagedSkills, startStaged } from '../support/staged.ts';
import { waitFor } from '../support/wait-for.ts';

const root = join(import.meta.dirname, '../..');
/** Skills that are a SKILL.md. */
const prose = join(root, 'examples/agent-skills');
let platform: Platform;
let key: string;
beforeAll(async () => {
  platform = await startStaged({
    skillsDirs: [...stagedSkills, join(root, 'src/core/skills/catalog/agent'), prose],
    environment: {
      PUBLIC_URL: 'https://skills.example.com',
      CORS_ORIGINS: 'https://app.example.com',
    },
  });
  key = await platform.key();
});
afterAll(() => platform.stop());

const call = (name: string, input: unknown, options: Parameters<typeof askMcp>[4] = {}) =>
  askMcp(platform, key, 'tools/call', { name, arguments: input }, options);
const jobOf = async (id: string) =>
  (await platform.request('GET', `/api/jobs/${id}`, { key })).body;
/** An agent of its own, so that its one job is found. */
async function newAgent(): Promise<string> {
  const id = `a-${newId().slice(-12)}`;
  await platform.request('POST', '/api/agents', { key, body: { id, name: 'Ada' } });
  return id;
}
const jobAs = (agent: string, status: string) =>
  waitFor(
    async () => {
      const { body } = await platform.request('GET', `/api/jobs?agent_id=${agent}`, { key });
      return body.data[0]?.status === status ? body.data[0] : null;
    },
    { describe: `the job of ${agent} is ${status}` },
  );

describe('credentials', () => {
  test('a key is taken as a bearer token and in x-api-key', async () => {
    const bearer = await askMcp(platform, key, 'tools/list');
    const headers = { authorization: '', 'x-api-key': key };
    const header = await askMcp(platform, '', 'tools/list', {}, { headers });
    expect(bearer.result.tools).toEqual(header.result.tools);
  });

  test.each([
    ['no key', { authorization: '' }, 'authentication_required'],
    ['a wrong key', {}, 'invalid_api_key'],
  ])('%s is 401 with where the metadata is', async (_, headers, code) => {
    const answer = await askMcp(platform, 'sk_wrong', 'tools/list', {}, { headers });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toBe(
      'Bearer resource_metadata="https://skills.example.com/.well-known/oauth-protected-resource/mcp"',
    );
    expect(answer.error).toMatchObject({ code: -32_000, data: { error: code } });
    const message = code === 'authentication_required' ? 'Authorization: Bearer' : '';
    expect(answer.error?.message).toContain(message);
  });

  test.each(['', '/mcp'])('the metadata of the resource is there for anyone (%s)', async (end) => {
    const { status, body } = await platform.request(
      'GET',
      `/.well-known/oauth-protected-resource${end}`,
    );
    expect(status).toBe(200);
    expect(body).toMatchObject({
      resource: 'https://skills.example.com/mcp',
      bearer_methods_supported: ['header'],
    });
  });

  test('a session of the console is not admitted', async () => {
    const headers = { authorization: '', cookie: 'skillwright-session=x' };
    const { status } = await askMcp(platform, '', 'tools/list', {}, { headers });
    expect(status).toBe(401);
  });

  test('a call without the scope of its skill is 403 and names the scope', async () => {
    const narrow = await platform.key({ scopes: ['text'] });
    const params = { name: 'util__echo', arguments: { text: 'hi' } };
    const { status, headers } = await askMcp(platform, narrow, 'tools/call', params);
    expect(status).toBe(403);
    const challenge = headers.get('www-authenticate');
    expect(challenge).toContain('error="insufficient_scope"');
    expect(challenge).toContain('scope="util"');
    expect(challenge).toContain('/.well-known/oauth-protected-resource/mcp');
  });

  test.each(['an agent', 'no agent'])('a call of %s without its scope is 403', async (what) => {
    const narrow = await platform.key({ scopes: ['text'] });
    const id = what === 'an agent' ? await newAgent() : 'no-agent';
    const params = { name: `agent_${id}`, arguments: { task: 'x' } };
    const { status, headers } = await askMcp(platform, narrow, 'tools/call', params);
    expect(status).toBe(403);
    expect(headers.get('www-authenticate')).toContain('scope="agent"');
  });

  test('an update of a task without the scope approvals is 403 and names it', async () => {
    const narrow = await platform.key({ scopes: ['text'] });
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
    const params = { taskId: 'x', inputResponses: {} };
    const answer = await askMcp(platform, narrow, 'tasks/update', params, { capabilities });
    expect(answer.status).toBe(403);
    expect(answer.headers.get('www-authenticate')).toContain('scope="approvals"');
  });

  test('a key over its limit is 429, and other keys are not', async () => {
    const limited = await platform.key({ rate_limit: 1 });
    await askMcp(platform, limited, 'tools/list');
    const { status, headers, error } = await askMcp(platform, limited, 'tools/list');
    expect(status).toBe(429);
    expect(headers.get('retry-after')).toMatch(/^\d+$/);
    expect(error?.data).toMatchObject({ error: 'rate_limit_exceeded' });
  });
});

describe('hosts, origins and bodies', () => {
  test.each([
    ['host', 'evil.example.com'],
    ['origin', 'https://evil.example.com'],
    ['origin', 'null'],
  ])('a request with the %s %s is 403', async (name, value) => {
    const { hostname: host, port } = new URL(platform.url);
    const given = { host: `${host}:${port}`, [name]: value };
    const lines = Object.entries(given).map(([header, text]) => `${header}: ${text}\r\n`);
    const connection = openRaw(platform.url);
    connection.send(`POST /mcp HTTP/1.1\r\n${lines.join('')}content-length: 0\r\n\r\n`);
    const [answer] = await connection.answers(1);
    connection.destroy();
    expect(answer?.status).toBe(403);
    expect(answer?.body).toMatchObject({ jsonrpc: '2.0', error: { code: -32_000 } });
  });

  test.each([
    ['no JSON', '{', 400, -32_700],
    ['nothing', '', 400, -32_700],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32_700],
  ])('a body that is %s is an error of JSON-RPC', async (_, body, status, code) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await platform.request('POST', '/mcp', { key, headers, body });
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({ jsonrpc: '2.0', id: null, error: { code } });
  });

  test('a header that is refused is an invalid request, not a body that cannot be read', async () => {
    const headers = { 'x-user-id': 'x'.repeat(201) };
    const { status, error } = await askMcp(platform, key, 'tools/list', {}, { headers });
    expect(status).toBe(400);
    expect(error).toMatchObject({ code: -32_600, data: { error: 'validation_error' } });
  });

  test('an issue of an input is told once', async () => {
    const { result } = await askMcp(platform, key, 'tools/call', { name: 'util__echo' });
    expect(result.content[0].text.match(/is required/g)).toHaveLength(1);
  });

  test('a page of an origin of CORS_ORIGINS may be a client', async () => {
    const origin = 'https://app.example.com';
    const asked = 'authorization,content-type,mcp-method,mcp-name,mcp-protocol-version';
    const preflight = await platform.request('OPTIONS', '/mcp', {
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': asked,
      },
    });
    expect(preflight.status).toBe(204);
    const allowed = preflight.headers.get('access-control-allow-headers')?.split(', ');
    expect(allowed).toEqual(expect.arrayContaining(asked.split(',')));
    const { headers, result } = await askMcp(
      platform,
      key,
      'tools/list',
      {},
      { headers: { origin } },
    );
    expect(headers.get('access-control-allow-origin')).toBe(origin);
    expect(result.tools).not.toEqual([]);
  });

  test.each(['GET', 'DELETE'])('%s is 405', async (method) => {
    const { status, headers } = await platform.request(method, '/mcp', { key });
    expect(status).toBe(405);
    expect(headers.get('allow')).toBe('POST');
  });
});

describe('tools/list', () => {
  test('lists the newest version of each skill of the scopes of the key, by name', async () => {
    const narrow = await platform.key({ scopes: ['util'] });
    const { result } = await askMcp(platform, narrow, 'tools/list');
    const names = result.tools.map(({ name }: { name: string }) => name);
    expect(names).toContain('util__echo');
    expect(names).toEqual(names.toSorted());
    expect(names.every((name: string) => name.startsWith('util__'))).toBe(true);
    for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(result).toMatchObject({ cacheScope: 'private', ttlMs: 60_000 });
    const echo = result.tools.find(({ name }: { name: string }) => name === 'util__echo');
    expect(echo).toMatchObject({
      title: 'Echo',
      inputSchema: { type: 'object', required: ['text'] },
      outputSchema: { type: 'object' },
    });
    expect((await askMcp(platform, narrow, 'tools/list')).result.tools).toEqual(result.tools);
  });

  test('a skill of several versions is listed by each, and every version can be called by its own', async () => {
    const { result } = await askMcp(platform, key, 'tools/list');
    const names = result.tools
      .map(({ name }: { name: string }) => name)
      .filter((name: string) => name.startsWith('staged__versions'));
    const versions = ['v1_10', 'v1_9', 'v2_0'].map((version) => `staged__versions__${version}`);
    expect(names).toEqual(['staged__versions', ...versions]);
    const { body } = await platform.request('GET', '/api/skills/staged/v2.0/versions', { key });
    expect(body.version).toBe('v2.0');
    const { result: newest } = await call('staged__versions__v2_0', {});
    expect((await jobOf(newest._meta['skillwright/job_id'])).skill_version).toBe('v2.0');
  });

  test('an address with versions=all lists each version of each skill, in pages', async () => {
    const namesOf = async (path: string) => {
      const names: string[] = [];
      let cursor: string | undefined;
      do {
        const params = cursor === undefined ? {} : { cursor };
        const { result } = await askMcp(platform, key, 'tools/list', params, { path });
        names.push(...result.tools.map(({ name }: { name: string }) => name));
        cursor = result.nextCursor;
      } while (cursor !== undefined);
      return names.filter((name) => !/^agent_[^_]/.test(name));
    };
    const listed = await namesOf('/mcp');
    const all = await namesOf('/mcp?versions=all');
    expect(listed).not.toContain('util__echo__v1_0');
    expect(all).toContain('util__echo__v1_0');
    expect(all).toEqual(all.toSorted());
    expect(all).toEqual(expect.arrayContaining(listed));
    const refused = await askMcp(platform, key, 'tools/list', {}, { path: '/mcp?versions=1' });
    expect(refused.status).toBe(400);
  });

  test('an invalid cursor is invalid params', async () => {
    const { error } = await askMcp(platform, key, 'tools/list', { cursor: 'nonsense' });
    expect(error).toMatchObject({ code: -32_602 });
  });

  test('a subscriber is told when an agent of its organization comes, changes or goes', async () => {
    const response = await sendMcp(platform, key, 'subscriptions/listen', {
      notifications: { toolsListChanged: true },
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    const told = async (times: number) => {
      while (text.split('notifications/tools/list_changed').length - 1 < times) {
        text += (await reader?.read())?.value ?? '';
      }
    };
    while (!text.includes('acknowledged')) text += (await reader?.read())?.value ?? '';
    const other = await platform.key({ organization_id: 'agents-elsewhere' });
    const elsewhere = { key: other, body: { id: 'elsewhere', name: 'E' } };
    await platform.request('POST', '/api/agents', elsewhere);
    const id = await newAgent();
    await told(1);
    await platform.request('PUT', `/api/agents/${id}`, { key, body: { name: 'Grace' } });
    await told(2);
    await platform.request('DELETE', `/api/agents/${id}`, { key });
    await told(3);
    expect(text.split('notifications/tools/list_changed')).toHaveLength(4);
    await reader?.cancel();
  });

  test('a subscriber is told when a skill is deprecated', async () => {
    const response = await sendMcp(platform, key, 'subscriptions/listen', {
      notifications: { toolsListChanged: true },
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = (await reader?.read())?.value ?? '';
    expect(text).toContain('notifications/subscriptions/acknowledged');
    await platform.admin('POST', '/admin/skills/staged/v1.9/versions/deprecate');
    while (!text.includes('notifications/tools/list_changed')) {
      text += (await reader?.read())?.value ?? '';
    }
    await reader?.cancel();
    await platform.admin('POST', '/admin/skills/staged/v1.9/versions/activate');
  });
});

describe('tools/call', () => {
  test('is a job, named in _meta, whose output is structured content and text', async () => {
    const { result } = await call('util__echo', { text: 'hi' });
    expect(result).toMatchObject({
      resultType: 'complete',
      structuredContent: { text: 'hi' },
      content: [{ type: 'text', text: '{"text":"hi"}' }],
    });
    const job = await jobOf(result._meta['skillwright/job_id']);
    expect(job).toMatchObject({
      status: 'completed',
      trigger_type: 'api',
      conversation_id: result._meta['skillwright/conversation_id'],
    });
  });

  test('a failed skill is a result with isError, for the model to read', async () => {
    const fail = { message: 'out of paper', retryable: false };
    const { result } = await call('staged__play', acting({ fail }));
    expect(result.isError).toBe(true);
    expect(result.content[0].text).toBe('skill_execution_failed: out of paper');
    expect(result._meta['skillwright/job_id']).toBeDefined();
  });

  test('an input that the schema refuses is a result with isError, and no job', async () => {
    const { result } = await call('util__echo', {});
    expect(result.isError).toBe(true);
    expect(result.content[0].text).toContain('text');
    expect(result._meta?.['skillwright/job_id']).toBeUndefined();
  });

  test('an unknown tool is a protocol error', async () => {
    expect((await call('util__nothing', {})).error).toMatchObject({
      code: -32_602,
      message: 'Unknown tool: util__nothing',
    });
  });

  test('the agent, the user and the idempotency key of a call are those of its _meta', async () => {
    const meta = { 'skillwright/idempotency_key': newId(), 'skillwright/user_id': 'ada' };
    const first = await call('util__echo', { text: 'once' }, { meta });
    const second = await call('util__echo', { text: 'once' }, { meta });
    expect(second.result._meta).toEqual(first.result._meta);
    expect(await jobOf(first.result._meta['skillwright/job_id'])).toMatchObject({ user_id: 'ada' });
    const other = await call('util__echo', { text: 'twice' }, { meta });
    expect(other.error).toMatchObject({ code: -32_602, data: { error: 'idempotency_key_reused' } });
    const unknown = { 'skillwright/agent_id': 'nobody' };
    expect((await call('util__echo', { text: 'x' }, { meta: unknown })).error).toMatchObject({
      data: { error: 'not_found' },
    });
  });

  test('progress is told to a client that asks for it', async () => {
    const opened = gate();
    const steps = acting({ progress: 0.5, note: 'half' }, { until: opened.path });
    const response = await sendMcp(
      platform,
      key,
      'tools/call',
      { name: 'staged__play', arguments: steps },
      { meta: { progressToken: 'p' } },
    );
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('notifications/progress')) text += (await reader?.read())?.value ?? '';
    expect(text).toContain('{"progressToken":"p","progress":0.5,"total":1,"message":"half"}');
    opened.open();
    await reader?.cancel();
  });

  test('changes of the list of tools are announced to clients that can be notified of them', async () => {
    const old = await askMcp(
      platform,
      key,
      'initialize',
      {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'old', version: '1' },
      },
      { isOld: true },
    );
    const modern = await askMcp(platform, key, 'server/discover');

    expect(old.result.capabilities.tools).toEqual({});
    expect(modern.result.capabilities.tools).toEqual({ listChanged: true });
  });

  test('a client that goes cancels its job, one of the revision 2025-11-25 does not', async () => {
    const runs = [false, true].map(async (isOld) => {
      const opened = gate();
      const gone = new AbortController();
      const agent = await newAgent();
      const options = { signal: gone.signal, isOld, headers: { 'x-agent-id': agent } };
      const input = acting({ until: opened.path });
      const request = sendMcp(
        platform,
        key,
        'tools/call',
        { name: 'staged__play', arguments: input },
        options,
      );
      request.then((response) => response.text()).catch(() => {});
      const job = await jobAs(agent, 'active');
      gone.abort();
      if (!isOld)
        return (await platform.jobIn(key, job.job_id, 'cancelled', 'completed')).body.status;
      opened.open();
      return (await platform.jobIn(key, job.job_id, 'cancelled', 'completed')).body.status;
    });
    expect(await Promise.all(runs)).toEqual(['cancelled', 'completed']);
  });
});

describe('a run that asks for an approval', () => {
  const input = { asks: { title: 'Ship order 7?' } };
  const capabilities = { elicitation: { form: {} } };
  const params = { name: 'staged__asks-person', arguments: input };
  const ask = (more: object = {}, options = {}, by = key) =>
    askMcp(platform, by, 'tools/call', { ...params, ...more }, { capabilities, ...options });

  test.each([
    ['accept', true],
    ['decline', false],
  ])('is a question at the client; %s decides it', async (action, approved) => {
    const { result } = await ask();
    expect(result.resultType).toBe('input_required');
    const [[name, form]] = Object.entries(result.inputRequests) as [[string, { params: object }]];
    expect(form).toMatchObject({ method: 'elicitation/create' });
    const inputResponses = { [name]: { action, content: { reason: 'checked' } } };
    const answered = await ask({ inputResponses, requestState: result.requestState });
    expect(answered.result.resultType).toBe('complete');
    const id = answered.result._meta['skillwright/job_id'];
    const { body } = await platform.request('GET', `/api/approvals?job_id=${id}`, { key });
    expect(body.data).toMatchObject([
      { status: approved ? 'approved' : 'rejected', reason: 'checked' },
    ]);
  });

  test('a form is that of the approval, and its answer goes to the run', async () => {
    const fields = {
      type: 'object',
      properties: { carrier: { type: 'string', enum: ['post', 'rail'] } },
      required: ['carrier'],
    };
    const asks = { title: 'Ship order 8?', fields };
    const withForm = (more: object = {}) => ask({ arguments: { asks }, ...more });
    const { result } = await withForm();
    const requestOf = (one: typeof result) => one.inputRequests['ship'].params;
    expect(requestOf(result).requestedSchema).toEqual(fields);
    const answered = (content: object, { requestState } = result) =>
      withForm({ inputResponses: { ship: { action: 'accept', content } }, requestState });
    const { result: again } = await answered({ carrier: 'air' });
    expect(again.resultType).toBe('input_required');
    expect(requestOf(again).message).toContain(
      'The answer was refused: answer.carrier must be one',
    );
    const { result: done } = await answered({ carrier: 'rail' }, again);
    expect(done.structuredContent).toMatchObject({ approved: true, answer: { carrier: 'rail' } });
  });

  test('a state that was changed, or is that of another key, decides nothing', async () => {
    const { result } = await ask();
    const [name = ''] = Object.keys(result.inputRequests);
    const inputResponses = { [name]: { action: 'accept' } };
    const { requestState } = result;
    const changed = await ask({ inputResponses, requestState: `${requestState}x` });
    expect(changed.error).toMatchObject({ code: -32_602 });
    const other = await ask({ inputResponses, requestState }, {}, await platform.key());
    expect(other.error).toMatchObject({ code: -32_602 });
    const { body } = await platform.request('GET', '/api/approvals?status=pending', { key });
    expect(body.data.length).toBeGreaterThan(0);
  });

  test('a question that is closed leaves the job waiting', async () => {
    const { result } = await ask();
    const [name = ''] = Object.keys(result.inputRequests);
    const inputResponses = { [name]: { action: 'cancel' } };
    const closed = await ask({ inputResponses, requestState: result.requestState });
    expect(closed.result.isError).toBe(true);
    expect(closed.result.content[0].text).toContain('waits for a decision');
  });

  test('without the scope approvals, or a person at the client, the decision is made elsewhere', async () => {
    const narrow = await platform.key({ scopes: ['staged'] });
    const agent = await newAgent();
    const answer = ask({}, { headers: { 'x-agent-id': agent } }, narrow);
    const job = await jobAs(agent, 'waiting');
    const { body } = await platform.request('GET', `/api/approvals?job_id=${job.job_id}`, { key });
    const [approval] = body.data;
    await platform.request('POST', `/api/approvals/${approval.approval_id}/approve`, { key });
    expect((await answer).result.resultType).toBe('complete');
  });
});

describe('a client that knows tasks', () => {
  const tasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
  const capabilities = { ...tasks, elicitation: {} };
  const ask = (method: string, params: object, by = key, known: object = capabilities) =>
    askMcp(platform, by, method, { ...params }, { capabilities: known });
  const ended = (taskId: string) =>
    waitFor(
      async () => {
        const { result } = await ask('tasks/get', { taskId });
        return ['working', 'input_required'].includes(result.status) ? null : result;
      },
      { describe: 'the task has ended' },
    );

  test('gets a handle of a job that takes longer than two seconds, and its result later', async () => {
    const opened = gate();
    const input = acting({ until: opened.path });
    const { result } = await ask('tools/call', { name: 'staged__play', arguments: input });
    expect(result).toMatchObject({ resultType: 'task', status: 'working', pollIntervalMs: 1_000 });
    expect(result.taskId).toMatch(/^[\w-]{43}$/);
    const { taskId } = result;
    expect((await ask('tasks/get', { taskId })).result.status).toBe('working');
    opened.open();
    const { status, result: answer } = await ended(taskId);
    expect(status).toBe('completed');
    expect((await jobOf(answer._meta['skillwright/job_id'])).status).toBe('completed');
  });

  test('gets the result of a quick call at once', async () => {
    const params = { name: 'util__echo', arguments: { text: 'hi' } };
    expect((await ask('tools/call', params)).result.structuredContent).toEqual({ text: 'hi' });
  });

  test('cancels the job of a task; again changes nothing', async () => {
    const input = acting({ until: gate().path });
    const { result } = await ask('tools/call', { name: 'staged__play', arguments: input });
    const { taskId } = result;
    for (const _ of [1, 2]) {
      expect((await ask('tasks/cancel', { taskId })).result.resultType).toBe('complete');
    }
    expect((await ended(taskId)).status).toBe('cancelled');
    const other = await platform.key({ organization_id: 'another' });
    expect((await ask('tasks/get', { taskId }, other)).error?.code).toBe(-32_602);
    expect((await ask('tasks/get', { taskId: `Z${taskId.slice(1)}` })).error?.code).toBe(-32_602);
    expect((await ask('tasks/get', { taskId }, key, {})).error).toMatchObject({ code: -32_021 });
  });
});

test('when the platform stops, a call is answered, and its job goes on', async () => {
  const other = await startStaged();
  const own = await other.key();
  const opened = gate();
  const params = { name: 'staged__play', arguments: acting({ until: opened.path }) };
  const answer = askMcp(other, own, 'tools/call', params);
  const job = await waitFor(
    async () => (await other.request('GET', '/api/jobs?status=active', { key: own })).body.data[0],
    { describe: 'the job is active' },
  );
  const stopped = other.stop();
  const { error } = await answer;
  expect(error?.data).toEqual({ error: 'service_unavailable', job_id: job.job_id });
  opened.open();
  await stopped;
});

describe('skills to read', () => {
  const uri = 'skill://documents/meeting-minutes/SKILL.md';
  const ask = (method: string, params = {}, by = key) => askMcp(platform, by, method, params);

  test('are listed with the digest of each file, and read as they are', async () => {
    const { result } = await ask('skills/list');
    const skill = result.skills.find((one: { uri: string }) => one.uri === uri);
    expect(skill.frontmatter).toMatchObject({ name: 'meeting-minutes' });
    expect((await ask('skills/get', { uri })).result.skill).toEqual(skill);
    for (const { uri: file, digest, size } of skill.resources) {
      const [content] = (await ask('resources/read', { uri: file })).result.contents;
      const bytes = Buffer.from(content.text ?? content.blob, content.text ? 'utf8' : 'base64');
      expect(bytes.length).toBe(size);
      expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).toBe(digest);
    }
    const listed = (await ask('resources/list')).result.resources;
    expect(listed).toContainEqual(expect.objectContaining({ uri, mimeType: 'text/markdown' }));
  });

  test('an unknown cursor of their list is refused', async () => {
    expect((await ask('skills/list', { cursor: 'none' })).error?.code).toBe(-32_602);
  });

  test('are those that the key may run', async () => {
    const narrow = await platform.key({ scopes: ['util'] });
    expect((await ask('skills/list', {}, narrow)).result.skills).toEqual([]);
    for (const method of ['skills/get', 'resources/read']) {
      expect((await ask(method, { uri }, narrow)).error?.code).toBe(-32_602);
    }
  });

  test.each([
    'skill://documents/meeting-minutes/../../package.json',
    'skill://documents/meeting-minutes/%2e%2e/%2e%2e/README.md',
    'skill://documents/meeting-minutes/none.md',
    'skill://util/echo/SKILL.md',
    'file:///etc/passwd',
  ])('%s is not found', async (other) => {
    expect((await ask('resources/read', { uri: other })).error?.code).toBe(-32_602);
  });
});

describe('agents', () => {
  test('are tools: a task in, an answer out', async () => {
    const id = await newAgent();
    const { result } = await askMcp(platform, key, 'tools/list');
    const tool = result.tools.find(({ name }: { name: string }) => name === `agent_${id}`);
    expect(tool).toMatchObject({ title: 'Ada', inputSchema: { required: ['task'] } });
    const answer = await call(`agent_${id}`, { task: 'Count the chairs.' });
    // The agent has no model.
    expect(answer.result.content[0].text).toContain('missing_credentials');
    const job = await jobOf(answer.result._meta['skillwright/job_id']);
    expect(job).toMatchObject({ agent_id: id, skill_name: 'run-task' });
  });

  test('an agent that does not exist is an unknown tool', async () => {
    expect((await call('agent_nobody', { task: 'x' })).error).toMatchObject({ code: -32_602 });
  });
});
