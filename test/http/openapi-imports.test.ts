import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiServer, sendJson, startApiServer } from '../support/api-server.ts';
import { follow } from '../support/event-stream.ts';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';

let platform: Platform;
let key: string;
beforeAll(async () => {
  platform = await startStaged({ environment: { SKILLS_ALLOW_CIDRS: '127.0.0.0/8' } });
  key = await platform.key();
});
afterAll(() => platform.stop());

const order = {
  type: 'object',
  properties: { id: { type: 'string' }, total: { type: 'number', nullable: true } },
  required: ['id'],
};
const operationOf = (operationId: string, more: object = {}) => ({
  operationId,
  responses: { 200: { description: 'ok', content: { 'application/json': { schema: order } } } },
  ...more,
});
/** A document of 3.0 with three operations. */
const orders = (server: ApiServer, more: object = {}) => ({
  openapi: '3.0.3',
  info: { title: 'Orders', version: '1.2.3' },
  servers: [{ url: `${server.url}/v2` }],
  paths: {
    '/orders/{id}': {
      get: operationOf('getOrder', {
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
          { name: 'fields', in: 'query', schema: { type: 'array', items: { type: 'string' } } },
          { name: 'x-api-key', in: 'header', required: true, schema: { type: 'string' } },
        ],
      }),
    },
    '/orders': {
      post: operationOf('createOrder', {
        requestBody: { required: true, content: { 'application/json': { schema: order } } },
      }),
    },
    '/ping': { put: { responses: { 204: { description: 'nothing' } } } },
    ...more,
  },
});

let made = 0;
/** Imports a document under a name of its own. */
async function imported(fields: Record<string, unknown>) {
  made += 1;
  const name = `service-${made}`;
  const answer = await platform.admin('POST', '/admin/openapi-imports', {
    ...{ name, organizations: ['*'] },
    ...fields,
  });
  expect(answer.status, answer.text).toBe(201);
  const path = `/admin/openapi-imports/${name}`;
  const run = (skill: string, input: unknown, version = 'v1.0') =>
    platform.run(key, `api-${name}/${version}/${skill}`, input);
  return { name, path, answer: answer.body, run };
}

/** What the log of a job that has ended says. */
async function logsOf(jobId: string): Promise<string[]> {
  const stream = await follow(`${platform.url}/api/jobs/${jobId}/events`, { 'x-api-key': key });
  expect(stream.status).toBe(200);
  const events = await stream.ended;
  return events.filter(({ event }) => event === 'log').map(({ data }) => data.message);
}

describe('an OpenAPI document', () => {
  test('has its operations as skills of the category api-<name>, which run as jobs', async () => {
    const server = await startApiServer();
    server.answer = (_request, response) =>
      sendJson(response, 200, { id: 'a/b', total: null }, { etag: '"1"', 'set-cookie': 'a=b' });
    const { name, answer, run } = await imported({
      document: orders(server),
      auth: { type: 'header', name: 'X-Api-Key', value: 'the-key-of-the-service' },
    });
    expect(answer).toMatchObject({
      ...{ status: 'available', fault: null, base_url: `${server.url}/v2`, left_out: [] },
      auth: { type: 'header', name: 'X-Api-Key' },
      document: { title: 'Orders', version: '1.2.3', openapi: '3.0.3' },
    });
    expect(
      answer.skills.map(({ skill, retried }: Record<string, unknown>) => [skill, retried]),
    ).toEqual([
      [`api-${name}/v1.0/create-order`, false],
      [`api-${name}/v1.0/get-order`, true],
      [`api-${name}/v1.0/put-ping`, true],
    ]);
    const { body: job } = await run('get-order', { id: 'a/b', fields: ['x', 'y z'] });
    expect(job).toMatchObject({
      status: 'completed',
      output: {
        status: 200,
        headers: { 'content-type': 'application/json', etag: '"1"' },
        body: { id: 'a/b', total: null },
      },
    });
    expect(job.output.headers).not.toHaveProperty('set-cookie');
    expect(server.received).toMatchObject([
      {
        method: 'GET',
        url: '/v2/orders/a%2Fb?fields=x&fields=y%20z',
        headers: { 'x-api-key': 'the-key-of-the-service' },
      },
    ]);
    expect(JSON.stringify(answer)).not.toContain('the-key-of');
  });

  test('may be YAML, and an answer may be empty', async () => {
    const server = await startApiServer();
    server.answer = (_request, response) => response.writeHead(204).end();
    const { answer, run } = await imported({
      organizations: ['*'],
      document: `openapi: 3.1.0\nservers: [{url: "${server.url}"}]\npaths:\n  /ping: {put: {operationId: ping}}\n`,
    });
    expect(answer.fault).toBeNull();
    const { body: job } = await run('ping', {});
    expect(job.output).toEqual({ status: 204, headers: {}, body: null });
  });

  test('may be chosen from, and is fetched from its url at each refresh', async () => {
    const server = await startApiServer();
    let document: object = orders(server);
    server.answer = (_request, response) => sendJson(response, 200, document);
    const { answer, path } = await imported({
      url: `${server.url}/openapi.json`,
      operations: ['createOrder', 'PUT /ping'],
    });
    expect(answer.skills).toMatchObject([{ tool: 'POST /orders' }, { tool: 'PUT /ping' }]);
    expect(answer).toMatchObject({ base_url: `${server.url}/v2`, is_base_url_set: false });
    document = { ...document, paths: {} };
    const { body: failing } = await platform.admin('POST', `${path}/refresh`);
    expect(failing).toMatchObject({
      ...{ status: 'failing', fault: 'The document has no operations' },
      skills: [{ state: 'active' }, { state: 'active' }],
    });
  });

  test('has its operations listed before it is imported, and nothing is stored', async () => {
    const server = await startApiServer();
    const preview = (body: object) =>
      platform.admin('POST', '/admin/openapi-imports/preview', body);
    const { body } = await preview({ document: orders(server) });
    expect(body).toEqual({
      title: 'Orders',
      operations: [
        { operation: 'GET /orders/{id}', operation_id: 'getOrder', summary: null },
        { operation: 'POST /orders', operation_id: 'createOrder', summary: null },
        { operation: 'PUT /ping', operation_id: null, summary: null },
      ],
      total: 3,
    });
    const { name } = await imported({ document: orders(server), operations: ['getOrder'] });
    expect((await preview({ name, document: null })).body.total).toBe(3);
    expectRefusal(await preview({ document: 'no: document' }), 409, 'conflict');
    expectRefusal(await preview({ name: 'none', document: null }), 404, 'not_found');
    expectInvalid(await preview({ document: null }), 'document');
  });

  test('that cannot be read is added with its fault', async () => {
    for (const [document, fault] of [
      ['[]', 'The document is not an object'],
      [{ openapi: '4.0.0' }, 'The document is of the version "4.0.0"; 3.0 and 3.1 can be imported'],
    ] as const) {
      const { answer } = await imported({ document });
      expect(answer).toMatchObject({ status: 'failing', fault, skills: [] });
    }
  });

  test('is refused where what was set contradicts itself', async () => {
    const refused = async (fields: object) =>
      platform.admin('POST', '/admin/openapi-imports', { name: 'wrong', ...fields });
    expectInvalid(await refused({}), 'document');
    expectInvalid(await refused({ document: null }), 'document');
    expectInvalid(await refused({ url: 'http://10.0.0.1/a.json' }), 'url');
    const auth = { type: 'header', name: 'x-key', value: null };
    expectInvalid(await refused({ document: {}, auth }), 'auth.value');
    expectInvalid(await refused({ document: {}, auth: { type: 'basic' } }), 'auth.username');
    const named = { type: 'none', name: 'x-key' };
    expectInvalid(await refused({ document: {}, auth: named }), 'auth.name');
    const wrong = { type: 'header', name: 'x key', value: 'a' };
    expectInvalid(await refused({ document: {}, auth: wrong }), 'auth.name');
    expectRefusal(await platform.admin('GET', '/admin/openapi-imports/wrong'), 404, 'not_found');
  });

  test('that is removed leaves skills that are not active', async () => {
    const server = await startApiServer();
    const { path, run } = await imported({ document: orders(server) });
    expect((await platform.admin('DELETE', path)).status).toBe(204);
    expectRefusal(await platform.admin('GET', path), 404, 'not_found');
    expectRefusal(await run('put-ping', {}), 404, 'skill_not_found');
  });
});

describe('an operation that was changed', () => {
  test('makes versions in quarantine, which an operator activates together', async () => {
    const server = await startApiServer();
    const { path, run } = await imported({ document: orders(server) });
    const document = orders(server, {
      '/orders': { post: operationOf('createOrder', { description: 'Now without a body.' }) },
      '/new': { get: operationOf('getNew') },
    });
    const { body: changed } = await platform.admin('PUT', path, { organizations: ['*'], document });
    const waiting = changed.skills.filter(
      ({ state }: { state: string }) => state === 'quarantined',
    );
    expect(waiting).toMatchObject([
      { skill_name: 'create-order', version: 'v1.1' },
      { skill_name: 'get-new', version: 'v1.0' },
    ]);
    expect(waiting[0].difference).toContain('+description: Now without a body.');
    const { body: pinned } = await platform.admin('GET', `${path}/skills/v1.0/get-new`);
    expect(pinned.definition).toMatchObject({
      input: { type: 'object' },
      request: { method: 'GET', path: '/new', baseUrl: `${server.url}/v2` },
    });
    expectRefusal(await run('create-order', { body: { id: 'a' } }), 404, 'skill_not_found');
    const versions = waiting.map(({ skill_name, version, digest }: Record<string, string>) => ({
      ...{ skill_name, version, digest },
    }));
    const activated = await platform.admin('POST', `${path}/activate`, { versions });
    expect(activated.status, activated.text).toBe(200);
    expect((await run('create-order', {}, 'v1.1')).body.status).toBe('completed');
    const again = [{ ...versions[0], digest: '0'.repeat(64) }];
    const refused = await platform.admin('POST', `${path}/activate`, { versions: again });
    expectRefusal(refused, 409, 'conflict');
  });

  test('goes on at the address that was accepted, until the new one is', async () => {
    const [before, after] = [await startApiServer(), await startApiServer()];
    const { path, run } = await imported({ document: orders(before) });
    const { body } = await platform.admin('PUT', path, {
      organizations: ['*'],
      document: orders(after),
    });
    expect(body.skills.map(({ state }: { state: string }) => state)).toContain('quarantined');
    await run('put-ping', {});
    expect([before.received.length, after.received.length]).toEqual([1, 0]);
  });
});

describe('credentials', () => {
  const auth = (value: string | null) => ({ type: 'header', name: 'authorization', value });
  const sent = (server: ApiServer) => server.received.map(({ headers }) => headers.authorization);

  test('that are set for another address are not sent to the one that was accepted', async () => {
    const [before, after] = [await startApiServer(), await startApiServer()];
    const { path, run } = await imported({ document: orders(before), auth: auth('secret-of-a') });
    const base_url = `${after.url}/v2`;
    const changed = { document: null, base_url, auth: auth('secret-of-b') };
    const { body } = await platform.admin('PUT', path, { organizations: ['*'], ...changed });
    const old = body.skills.filter(({ version }: { version: string }) => version === 'v1.0');
    for (const { state, reason } of old) {
      expect(state).toBe('withdrawn');
      expect(reason).toContain(`the credentials are for ${after.url}`);
    }
    expectRefusal(await run('put-ping', {}), 404, 'skill_not_found');
    const next = body.skills.filter(({ state }: { state: string }) => state === 'quarantined');
    const versions = next.map(({ skill_name, version, digest }: Record<string, string>) => ({
      ...{ skill_name, version, digest },
    }));
    await platform.admin('POST', `${path}/activate`, { versions });
    expect((await run('put-ping', {}, 'v1.1')).body.status).toBe('completed');
    expect([sent(before), sent(after)]).toEqual([[], ['secret-of-b']]);
  });

  test('do not follow a document that names another host afterwards', async () => {
    const [before, after] = [await startApiServer(), await startApiServer()];
    const { path, run } = await imported({ document: orders(before), auth: auth('secret-of-a') });
    const { body } = await platform.admin('PUT', path, {
      organizations: ['*'],
      ...{ document: orders(after), auth: auth(null) },
    });
    expect((await run('put-ping', {})).body.status).toBe('completed');
    const { skill_name, version, digest } = body.skills.find(
      ({ state, skill_name: name }: Record<string, string>) =>
        state === 'quarantined' && name === 'put-ping',
    );
    const versions = [{ skill_name, version, digest }];
    const refused = await platform.admin('POST', `${path}/activate`, { versions });
    expectRefusal(refused, 409, 'conflict');
    expect(refused.body.message).toContain('set the credentials again');
    expect([sent(before), sent(after)]).toEqual([['secret-of-a'], []]);
  });

  test('that are set while the document is read are for the one that is read then', async () => {
    const server = await startApiServer();
    const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let isHeld = false;
    server.answer = async ({ method }, response) => {
      if (isHeld && method === 'GET') {
        isAsked();
        await released;
      }
      sendJson(response, 200, orders(server));
    };
    const url = `${server.url}/openapi.json`;
    const { path, run } = await imported({ url });
    isHeld = true;
    const refreshed = platform.admin('POST', `${path}/refresh`);
    await asked;
    const changed = platform.admin('PUT', path, {
      organizations: ['*'],
      url,
      auth: auth('secret-of-a'),
    });
    await expect
      .poll(async () => (await platform.admin('GET', path)).body.auth.type, { timeout: 5_000 })
      .toBe('header');
    release();
    expect([(await refreshed).status, (await changed).status]).toEqual([200, 200]);
    expect((await run('put-ping', {})).body.status).toBe('completed');
    expect(sent(server).at(-1)).toBe('secret-of-a');
  });

  test('are not kept for another base_url or another server of tokens', async () => {
    const [before, after] = [await startApiServer(), await startApiServer()];
    const base_url = before.url;
    const { path, name } = await imported({
      ...{ document: orders(before), base_url, auth: auth('secret-of-a') },
    });
    const moved = { document: null, base_url: after.url, auth: auth(null) };
    expectInvalid(
      await platform.admin('PUT', path, { organizations: ['*'], ...moved }),
      'auth.value',
    );
    const preview = { name, url: `${after.url}/openapi.json`, ...moved, document: undefined };
    const previewed = await platform.admin('POST', '/admin/openapi-imports/preview', preview);
    expectInvalid(previewed, 'auth.value');
    const oauth = {
      ...{ type: 'oauth_client_credentials', token_url: `${after.url}/token`, client_id: 'us' },
      client_secret: null,
    };
    const other = await platform.admin('PUT', path, {
      organizations: ['*'],
      document: null,
      base_url,
      auth: oauth,
    });
    expectInvalid(other, 'auth.client_secret');
    const kept = await platform.admin('PUT', path, {
      organizations: ['*'],
      document: null,
      base_url,
      auth: auth(null),
    });
    expect(kept.status).toBe(200);
    expect(after.received).toEqual([]);
  });
});

describe('a service that refuses or fails', () => {
  test('fails the run with the status and the beginning of what it says, without secrets', async () => {
    const server = await startApiServer();
    server.answer = ({ headers }, response) =>
      sendJson(response, 404, { error: `No such order for ${headers.authorization}` });
    const { run } = await imported({
      document: orders(server),
      auth: { type: 'basic', username: 'someone', password: 'a-long-password' },
    });
    const { body: job } = await run('get-order', { id: 'a', 'x-api-key': 'mine' });
    const message =
      'GET /orders/{id} was answered with 404: {"error":"No such order for Basic ***"}';
    expect(job).toMatchObject({
      status: 'failed',
      error: { code: 'skill_execution_failed', message },
    });
    expect(server.received).toHaveLength(1);
  });

  test('is asked again only where the method allows it, or the operator', async () => {
    const server = await startApiServer();
    server.answer = (_request, response) => sendJson(response, 503, {});
    const document = orders(server);
    const { run, path } = await imported({ document });
    const post = () => run('create-order', { body: { id: 'a' } });
    expect((await post()).body.error.code).toBe('upstream_unavailable');
    expect(server.received).toHaveLength(1);
    await run('put-ping', {});
    expect(server.received).toHaveLength(4);
    await platform.admin('PUT', path, {
      organizations: ['*'],
      document: null,
      retried_operations: ['POST /orders'],
    });
    await post();
    expect(server.received).toHaveLength(7);
  });

  test('is left alone for as long as it asks', async () => {
    const server = await startApiServer();
    let refusals = 1;
    const times: number[] = [];
    server.answer = (_request, response) => {
      times.push(performance.now());
      refusals -= 1;
      if (refusals >= 0) sendJson(response, 429, {}, { 'retry-after': '1' });
      else sendJson(response, 200, { id: 'a' });
    };
    const { run } = await imported({ document: orders(server) });
    expect((await run('create-order', { body: { id: 'a' } })).body.status).toBe('completed');
    refusals = 1;
    expect((await run('put-ping', {})).body.status).toBe('completed');
    const [first = 0, second = 0, third = 0, fourth = 0] = times;
    expect(second - first).toBeGreaterThanOrEqual(990);
    expect(fourth - third).toBeGreaterThanOrEqual(990);
  });

  test('may answer other than its document says; the log of the job tells it', async () => {
    const server = await startApiServer();
    server.answer = (_request, response) => sendJson(response, 200, { total: 'many' });
    const { run } = await imported({ document: orders(server) });
    const { body: job } = await run('create-order', { body: { id: 'a' } });
    expect(job).toMatchObject({ status: 'completed', output: { body: { total: 'many' } } });
    expect(await logsOf(job.job_id)).toEqual([
      'The answer is not as the document describes it: body.id is required; body.total must be number or null',
    ]);
  });

  test('asks for one token for calls at the same time, and fails without one', async () => {
    const server = await startApiServer();
    let status = 200;
    server.answer = ({ url }, response) => {
      const isToken = url === '/token';
      if (isToken) sendJson(response, status, { access_token: 'a-token', error: 'no_client' });
      else sendJson(response, 200, { id: 'a' });
    };
    const auth = {
      type: 'oauth_client_credentials',
      ...{ token_url: `${server.url}/token`, client_id: 'us', client_secret: 'secret-of-us' },
      credentials_in: 'body',
    };
    const { run } = await imported({ document: orders(server), auth });
    const jobs = await Promise.all([1, 2, 3].map(() => run('create-order', { body: { id: 'a' } })));
    expect(jobs.map(({ body }) => body.status)).toEqual(Array(3).fill('completed'));
    const asked = server.received.filter(({ url }) => url === '/token');
    expect(asked.map(({ body }) => body)).toEqual([
      'grant_type=client_credentials&client_id=us&client_secret=secret-of-us',
    ]);
    status = 401;
    const other = await imported({ document: orders(server), auth });
    expect((await other.run('put-ping', {})).body.error).toEqual({
      code: 'missing_credentials',
      message: 'The server of tokens refused the credentials (401): no_client',
    });
  });

  test('gets a new token where it refuses one that was kept', async () => {
    const server = await startApiServer();
    let tokens = 0;
    server.answer = ({ url, headers }, response) => {
      if (url === '/token') {
        tokens += 1;
        sendJson(response, 200, { access_token: `token-number-${tokens}`, expires_in: 3600 });
      } else {
        const isGood = headers.authorization === `Bearer token-number-${tokens}`;
        sendJson(response, isGood && tokens !== 1 ? 200 : 401, { id: headers.authorization });
      }
    };
    const { run } = await imported({
      document: orders(server),
      auth: {
        type: 'oauth_client_credentials',
        ...{ token_url: `${server.url}/token`, client_id: 'us', client_secret: 'secret-of-us' },
        scope: 'orders',
      },
    });
    const { body: job } = await run('create-order', { body: { id: 'a' } });
    expect(job.output).toMatchObject({ status: 200, body: { id: 'Bearer ***' } });
    expect(server.received.map(({ url }) => url)).toEqual([
      '/token',
      '/v2/orders',
      '/token',
      '/v2/orders',
    ]);
    const basic = `Basic ${Buffer.from('us:secret-of-us').toString('base64')}`;
    expect(server.received[0]).toMatchObject({
      headers: { authorization: basic },
      body: 'grant_type=client_credentials&scope=orders',
    });
  });
});

describe('a service that misbehaves', () => {
  const failureOf = async (answer: ApiServer['answer'], fields: object = {}) => {
    const server = await startApiServer();
    server.answer = answer;
    const { run } = await imported({ document: orders(server), ...fields });
    const { body } = await run('create-order', { body: { id: 'a' } });
    return { ...body.error, calls: server.received.length };
  };

  test('costs the run a sentence', async () => {
    const endless = await failureOf((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      response.end('x'.repeat(1_100_000));
    });
    expect(endless).toEqual({
      ...{ code: 'skill_execution_failed', calls: 1 },
      message: 'POST /orders could not be asked. The answer is longer than 1048576 bytes',
    });
    const broken = await failureOf((_request, response) => response.destroy());
    expect(broken).toEqual({
      ...{ code: 'upstream_unavailable', calls: 1 },
      message: 'POST /orders could not be asked. The connection to 127.0.0.1 broke',
    });
    const silent = await failureOf(() => {}, { timeout_ms: 1_000 });
    expect(silent).toMatchObject({ code: 'skill_timeout', calls: 1 });
    const deep = await failureOf((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(`${'['.repeat(10_000)}${']'.repeat(10_000)}`);
    });
    expect(deep).toMatchObject({ code: 'output_invalid', calls: 1 });
  });

  test('is not followed to an address that is not allowed', async () => {
    const server = await startApiServer();
    server.answer = (_request, response) =>
      response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end();
    const { run } = await imported({ document: orders(server) });
    const { body: job } = await run('get-order', { id: 'a', 'x-api-key': 'b' });
    expect(job.error).toEqual({
      code: 'upstream_unavailable',
      message:
        'GET /orders/{id} could not be asked. The url leads to an address that is not allowed',
    });
    expect(server.received).toHaveLength(1);
  });

  test('cannot have its document read beyond the bounds', async () => {
    const server = await startApiServer();
    server.answer = (_request, response) => response.end('x'.repeat(4_200_000));
    const { answer } = await imported({ url: `${server.url}/openapi.json` });
    expect(answer.fault).toBe(
      'The document could not be asked. The answer is longer than 4194304 bytes',
    );
    const lines = ['openapi: 3.1.0', 'a: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let n = 1; n < 9; n++) {
      const copies = Array.from({ length: 10 }, () => `*a${n - 1}`).join(', ');
      lines.push(`a${n}: &a${n} [${copies}]`);
    }
    const bomb = await imported({ document: lines.join('\n') });
    expect(bomb.answer.fault).toContain('The document cannot be read');
  });
});

test('the platform is imported into itself', async () => {
  const { answer } = await imported({
    url: `${platform.url}/openapi.json`,
    base_url: platform.url,
    auth: { type: 'header', name: 'x-api-key', value: key },
  });
  expect(answer).toMatchObject({ status: 'available', fault: null, left_out: [] });
  expect(answer.skills.length).toBeGreaterThan(100);
  const { body: job } = await platform.run(key, `${answer.category}/v1.0/list-skills`, {});
  expect(job).toMatchObject({ status: 'completed', output: { status: 200 } });
  const names = job.output.body.map((skill: { skill_name: string }) => skill.skill_name);
  expect(names).toContain('echo');
  expect(await logsOf(job.job_id)).toEqual([]);
});
