/** `/openapi.json` describes every operation of the platform in OpenAPI 3.1. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EventType, events, eventTypes } from '../../src/core/events/events.ts';
import { messageHeaders } from '../../src/platform/webhooks/message.ts';
import { type Answer, type Platform, startPlatform } from '../support/platform.ts';

interface Media {
  schema: object;
  example?: unknown;
  examples?: Record<string, { value?: unknown; $ref?: string }>;
}

interface Parameter {
  $ref?: string;
  name: string;
  description?: string;
}

interface Operation {
  operationId?: string;
  summary?: string;
  parameters?: Parameter[];
  tags?: string[];
  security?: object[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { headers?: Record<string, object>; content?: Record<string, Media> }>;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, Record<string, Operation>>;
  components: Record<string, Record<string, { value?: unknown }>>;
  tags: { name: string; description: string }[];
}

const operationNames = join(import.meta.dirname, '../fixtures/operations.txt');
let platform: Platform;
let document: Document;
/** As `GET /api/jobs`. */
let operations: Map<string, Operation>;

beforeAll(async () => {
  platform = await startPlatform();
  document = (await platform.request('GET', '/openapi.json')).body;
  operations = new Map(
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, one]) => [`${method.toUpperCase()} ${path}`, one]),
    ),
  );
});
afterAll(() => platform.stop());

const ajv = new Ajv2020({ strict: false });
(addFormats as unknown as (ajv: Ajv2020) => void)(ajv);

/** By the text of their schemas: the refusals of all operations have one. */
const validators = new Map<string, ValidateFunction>();

/** Says what is wrong with a value, or undefined. */
function faultOf(schema: object, value: unknown): string | undefined {
  const text = JSON.stringify(schema);
  const validate =
    validators.get(text) ?? ajv.compile({ ...schema, components: document.components });
  validators.set(text, validate);
  return validate(value) ? undefined : ajv.errorsText(validate.errors);
}

/** The routes of the server, as the document would write them; HEAD goes with GET. */
function registeredRoutes(): string[] {
  const parents: string[] = [];
  const lines = platform.app.server.printRoutes({ commonPrefix: false }).split('\n');
  return lines.flatMap((line) => {
    const match = /^([│ ├└─]*)(\S+)(?: \((.+)\))?$/.exec(line);
    if (match === null) return [];
    const [, indent = '', part = '', methods = ''] = match;
    const depth = indent.length / 4;
    const path = `${parents[depth - 1] ?? ''}${part}`;
    parents[depth] = path;
    const written = path.replace(/:(\w+)/g, '{$1}');
    return methods
      .split(', ')
      .filter((method) => method !== '' && method !== 'HEAD')
      .map((method) => `${method} ${written}`);
  });
}

function sent([event, { post }]: [string, Record<string, Operation>]): [string, Operation] {
  return [event, post!];
}

function mediaOf(operation: Operation): Media[] {
  const contents = [operation.requestBody, ...Object.values(operation.responses)];
  return contents.flatMap((one) => Object.values(one?.content ?? {}));
}

function examplesOf({ schema, example, examples = {} }: Media): unknown[] {
  return [
    ...(example === undefined ? [] : [example]),
    ...((schema as { examples?: unknown[] }).examples ?? []),
    ...Object.values(examples).map(({ value, $ref }) =>
      $ref === undefined
        ? value
        : document.components['examples']?.[$ref.split('/').at(-1)!]?.value,
    ),
  ];
}

describe('the document', () => {
  test('has every route of the server and no other', () => {
    const scripts = [
      ...['GET /docs/', 'GET /docs/scalar.js'],
      // The router prints a wildcard without the slash before it.
      ...['GET /docs/guide', 'GET /docs/guide*'],
    ];
    // A protocol with a description of its own.
    const metadata = 'GET /.well-known/oauth-protected-resource';
    const mcp = ['POST /mcp', metadata, `${metadata}/mcp`];
    // A document for authorization servers.
    const client = 'GET /oauth/clients/{server}';

    const documented = [...operations.keys(), ...scripts, ...mcp, client];

    // Routes that share a place of their paths are printed with both names of the parameter there.
    const nameless = (route: string) => route.replace(/\{\w+\}(\|\{\w+\})*/g, '{}');
    expect(documented.map(nameless).sort()).toEqual(registeredRoutes().map(nameless).sort());
  });

  test('names, sums up, files and secures every operation', () => {
    const tags = document.tags.map(({ name }) => name);
    const ids = [...operations.values()].map(({ operationId }) => operationId);

    expect(new Set(ids).size).toBe(operations.size);
    for (const [name, { operationId, summary, security, ...operation }] of operations) {
      expect(operationId, name).toMatch(/^[a-z][A-Za-z]+$/);
      expect(summary, name).toMatch(/\S/);
      expect(tags, name).toContain(operation.tags?.[0]);
      expect(security, name).toEqual(credentialsFor(name));
    }
  });

  test('describes every parameter', () => {
    const shared = document.components['parameters'] as unknown as Record<string, Parameter>;
    const all = [...operations, ...Object.entries(document.webhooks).map(sent)];
    const undescribed = all.flatMap(([name, { parameters = [] }]) =>
      parameters
        .map(({ $ref, ...one }) => shared[$ref?.split('/').at(-1) ?? ''] ?? one)
        .filter(({ description = '' }) => !/\S/.test(description))
        .map((parameter) => `${name}: ${parameter.name}`),
    );
    expect(undescribed).toEqual([]);
  });

  test('keeps the names of operations, which are those of methods of generated clients', () => {
    const recorded = readFileSync(operationNames, 'utf8').trim().split('\n');
    const names = [...operations].map(([name, { operationId }]) => `${operationId} ${name}`);
    // A new operation needs a line there. A name that changes breaks the clients that are generated from it.
    expect(names.sort()).toEqual(recorded);
  });

  test('types the events of every stream: their names, and what each tells', () => {
    const streams = [...operations].flatMap(([name, { responses }]) => {
      const media = responses['200']?.content?.['text/event-stream'];
      return media === undefined ? [] : [{ name, media }];
    });
    const firsts = ['listening', 'status'];
    expect(streams.map(({ name }) => name).sort()).toEqual([
      'GET /api/agent-webhooks/listen',
      'GET /api/jobs/{jobId}/events',
    ]);
    for (const { name, media } of streams) {
      const [example] = examplesOf(media) as [{ data: object }];
      expect(firsts).toContain((example as unknown as { event: string }).event);
      expect(faultOf(media.schema, { ...example, event: 'another' }), name).toBeDefined();
      expect(faultOf(media.schema, { ...example, data: {} }), name).toBeDefined();
    }
  });

  test('names the refusals of every operation, by their codes', () => {
    for (const [name, { responses }] of operations) {
      const isGuarded = credentialsFor(name).length > 0;
      const statuses = Object.keys(responses);
      expect(statuses, name).toEqual(
        expect.arrayContaining(['400', '500', '503', ...(isGuarded ? ['401'] : [])]),
      );
      if (name.includes(' /api/')) expect(statuses, name).toContain('429');
    }
    const cancel = operations.get('POST /api/jobs/{jobId}/cancel')?.responses['422'];
    expect(Object.keys(cancel?.content?.['application/json']?.examples ?? {})).toEqual([
      'job_not_cancellable',
    ]);
  });

  test('shows an example of every body, and each is as its schema says', () => {
    for (const [name, operation] of operations) {
      for (const media of mediaOf(operation)) {
        const examples = examplesOf(media);
        expect(examples.length, name).toBeGreaterThan(0);
        for (const example of examples) {
          expect(faultOf(media.schema, example), name).toBeUndefined();
        }
      }
    }
  });

  test('describes the request of every event that webhooks deliver, with an example of it', () => {
    expect(Object.keys(document.webhooks)).toEqual(eventTypes);
    for (const [event, { post }] of Object.entries(document.webhooks)) {
      const { schema, example } = post!.requestBody!.content['application/json']!;
      expect(example).toMatchObject({ event, data: events[event as EventType].sample });
      expect(faultOf(schema, example), event).toBeUndefined();
      expect(faultOf(schema, { ...(example as object), event: 'another' }), event).toBeDefined();
      const signed = messageHeaders(
        { id: 'd1', event, body: '{}' },
        'a secret of 16 characters',
        0,
      );
      const { 'content-type': _, ...headers } = signed;
      const named = post!.parameters!.map(({ $ref }) => $ref?.split('/').at(-1));
      expect(named).toEqual(Object.keys(headers));
    }
  });

  test('names the headers that tell a client something', () => {
    const headersOf = (name: string, status: string) =>
      Object.keys(operations.get(name)?.responses[status]?.headers ?? {});

    expect(headersOf('GET /api/conversations', '200')).toEqual([
      'X-Request-Id',
      'X-RateLimit-Limit',
      'X-RateLimit-Remaining',
      'X-RateLimit-Reset',
      'X-Total-Count',
    ]);
    expect(headersOf('GET /api/conversations', '429')).toContain('Retry-After');
    expect(headersOf('GET /api/conversations', '401')).toEqual(['X-Request-Id']);
    expect(headersOf('POST /api/{category}/{version}/{skillName}', '202')).toContain('Location');
  });
});

describe('the server', () => {
  test('answers as the document says', async () => {
    const key = await platform.key();
    const job = await platform.run(key, 'util/v1.0/echo', { text: 'hello' });
    const conversation = `/api/conversations/${job.body.conversation_id}`;

    expectAsDocumented('POST /api/{category}/{version}/{skillName}', job);
    for (const [name, path] of [
      ['GET /api/jobs', '/api/jobs'],
      ['GET /api/jobs/{jobId}', `/api/jobs/${job.body.job_id}`],
      ['GET /api/skills', '/api/skills'],
      ['GET /api/skills/{category}/{version}/{skillName}', '/api/skills/util/v1.0/echo'],
      ['GET /api/agents', '/api/agents'],
      ['GET /api/agents/{agentId}', '/api/agents/default'],
      ['GET /api/conversations', '/api/conversations'],
      ['GET /api/conversations/{id}', conversation],
      ['GET /api/conversations/{id}/messages', `${conversation}/messages`],
      ['GET /api/conversations/{id}/token-usage', `${conversation}/token-usage`],
      ['GET /api/agents/{agentId}', '/api/agents/nobody'],
      ['GET /api/jobs', '/api/jobs?limit=0'],
      ['GET /health', '/health'],
      ['GET /openapi.json', '/openapi.json'],
    ] as const) {
      expectAsDocumented(name, await platform.request('GET', path, { key }));
    }
    expectAsDocumented('GET /api/jobs', await platform.request('GET', '/api/jobs'));
    expectAsDocumented('GET /admin/api-keys', await platform.admin('GET', '/admin/api-keys'));
  });

  test('/docs/ redirects to /docs, behind any path prefix of a proxy', async () => {
    const answer = await fetch(`${platform.url}/docs/`, { redirect: 'manual' });

    expect(answer.status).toBe(302);
    expect(answer.headers.get('location')).toBe('../docs');
    expect((await platform.request('GET', '/docs/')).text).toContain('<!doctype html>');
  });

  test('confirms the script of /docs to a browser that has it', async () => {
    const url = `${platform.url}/docs/scalar.js`;
    const [packed, plain] = await Promise.all(
      ['gzip', 'identity'].map((coding) => fetch(url, { headers: { 'accept-encoding': coding } })),
    );
    const etag = packed?.headers.get('etag') ?? '';

    const again = await fetch(url, { headers: { 'if-none-match': etag } });

    expect(packed?.headers.get('content-encoding')).toBe('gzip');
    expect(plain?.headers.get('content-encoding')).toBeNull();
    expect(await plain?.text()).toBe(await packed?.text());
    expect(again.status).toBe(304);
  });
});

/** The status is documented, with the headers that came, and the body fits its schema. */
function expectAsDocumented(name: string, { status, body, headers }: Answer): void {
  const response = operations.get(name)?.responses[status];
  const media = response?.content?.['application/json'];
  expect(media, `${name} ${status}`).toBeDefined();
  expect(faultOf(media?.schema ?? {}, body), `${name} ${status}`).toBeUndefined();
  for (const header of Object.keys(response?.headers ?? {})) {
    if (
      header === 'Idempotent-Replayed' ||
      header === 'X-Next-Offset' ||
      header === 'X-Job-Key-Result' ||
      header === 'Preference-Applied'
    )
      continue;
    expect(headers.has(header), `${name} ${status} ${header}`).toBe(true);
  }
}

function credentialsFor(name: string): object[] {
  // The skills of a key are for that key.
  if (name === 'GET /openapi.json') return [{}, { apiKey: [] }];
  if (name.includes(' /admin/')) return [{ adminBearer: [] }, { adminHeader: [] }];
  // The token in its path is its credential.
  if (name === 'POST /api/webhooks/agent/{webhookToken}') return [];
  return name.includes(' /api/') ? [{ apiKey: [] }] : [];
}
