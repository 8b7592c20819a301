/** Query parameters that a path does not know, and bodies with several faults. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectRefusal } from '../support/expectations.ts';
import { adminSecret, type Platform, startPlatform } from '../support/platform.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
let tenant: Tenant;
beforeAll(async () => {
  platform = await startPlatform();
  tenant = await newTenant(platform);
});
afterAll(() => platform.stop());

/** An id that nothing has, for every parameter of a path. */
const unknownId = '0198c0de-0000-7000-8000-000000000000';

/** A user is a text of the client's, so none is unknown. */
const isOfUser = (path: string) => path.startsWith('/api/users/');

interface Operation {
  readonly path: string;
  readonly method: string;
  readonly parameters: readonly { name: string; in: string }[];
}

async function allOperations(): Promise<Operation[]> {
  const { body } = await platform.request('GET', '/openapi.json');
  const paths = body.paths as Record<string, Record<string, Partial<Operation>>>;
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [] }]) => ({ path, method, parameters })),
  );
}

/** A request with a query and valid credentials; its path names resources that there are not. */
const send = ({ path, method }: Operation, query: string) =>
  platform.request(method.toUpperCase(), `${path.replace(/\{\w+\}/g, unknownId)}?${query}`, {
    headers: path.startsWith('/admin')
      ? { 'x-admin-secret': adminSecret }
      : { 'x-api-key': tenant.key },
  });

test('an unknown resource is 404 before an invalid query is 400, on every route', async () => {
  const operations = await allOperations();
  const named = operations.filter(({ path }) => path.includes('{') && !isOfUser(path));
  expect(named.length).toBeGreaterThan(30);
  for (const operation of named) {
    const parameters = operation.parameters.filter(({ in: place }) => place === 'query');
    for (const name of [...parameters.map(({ name }) => `${name}[]`), 'limitt']) {
      const { status } = await send(operation, `${name}=1`);
      expect.soft(status, `${operation.method} ${operation.path} ${name}`).toBe(404);
    }
  }
});

describe('an unknown query parameter', () => {
  test('is 400 and named, on every route of the API', async () => {
    const operations = await allOperations();
    expect(operations.length).toBeGreaterThan(50);
    for (const operation of operations) {
      const { path, method } = operation;
      const isTrigger = path.startsWith('/api/webhooks/agent/');
      const answer = await send(operation, 'limitt=1&b=2');
      // What a path names is looked up first, and a trigger's query is its sender's own.
      if (isTrigger || (path.includes('{') && !isOfUser(path))) {
        expect(answer.status, `${method} ${path}`).toBe(404);
        continue;
      }
      expectRefusal(answer, 400, 'validation_error');
      expect(answer.body.details, `${method} ${path}`).toEqual([
        { field: 'limitt', issue: 'is no query parameter of this path' },
        { field: 'b', issue: 'is no query parameter of this path' },
      ]);
    }
  });

  test('is 400 for an existing resource, and for an execution', async () => {
    const unknown = [{ field: 'x', issue: 'is no query parameter of this path' }];
    const answers = [
      await tenant.get('/api/agents/default?x=1'),
      await tenant.put('/api/agents/default?x=1', {}),
      await tenant.post('/api/util/v1.0/echo?x=1', { text: 'a' }),
      await tenant.get('/api/jobs?limit=1&x=1'),
    ];

    for (const answer of answers) {
      expectRefusal(answer, 400, 'validation_error');
      expect(answer.body.message).toBe('x is no query parameter of this path');
      expect(answer.body.details).toEqual(unknown);
    }
  });

  test('is no matter to a trigger and to the console', async () => {
    const created = await tenant.post('/api/agent-triggers', {
      agent_id: 'default',
      name: 'Any',
      skill_category: 'util',
      skill_name: 'echo',
      mapping: '{"text": query.text}',
    });
    const called = await platform.request('POST', `${new URL(created.body.url).pathname}?text=a`);

    expect(called.status).toBe(202);
  });
});

describe('a refused body', () => {
  test('has every fault in details, and the first in its message', async () => {
    const { status, body } = await tenant.post('/api/scheduled-jobs', {
      agent_id: 5,
      skill_category: 'util',
      enabled: 'yes',
      unknown: 1,
    });

    expect(status).toBe(400);
    const fields = body.details.map(({ field }: { field: string }) => field);
    expect(fields.toSorted()).toEqual(
      ['agent_id', 'cron_expression', 'enabled', 'skill_name', 'unknown'].toSorted(),
    );
    expect(body.message).toBe(`${body.details[0].field} ${body.details[0].issue}`);
  });

  test('so has the input of a skill', async () => {
    const { status, body } = await tenant.post('/api/util/v1.0/wait', { ms: 'x', other: 1 });

    expect(status).toBe(400);
    const fields = body.details.map(({ field }: { field: string }) => field);
    expect(fields.toSorted()).toEqual(['ms', 'other']);
  });
});
