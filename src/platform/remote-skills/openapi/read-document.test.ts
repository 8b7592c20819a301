import { describe, expect, test } from 'vitest';
import type { Json } from '../../../kernel/json.ts';
import { checkSchema, compileSchema } from '../../../kernel/json-schema.ts';
import type { Operation } from './operation.ts';
import { type ReadRequest, readDocument } from './read-document.ts';

function read(document: object | string, request: Partial<ReadRequest> = {}) {
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  const choice = { operations: null, credentials: null, documentUrl: null };
  return readDocument({ text, ...choice, baseUrl: 'https://api.example.com', ...request });
}

/** A document with one operation. */
function documentOf(operation: object, more: object = {}): object {
  return { openapi: '3.1.0', paths: { '/things/{id}': { post: operation } }, ...more };
}

function only(document: object, request: Partial<ReadRequest> = {}): Operation {
  const { operations, leftOut } = read(document, request);
  expect(leftOut).toEqual([]);
  return operations[0] as Operation;
}

const json = (schema: unknown) => ({ content: { 'application/json': { schema } } });
const query = (name: string, schema: unknown = {}) => ({ name, in: 'query', schema });

describe('an input', () => {
  test('has a member for each parameter, and the body', () => {
    const { input, plan } = only(
      documentOf({
        parameters: [
          query('limit', { type: 'integer' }),
          query('id'),
          query('body'),
          { name: 'x-trace', in: 'header', schema: { type: 'string' } },
          { name: 'Authorization', in: 'header', required: true, schema: { type: 'string' } },
        ],
        requestBody: { required: true, ...json({ type: 'object' }) },
      }),
    );
    expect(Object.keys(input['properties'] as Json)).toEqual([
      ...['limit', 'id', 'body_in_query', 'x-trace', 'id_in_path', 'body'],
    ]);
    expect(input['required']).toEqual(['id_in_path', 'body']);
    expect(plan.parameters.map(({ name, in: where }) => `${where} ${name}`)).toEqual([
      ...['query limit', 'query id', 'query body', 'header x-trace', 'path id'],
    ]);
  });

  test('does not ask for what the credentials set', () => {
    const operation = { parameters: [query('api_key'), query('q')] };
    const credentials = { in: 'query', name: 'api_key' } as const;
    const { input } = only(documentOf(operation), { credentials });
    expect(Object.keys(input['properties'] as Json)).toEqual(['q', 'id']);
  });

  test('follows 3.0: nullable, exclusive bounds, read-only properties', () => {
    const schema = {
      type: 'object',
      required: ['id', 'count'],
      properties: {
        id: { type: 'string', readOnly: true },
        count: { type: 'integer', minimum: 0, exclusiveMinimum: true, nullable: true },
        kind: { type: 'string', nullable: true, enum: ['a'] },
      },
    };
    const document = { ...documentOf({ requestBody: json(schema) }), openapi: '3.0.3' };
    const validate = compileSchema(only(document).input);
    expect(validate({ id: 'x', body: { count: 1, kind: null } })).toBeNull();
    expect(validate({ id: 'x', body: { count: null } })).toBeNull();
    expect(validate({ id: 'x', body: { count: 0 } })).not.toBeNull();
    expect(validate({ id: 'x', body: {} })).toMatchObject([{ field: 'body.count' }]);
  });

  test('has recursive schemas as definitions', () => {
    const node = {
      type: 'object',
      properties: { name: { type: 'string' }, next: { $ref: '#/components/schemas/Node' } },
      required: ['name'],
    };
    const body = json({ $ref: '#/components/schemas/Node' });
    const document = documentOf({ requestBody: body }, { components: { schemas: { Node: node } } });
    const validate = compileSchema(only(document).input);
    expect(validate({ id: 'x', body: { name: 'a', next: { name: 'b' } } })).toBeNull();
    expect(validate({ id: 'x', body: { name: 'a', next: {} } })).not.toBeNull();
  });

  test('leaves out rules that cannot be checked', () => {
    const schema = { type: 'string', pattern: '(?=a)b', minLength: 'many', enum: [] };
    const { input } = only(documentOf({ requestBody: json(schema) }));
    expect(input).toMatchObject({ properties: { body: { type: 'string' } } });
    expect(() => checkSchema(input)).not.toThrow();
  });

  test('takes files as base64', () => {
    const schema = {
      type: 'object',
      properties: { file: { type: 'string', format: 'binary' }, note: { type: 'string' } },
    };
    const content = { 'multipart/form-data': { schema } };
    const document = { ...documentOf({ requestBody: { content } }), openapi: '3.0.3' };
    const { input, plan } = only(document);
    expect(compileSchema(input)({ id: 'x', body: { file: { base64: 'AA==' } } })).toBeNull();
    expect(plan.body).toMatchObject({ form: 'multipart', parts: { file: { isFile: true } } });
  });
});

describe('an output', () => {
  test('describes the answer, without bounds and formats', () => {
    const schema = {
      type: 'object',
      additionalProperties: false,
      properties: { at: { type: 'string', format: 'date-time', maxLength: 3 } },
    };
    const responses = { 200: json(schema), 404: json({ type: 'string' }) };
    const { output } = only(documentOf({ responses }));
    expect(output).toMatchObject({
      required: ['status', 'headers', 'body'],
      properties: { body: { type: 'object', properties: { at: { type: 'string' } } } },
    });
    expect(JSON.stringify(output)).not.toMatch(/date-time|maxLength/);
  });

  test('is free where its schema leads out of the document', () => {
    const responses = { 200: json({ $ref: 'https://example.com/other.json' }) };
    const { output } = only(documentOf({ responses }));
    expect(output).toMatchObject({ properties: { body: {} } });
  });
});

describe('names', () => {
  const named = (paths: object) =>
    read({ openapi: '3.1.0', paths }).operations.map(({ tool, skillName }) => [tool, skillName]);

  test('are those of the document in kebab case, or of method and path', () => {
    expect(
      named({
        '/pets': { get: { operationId: 'listHTTPPets_now' }, post: {} },
        '/pets/{petId}': { delete: { operationId: '???' } },
      }),
    ).toEqual([
      ['GET /pets', 'list-http-pets-now'],
      ['POST /pets', 'post-pets'],
      ['DELETE /pets/{petId}', 'delete-pets-pet-id'],
    ]);
  });

  test('that collide are made from method and path, whatever the order', () => {
    const [a, b, c] = [
      { '/a': { get: { operationId: 'doIt' } } },
      { '/b': { get: { operationId: 'do_it' } } },
      { '/c': { get: { operationId: 'getA' } } },
    ];
    const expected = new Map([
      ['GET /a', 'get-a-2'],
      ['GET /b', 'get-b'],
      ['GET /c', 'get-a'],
    ]);
    expect(new Map(named({ ...a, ...b, ...c }) as [string, string][])).toEqual(expected);
    expect(new Map(named({ ...c, ...b, ...a }) as [string, string][])).toEqual(expected);
  });

  test('that are too long end with a digest', () => {
    const names = ['x', 'y'].map((end) => `${'word '.repeat(30)}${end}`);
    const [first, second] = names.map(
      (operationId) => named({ '/a': { get: { operationId } } })[0]?.[1] as string,
    );
    expect(first?.length).toBeLessThanOrEqual(64);
    expect(first).not.toBe(second);
  });
});

describe('servers', () => {
  const base = (document: object, request: Partial<ReadRequest>) =>
    only(documentOf({}, document), { baseUrl: null, ...request }).plan.baseUrl;

  test('are those of the document, with the defaults of their variables', () => {
    const variables = { region: { default: 'eu' } };
    const servers = [{ url: 'https://{region}.example.com/v1/', variables }];
    expect(base({ servers }, {})).toBe('https://eu.example.com/v1');
  });

  test('may be relative to the address of the document', () => {
    const documentUrl = 'https://example.com/docs/openapi.json';
    expect(base({ servers: [{ url: '../v1' }] }, { documentUrl })).toBe('https://example.com/v1');
    expect(base({}, { documentUrl })).toBe('https://example.com');
  });

  test('of another host leave an operation out, because credentials are for one service', () => {
    const document = documentOf(
      { servers: [{ url: 'https://evil.example' }] },
      { servers: [{ url: 'https://example.com' }] },
    );
    const { operations, leftOut } = read(document, { baseUrl: null });
    expect([operations, leftOut]).toEqual([
      [],
      [
        {
          tool: 'POST /things/{id}',
          reason: 'It is at another host, evil.example: import it on its own, with a base_url',
        },
      ],
    ]);
  });
});

describe('a hostile document', () => {
  const reasons = (document: object) => read(document).leftOut.map(({ reason }) => reason);
  const refused = (document: object | string, message: string) =>
    expect(() => read(document)).toThrow(message);

  test('is refused as a whole where it is no document, or too large', () => {
    refused('', 'The document is not an object');
    refused('{"openapi": "3.1.0", ', 'The document is not valid JSON');
    refused('a: [1', 'The document is not valid YAML');
    refused({ paths: {} }, 'The document names no version');
    refused({ openapi: '3.1.0' }, 'The document has no operations');
    const deep = `{"openapi":"3.1.0","x":${'['.repeat(5_000)}${']'.repeat(5_000)}}`;
    refused(deep, 'The document is nested more than 64 levels deep');
    const wide = `{"openapi":"3.1.0","x":[${'0,'.repeat(600_000)}0]}`;
    refused(wide, 'The document has more than 500000 members');
  });

  test('is refused where the aliases of YAML multiply or lead in a circle', () => {
    const lines = ['openapi: 3.1.0', 'a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let n = 1; n < 9; n++) {
      lines.push(
        `a${n}: &a${n} [${Array(10)
          .fill(`*a${n - 1}`)
          .join(', ')}]`,
      );
    }
    refused(lines.join('\n'), 'The document cannot be read');
    refused('openapi: 3.1.0\na: &a {b: *a}', 'The document');
  });

  test('costs the operations with references that lead out, nowhere or in a circle', () => {
    const body = ($ref: unknown) => ({ requestBody: json({ $ref }) });
    const out = documentOf(body('http://169.254.169.254/latest'));
    expect(reasons(out)).toEqual([
      'The reference "http://169.254.169.254/latest" leads out of the document: bundle it into one file first',
    ]);
    expect(reasons(documentOf(body('file:///etc/passwd')))[0]).toContain('leads out');
    expect(reasons(documentOf(body('#/components/schemas/None')))[0]).toContain('leads nowhere');
    expect(reasons(documentOf(body('#/__proto__/constructor')))[0]).toContain('leads nowhere');
    const circle = { a: { $ref: '#/components/requestBodies/a' } };
    const operation = { requestBody: { $ref: '#/components/requestBodies/a' } };
    const document = documentOf(operation, { components: { requestBodies: circle } });
    expect(reasons(document)[0]).toContain('leads to more than 32 others');
  });

  test('with huge schemas gives inputs within the limits', () => {
    const schemas: Json = {};
    for (let n = 0; n < 300; n++) {
      const properties = Object.fromEntries(
        Array.from({ length: 20 }, (_, i) => [
          `p${i}`,
          { $ref: `#/components/schemas/s${(n * 7 + i) % 300}`, description: 'd'.repeat(200) },
        ]),
      );
      schemas[`s${n}`] = { type: 'object', properties };
    }
    const body = json({ $ref: '#/components/schemas/s0' });
    const { input } = only(documentOf({ requestBody: body }, { components: { schemas } }));
    expect(() => checkSchema(input)).not.toThrow();
    expect(compileSchema(input)({ id: 'x', body: { p0: {} } })).toBeNull();
  });

  test('with too many operations says how to choose some', () => {
    const paths = Object.fromEntries(
      Array.from({ length: 501 }, (_, n) => [`/p${n}`, { get: { operationId: `op${n}` } }]),
    );
    const document = { openapi: '3.1.0', paths };
    refused(document, 'has 501 operations, more than 500: choose some with operations');
    expect(read(document, { operations: ['op7', 'GET /p9'] }).operations).toHaveLength(2);
    expect(() => read(document, { operations: ['none'] })).toThrow('no operation "none"');
  });

  test('sets no header of the connection', () => {
    const headers = ['Host', 'Content-Length', 'Transfer-Encoding', 'Cookie', 'Connection'];
    const parameters = headers.map((name) => ({ name, in: 'header', required: true, schema: {} }));
    expect(only(documentOf({ parameters })).plan.parameters).toMatchObject([{ name: 'id' }]);
  });
});
