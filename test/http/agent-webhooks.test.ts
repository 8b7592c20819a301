import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventTypes, organizationEvents } from '../../src/core/events/events.ts';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { hostileLimits, hostileOffsets } from '../support/hostile-pages.ts';
import { manualClock } from '../support/manual-clock.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  // Names are resolved at deliveries, and no test may depend on the network outside.
  platform = await startPlatform({ clock, parts: { webhookEgress: { resolve: async () => [] } } });
});
afterAll(() => platform.stop());

const randomId = '0198c0de-0000-7000-8000-000000000000';
const wanted = {
  agent_id: 'default',
  url: 'https://hooks.example.com/skillwright?tenant=7',
  events: ['skill.completed', 'skill.failed'],
};

/** A webhook of the tenant, as its creation answers. */
async function created(tenant: Tenant, fields: Record<string, unknown> = {}) {
  const { status, body } = await tenant.post('/api/agent-webhooks', { ...wanted, ...fields });
  expect(status).toBe(201);
  return body;
}

/** What every answer after the first one shows of a webhook that never sent anything. */
function shown({ secret: _secret, ...webhook }: Record<string, unknown>) {
  return { ...webhook, failing: false, consecutive_failures: 0, last_delivery_at: null };
}

describe('POST /api/agent-webhooks', () => {
  test('answers 201 with the webhook, its secret included, and Location', async () => {
    const tenant = await newTenant(platform);

    const { status, body, headers } = await tenant.post('/api/agent-webhooks', {
      ...wanted,
      secret: 'a secret of my own',
    });

    expect(status).toBe(201);
    expect(body).toEqual({
      ...wanted,
      id: anId,
      secret: 'a secret of my own',
      active: true,
      created_at: aTimestamp,
      updated_at: aTimestamp,
    });
    expect(headers.get('location')).toBe(`/api/agent-webhooks/${body.id}`);
  });

  test('a secret is generated when it is left out: whsec_ and 32 random bytes in base64', async () => {
    const tenant = await newTenant(platform);

    const secrets = [(await created(tenant)).secret, (await created(tenant)).secret];

    for (const secret of secrets) {
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32);
    }
    expect(secrets[0]).not.toBe(secrets[1]);
  });

  test('every event type may be subscribed to', async () => {
    const tenant = await newTenant(platform);

    const ofAll = { agent_id: '*', events: eventTypes };
    expect(await created(tenant, ofAll)).toMatchObject(ofAll);
    const ofOne = eventTypes.filter((type) => !organizationEvents.has(type));
    expect((await created(tenant, { events: ofOne })).events).toEqual(ofOne);
  });

  test.each([...organizationEvents])(
    '%s is of no agent in particular: 400 for one',
    async (type) => {
      const tenant = await newTenant(platform);
      const { id } = await created(tenant);
      const events = ['skill.completed', type];

      const made = await tenant.post('/api/agent-webhooks', { ...wanted, events });
      expectInvalid(made, 'events');
      expectInvalid(await tenant.put(`/api/agent-webhooks/${id}`, { events }), 'events');
    },
  );

  test('a key without any scope of a skill may make one', async () => {
    const tenant = await newTenant(platform, { scopes: ['nothing'] });

    await created(tenant);
  });

  test.each([
    'https://example.com',
    'https://example.com/',
    'https://example.com:443/a',
    'https://example.com:8443/a?b=c&d=%20',
    'https://EXAMPLE.com./A',
    'https://8.8.8.8/',
    'https://[2001:4860:4860::8888]:1024/',
    'https://bücher.example/hook',
    'https://xn--bcher-kva.example/',
    'https://localhost.example.com/',
    `https://example.com/${'x'.repeat(2048 - 'https://example.com/'.length)}`,
  ])('a url of HTTPS is taken, and shown as it was given: %s', async (url) => {
    const tenant = await newTenant(platform);

    expect((await created(tenant, { url })).url).toBe(url);
  });

  test('an unknown agent, or one of another organization, is 404 not_found', async () => {
    const tenant = await newTenant(platform);
    const other = await newTenant(platform);
    await other.post('/api/agents', { id: 'theirs' });

    const unknown = await tenant.post('/api/agent-webhooks', { ...wanted, agent_id: 'nobody' });
    const theirs = await tenant.post('/api/agent-webhooks', { ...wanted, agent_id: 'theirs' });

    expectRefusal(unknown, 404, 'not_found');
    expect(theirs.body).toEqual(unknown.body);
    expect((await tenant.get('/api/agent-webhooks')).body).toEqual([]);
  });

  test('secrets of 16 to 200 characters are taken, in any alphabet', async () => {
    const tenant = await newTenant(platform);

    for (const secret of ['x'.repeat(16), 'ü🔑'.repeat(8), 'a\r\nb"c'.repeat(4), 'x'.repeat(200)]) {
      expect((await created(tenant, { secret })).secret).toBe(secret);
    }
  });
});

/** Urls that no webhook may have, by what is wrong with them. */
const refusedUrls: [string, string[]][] = [
  [
    'no HTTPS',
    [
      'http://example.com/',
      'HTTP://example.com/',
      'ftp://example.com/',
      'ws://example.com/',
      'javascript:alert(1)',
      'data:text/plain,x',
      'file:///etc/passwd',
      'https:example.com',
      'https:/example.com',
      'https:127.0.0.1',
      '//example.com/',
      'example.com',
      '/hook',
      '',
      'x',
    ],
  ],
  [
    'no url',
    [
      'https://',
      'https:///path',
      'https://exa mple.com/',
      'https://[::g]/',
      'https://example.com:65536/',
      'https://example.com:x/',
      'https://999.999.999.999/',
      `https://${'a'.repeat(64)}.com/`,
      `https://${'a.'.repeat(127)}com/`,
    ],
  ],
  [
    'credentials or a fragment',
    [
      'https://user:password@example.com/',
      'https://user@example.com/',
      'https://:password@example.com/',
      'https://example.com/#part',
      'https://example.com/#',
    ],
  ],
  [
    'characters that readers see differently',
    [
      'https://example.com\\@127.0.0.1/',
      'https:\\\\example.com/',
      'https://exam\tple.com/',
      'https://example.com/a\nb',
      'https://example.com/\r\nx-a: b',
      ' https://example.com/',
      'https://example.com/ ',
      'https://example.com/\u007f',
      'https://example.com/\u2028',
    ],
  ],
  [
    'an address that is not public',
    [
      'https://127.0.0.1/',
      'https://127.1/',
      'https://0/',
      'https://0.0.0.0/',
      'https://0x7f.1/',
      'https://0x7f000001/',
      'https://2130706433/',
      'https://0177.0.0.1/',
      'https://%31%32%37.0.0.1/',
      'https://①②⑦.0.0.1/',
      'https://１２７。０。０。１/',
      'https://10.0.0.1/',
      'https://172.16.0.1/',
      'https://192.168.1.1/',
      'https://100.64.0.1/',
      'https://100.100.100.200/',
      'https://169.254.169.254/latest/meta-data/',
      'https://168.63.129.16/',
      'https://192.0.2.1/',
      'https://198.18.0.1/',
      'https://224.0.0.1/',
      'https://240.0.0.1/',
      'https://255.255.255.255/',
      'https://[::1]/',
      'https://[::]/',
      'https://[::ffff:7f00:1]/',
      'https://[::ffff:127.0.0.1]/',
      'https://[::7f00:1]/',
      'https://[64:ff9b::7f00:1]/',
      'https://[2002:7f00:1::]/',
      'https://[fe80::1]/',
      'https://[fc00::1]/',
      'https://[fd00:ec2::254]/',
      'https://[ff02::1]/',
      'https://[2001:db8::1]/',
    ],
  ],
  [
    'a local name',
    [
      'https://localhost/',
      'https://localhost./',
      'https://LOCALHOST/',
      'https://foo.localhost/',
      'https://printer.local/',
      'https://metadata.google.internal/',
      'https://ⓛocalhost/',
    ],
  ],
  [
    'a port that no receiver has',
    [
      'https://example.com:0/',
      'https://example.com:22/',
      'https://example.com:25/',
      'https://example.com:6379/',
      'https://example.com:5432/',
    ],
  ],
  [
    'too many characters',
    [
      `https://example.com/${'x'.repeat(2049 - 'https://example.com/'.length)}`,
      `https://example.com/${'x'.repeat(3_000)}`,
    ],
  ],
];

/** What else may be wrong with a field. */
const refusedFields: [string, unknown[]][] = [
  ['agent_id', [1, null, [], {}]],
  ['url', [1, null, [], {}, true]],
  ['events', [[], null, 'skill.completed', {}, 1, ['skill.completed', 'skill.completed']]],
  ['events.0', [['*'], [''], [null], [1], ['skill.*'], ['Skill.completed'], ['job.completed']]],
  [
    'events.1',
    [
      ['skill.completed', 'x'],
      ['skill.failed', ' skill.failed'],
    ],
  ],
  ['secret', ['', 'x'.repeat(15), 'x'.repeat(201), 'whsec_!!!!!!!!!!!!!!', 1, null, [], {}]],
];

describe.each(['POST', 'PUT'] as const)('refusals of %s', (method) => {
  /** Sends one field, in a request that is otherwise right. */
  async function sending(tenant: Tenant) {
    const { id } = await created(tenant);
    return (fields: Record<string, unknown>) =>
      method === 'POST'
        ? tenant.post('/api/agent-webhooks', { ...wanted, ...fields })
        : tenant.put(`/api/agent-webhooks/${id}`, fields);
  }

  test.each(refusedUrls)('a url with %s is 400 validation_error', async (_what, urls) => {
    const tenant = await newTenant(platform);
    const send = await sending(tenant);

    for (const url of urls) {
      expectInvalid(await send({ url }), 'url');
    }
    expect((await tenant.get('/api/agent-webhooks')).body).toMatchObject([{ url: wanted.url }]);
  });

  test.each(refusedFields.filter(([field]) => method === 'POST' || field !== 'agent_id'))(
    'a wrong %s is 400 and named',
    async (field, values) => {
      const tenant = await newTenant(platform);
      const send = await sending(tenant);
      const name = field.split('.')[0] as string;

      for (const value of values) expectInvalid(await send({ [name]: value }), field);
      expect((await tenant.get('/api/agent-webhooks')).body).toHaveLength(1);
    },
  );

  test.each(['id', 'organization_id', 'created_at', 'failing', 'consecutive_failures', 'foo'])(
    'an unknown field is 400 and named: %s',
    async (field) => {
      const tenant = await newTenant(platform);
      const send = await sending(tenant);

      expectInvalid(await send({ [field]: 'x' }), field);
    },
  );

  test.each(['active', 'agent_id'].filter((field) => (method === 'POST') === (field === 'active')))(
    'a field that it does not take is 400 and named: %s',
    async (field) => {
      const tenant = await newTenant(platform);
      const send = await sending(tenant);

      expectInvalid(await send({ [field]: field === 'active' ? true : 'default' }), field);
    },
  );

  test('a missing body, or one that is not an object, is 400', async () => {
    const tenant = await newTenant(platform);
    const { id } = await created(tenant);
    const path = method === 'POST' ? '/api/agent-webhooks' : `/api/agent-webhooks/${id}`;

    for (const body of [undefined, '', '[]', 'null', '"x"', '1', '{']) {
      expectRefusal(await tenant.send(method, path, { body }), 400, 'validation_error');
    }
  });
});

test('required fields must be present', async () => {
  const tenant = await newTenant(platform);

  for (const field of ['agent_id', 'url', 'events']) {
    expectInvalid(
      await tenant.post('/api/agent-webhooks', { ...wanted, [field]: undefined }),
      field,
    );
  }
});

test('an active that is no boolean is 400', async () => {
  const tenant = await newTenant(platform);
  const { id } = await created(tenant);

  for (const active of ['false', 0, 1, null, '', []]) {
    expectInvalid(await tenant.put(`/api/agent-webhooks/${id}`, { active }), 'active');
  }
});

describe('GET /api/agent-webhooks', () => {
  test('is the array of the webhooks of the organization, newest first, without secrets', async () => {
    const tenant = await newTenant(platform);
    await newTenant(platform).then(created);
    const webhooks: Record<string, unknown>[] = [];
    for (let i = 0; i < 3; i += 1) {
      clock.advance(1);
      webhooks.unshift(await created(tenant, { events: [eventTypes[i]] }));
    }

    const { status, body, headers } = await tenant.get('/api/agent-webhooks');

    expect(status).toBe(200);
    expect(body).toEqual(webhooks.map(shown));
    expect(headers.get('x-total-count')).toBe('3');
  });

  test('is complete', async () => {
    const tenant = await newTenant(platform);
    const agents = ['first', 'second', 'third'];
    for (const id of agents) await tenant.post('/api/agents', { id });
    // An agent may have 50.
    await Promise.all(
      Array.from({ length: 120 }, (_, n) => created(tenant, { agent_id: agents[n % 3] })),
    );

    const { body, headers } = await tenant.get('/api/agent-webhooks');

    expect(body).toHaveLength(120);
    expect(headers.get('x-total-count')).toBe('120');
  });

  test('is empty at first', async () => {
    const tenant = await newTenant(platform);

    const { body, headers } = await tenant.get('/api/agent-webhooks');

    expect([body, headers.get('x-total-count')]).toEqual([[], '0']);
  });
});

describe('GET /api/agent-webhooks/:webhookId', () => {
  test('is the webhook without its secret, with how it fares', async () => {
    const tenant = await newTenant(platform);
    const webhook = await created(tenant);

    const { status, body } = await tenant.get(`/api/agent-webhooks/${webhook.id}`);

    expect(status).toBe(200);
    expect(body).toEqual(shown(webhook));
  });
});

describe('PUT /api/agent-webhooks/:webhookId', () => {
  test('changes only the given fields, and refreshes updated_at', async () => {
    const tenant = await newTenant(platform);
    const webhook = await created(tenant);
    const path = `/api/agent-webhooks/${webhook.id}`;

    for (const change of [
      { url: 'https://other.example.com/' },
      { events: ['agent.error'] },
      { active: false },
      { active: true },
    ]) {
      const { body: before } = await tenant.get(path);
      clock.advance(1_000);

      const { status, body } = await tenant.put(path, change);

      expect(status).toBe(200);
      expect(body).toEqual({ ...before, ...change, updated_at: aTimestamp });
      expect(Date.parse(body.updated_at)).toBe(clock.now());
      expect((await tenant.get(path)).body).toEqual(body);
    }
  });

  test('takes a new secret and does not show it', async () => {
    const tenant = await newTenant(platform);
    const { id } = await created(tenant);

    const { status, text } = await tenant.put(`/api/agent-webhooks/${id}`, {
      secret: 'another secret of mine',
    });

    expect(status).toBe(200);
    expect(text).not.toContain('secret');
  });

  test('{} changes nothing', async () => {
    const tenant = await newTenant(platform);
    const webhook = await created(tenant);
    clock.advance(1_000);

    const { status, body } = await tenant.put(`/api/agent-webhooks/${webhook.id}`, {});

    expect({ status, body }).toEqual({ status: 200, body: shown(webhook) });
  });
});

describe('DELETE /api/agent-webhooks/:webhookId', () => {
  test('answers 204 with an empty body, and the webhook no longer exists', async () => {
    const tenant = await newTenant(platform);
    const { id } = await created(tenant);

    const answer = await tenant.delete(`/api/agent-webhooks/${id}`);

    expect({ status: answer.status, text: answer.text }).toEqual({ status: 204, text: '' });
    expect((await tenant.get('/api/agent-webhooks')).body).toEqual([]);
    expectRefusal(await tenant.get(`/api/agent-webhooks/${id}`), 404, 'not_found');
    expectRefusal(await tenant.delete(`/api/agent-webhooks/${id}`), 404, 'not_found');
  });

  test('removes its deliveries too', async () => {
    const tenant = await newTenant(platform);
    const { id } = await created(tenant);
    const { status, body } = await tenant.post(`/api/agent-webhooks/${id}/test`);

    await tenant.delete(`/api/agent-webhooks/${id}`);

    expect(status).toBe(202);
    expectRefusal(await tenant.get(`/api/agent-webhooks/${id}/deliveries`), 404, 'not_found');
    const rows = await platform.database.read.kysely
      .selectFrom('webhook_deliveries')
      .select('id')
      .where('id', '=', body.id)
      .execute();
    expect(rows).toEqual([]);
  });
});

/** Every operation on one webhook, with a body that its schema takes. */
const operations: [method: string, path: string, body?: unknown][] = [
  ['GET', ''],
  ['PUT', '', { active: false }],
  ['DELETE', ''],
  ['GET', '/deliveries'],
  ['GET', `/deliveries/${randomId}`],
  ['POST', `/deliveries/${randomId}/redeliver`],
  ['POST', '/test'],
];

describe('a change of a webhook of approvals by a key without the scope approvals', () => {
  test('is 403 whatever its body is, except for one that deactivates it', async () => {
    const owner = await newTenant(platform);
    const organization_id = owner.organization;
    const other = await newTenant(platform, { organization_id, scopes: ['text'] });
    const webhook = await created(owner, { events: ['approval.requested'] });
    const at = `/api/agent-webhooks/${webhook.id}`;

    expectRefusal(
      await other.put(at, { url: 'https://other.example/hook' }),
      403,
      'insufficient_scope',
    );
    for (const body of [{ url: 5 }, { colour: 'red' }, []]) {
      expectRefusal(await other.put(at, body), 403, 'insufficient_scope');
      expectRefusal(await owner.put(at, body), 400, 'validation_error');
    }
    expectRefusal(await other.put(at, { url: 'x'.repeat(2 * 2 ** 20) }), 403, 'insufficient_scope');
    expect((await other.put(at, { active: false })).status).toBe(200);
  });
});

describe('a webhook that does not exist for the caller', () => {
  test.each(operations)('%s :webhookId%s is 404 not_found', async (method, path, body) => {
    const tenant = await newTenant(platform);

    for (const id of [randomId, 'x', '1', '%20', '*', `${randomId}0`, randomId.slice(1)]) {
      const answer = await tenant.send(method, `/api/agent-webhooks/${id}${path}`, { body });
      expectRefusal(answer, 404, 'not_found');
    }
  });

  test.each(operations)(
    'because it is of another organization is as unknown: %s :webhookId%s',
    async (method, path, body) => {
      const tenant = await newTenant(platform);
      const theirs = await newTenant(platform);
      const webhook = await created(theirs);
      const at = (id: string) => tenant.send(method, `/api/agent-webhooks/${id}${path}`, { body });

      const answer = await at(webhook.id);

      expectRefusal(answer, 404, 'not_found');
      expect(answer.body).toEqual((await at(randomId)).body);
      const untouched = await theirs.get(`/api/agent-webhooks/${webhook.id}`);
      expect(untouched.body).toEqual(shown(webhook));
    },
  );

  test('is 404 before a wrong body is 400', async () => {
    const tenant = await newTenant(platform);

    const answer = await tenant.put(`/api/agent-webhooks/${randomId}`, { foo: 1 });

    expectRefusal(answer, 404, 'not_found');
  });

  test.each(operations)('%s :webhookId%s needs a key', async (method, path, body) => {
    const answer = await platform.request(method, `/api/agent-webhooks/${randomId}${path}`, {
      body,
    });

    expectRefusal(answer, 401, 'authentication_required');
  });
});

describe('GET /api/agent-webhooks/:webhookId/deliveries', () => {
  test('is {data, total, limit, offset}, empty at first', async () => {
    const tenant = await newTenant(platform);
    const { id } = await created(tenant);

    const { status, body } = await tenant.get(`/api/agent-webhooks/${id}/deliveries`);

    expect(status).toBe(200);
    expect(body).toEqual({ data: [], total: 0, limit: 50, offset: 0 });
  });

  test.each([...hostileLimits, 'limit=201'])('%s is 400', async (query) => {
    const tenant = await newTenant(platform);
    const { id } = await created(tenant);

    expectInvalid(await tenant.get(`/api/agent-webhooks/${id}/deliveries?${query}`), 'limit');
  });

  test.each(hostileOffsets)('%s is 400', async (query) => {
    const tenant = await newTenant(platform);
    const { id } = await created(tenant);

    expectInvalid(await tenant.get(`/api/agent-webhooks/${id}/deliveries?${query}`), 'offset');
  });

  test('a delivery of another webhook cannot be sent again through this one', async () => {
    const tenant = await newTenant(platform);
    const [mine, other] = [await created(tenant), await created(tenant)];
    const { body: delivery } = await tenant.post(`/api/agent-webhooks/${other.id}/test`);

    for (const deliveryId of [delivery.id, randomId, 'x']) {
      const path = `/api/agent-webhooks/${mine.id}/deliveries/${deliveryId}/redeliver`;
      expectRefusal(await tenant.post(path), 404, 'not_found');
    }
  });
});

describe('an inactive webhook', () => {
  test('cannot be tested, nor a delivery of it sent again: 409 conflict', async () => {
    const tenant = await newTenant(platform);
    const { id } = await created(tenant);
    const path = `/api/agent-webhooks/${id}`;
    const { body: delivery } = await tenant.post(`${path}/test`);
    await tenant.put(path, { active: false });

    expectRefusal(await tenant.post(`${path}/test`), 409, 'conflict');
    expectRefusal(
      await tenant.post(`${path}/deliveries/${delivery.id}/redeliver`),
      409,
      'conflict',
    );
  });
});

describe('the list of the operator, WEBHOOK_ALLOW_CIDRS', () => {
  let permissive: Platform;
  beforeAll(async () => {
    permissive = await startPlatform({
      environment: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8, fd00::/8' },
    });
  });
  afterAll(() => permissive.stop());

  test.each([
    'https://127.0.0.1/',
    'https://127.0.0.1:22/',
    'https://0x7f.1:8443/',
    'https://[::ffff:7f00:1]/',
    'https://[fd00::1]:9000/',
    'https://localhost:8443/',
    'https://receiver.internal/',
  ])('lets a url be in its ranges: %s', async (url) => {
    const tenant = await newTenant(permissive);

    expect((await created(tenant, { url })).url).toBe(url);
  });

  test.each([
    'https://10.0.0.1/',
    'https://[::1]/',
    'https://169.254.169.254/',
    'http://127.0.0.1/',
    'https://user@127.0.0.1/',
    'https://127.0.0.1/#part',
  ])('lets through nothing else: %s', async (url) => {
    const tenant = await newTenant(permissive);

    expectInvalid(await tenant.post('/api/agent-webhooks', { ...wanted, url }), 'url');
  });
});
