/** `/openapi.json?skills=1` has an operation for each skill that the key may run. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { toolFile } from '../../scripts/tools.ts';
import { documentOf } from '../../src/adapters/http/openapi.ts';
import { SkillsDocument } from '../../src/core/skills/openapi/skills-document.ts';
import type { Skill, SkillRegistry } from '../../src/core/skills/registry.ts';
import { newId } from '../../src/kernel/ids.ts';
import { lintOpenApi } from '../support/lint-openapi.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { sendRaw } from '../support/raw-http.ts';
import { areToolsHere } from '../support/tools.ts';

const root = join(import.meta.dirname, '../..');
const hasGenerators = await areToolsHere('scripts/tools/checks');
const path = '/openapi.json?skills=1';
let platform: Platform;
let key: string;
beforeAll(async () => {
  platform = await startPlatform();
  key = await platform.key();
});
afterAll(() => platform.stop());

test('is for callers with a key', async () => {
  const codes = async (headers: Record<string, string>) => {
    const { status, body } = await platform.request('GET', path, { headers });
    return [status, body.error];
  };
  expect(await codes({})).toEqual([401, 'authentication_required']);
  expect(await codes({ 'x-api-key': 'sk_wrong' })).toEqual([401, 'invalid_api_key']);
  const other = await platform.request('GET', '/openapi.json?skills=all', { key });
  expect([other.status, other.body.details]).toMatchObject([400, [{ field: 'skills' }]]);
});

test('has all other operations, and those of the active skills that the key may run, in the order of the registry', async () => {
  const scoped = await platform.key({ scopes: ['text', 'util'] });
  const plain = await platform.request('GET', '/openapi.json');
  const skills = await platform.request('GET', '/api/skills?runnable=true', { key: scoped });

  const { status, body, headers } = await platform.request('GET', path, { key: scoped });

  expect(status).toBe(200);
  expect(headers.get('cache-control')).toBe('private, no-cache');
  expect(headers.get('vary')).toContain('x-api-key');
  expect(headers.has('x-ratelimit-remaining')).toBe(true);
  const named = skills.body.map(
    (skill: { category: string; version: string; skill_name: string }) =>
      `/api/${skill.category}/${skill.version}/${skill.skill_name}`,
  );
  expect(named.length).toBeGreaterThan(5);
  expect(Object.keys(body.paths)).toEqual([...Object.keys(plain.body.paths), ...named]);
  expect(body.paths['/api/text/v1.0/word-count'].post).toMatchObject({
    operationId: 'textWordCount_v1_0',
    summary: 'Word count',
    tags: ['Skills: text'],
    security: [{ apiKey: [] }],
  });
});

test('describes input and output of a skill as the platform takes and gives them', async () => {
  const { body: document } = await platform.request('GET', path, { key });
  const { requestBody, responses } = document.paths['/api/text/v1.0/word-count'].post;
  const input = requestBody.content['application/json'];
  const ajv = new Ajv2020({ strict: false });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  const isValid = (schema: object, value: unknown) =>
    ajv.validate({ ...schema, components: document.components }, value);

  const job = await platform.run(key, 'text/v1.0/word-count', input.examples.example1.value);

  const output = responses[200].content['application/json'].schema;
  expect(isValid(input.schema, input.examples.example1.value)).toBe(true);
  expect(isValid(input.schema, {})).toBe(false);
  expect(isValid(output, job.body)).toBe(true);
  expect(isValid(output, { ...job.body, output: { words: 'many' } })).toBe(false);
  expect(isValid(output, { ...job.body, output: null })).toBe(true);
});

interface Described {
  readonly name: string;
  readonly description: string;
}

test('says of each header of a request whether it may be repeated, as the platform takes it', async () => {
  const { body: document } = await platform.request('GET', path, { key });
  const { parameters } = document.paths['/api/util/v1.0/echo'].post;
  const headers: Described[] = parameters.map(({ $ref }: { $ref: string }) =>
    referred(document, $ref),
  );
  const values = {
    'x-agent-id': 'default',
    'x-user-id': 'alice',
    'x-user-name': 'Alice',
    'idempotency-key': 'once',
    'x-conversation-id': newId(),
    'x-conversation-mode': 'queue',
    'x-concurrency-key': 'client 7',
    prefer: 'wait=0',
    ...{ 'x-priority': 'high', 'x-expires-in': '3600', 'x-delay-seconds': '60' },
    'x-run-at': new Date(Date.now() + 3_600_000).toISOString(),
    ...{ 'x-job-key': 'one', 'x-job-key-mode': 'skip' },
    ...{ 'x-debounce-seconds': '1', 'x-debounce-max-seconds': '10' },
  };
  expect(headers.map(({ name }) => name).toSorted()).toEqual(Object.keys(values).toSorted());

  for (const { name, description } of headers) {
    const line = `${name}: ${values[name as keyof typeof values]}\r\n`;
    const answer = await sendRaw(
      platform.url,
      `POST /api/util/v1.0/echo HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\n${line}${line}content-type: application/json\r\ncontent-length: 12\r\n\r\n{"text":"x"}`,
    );

    const said = description.includes('It may be sent once: 400 validation_error');
    expect({ name, status: answer.status }).toEqual({ name, status: said ? 400 : 202 });
    expect({ name, isList: description.includes('may be repeated') }).toEqual({
      name,
      isList: !said,
    });
  }
});

test('describes each header of the answers to a run', async () => {
  const { body: document } = await platform.request('GET', path, { key });
  const { responses } = document.paths['/api/util/v1.0/echo'].post;
  const echo = '/api/util/v1.0/echo';
  const prefer = { prefer: 'wait=60', 'idempotency-key': newId() };
  const body = { text: 'hello' };
  const limited = await platform.key({ rate_limit: 1 });
  await platform.request('GET', '/api/agents', { key: limited });
  const answers = [
    await platform.request('POST', echo, { key, body, headers: prefer }),
    await platform.request('POST', echo, { key, body, headers: prefer }),
    await platform.request('POST', echo, { key, body }),
    await platform.request('POST', echo, { key, body: {} }),
    await platform.request('POST', echo, { key: 'sk_wrong', body }),
    await platform.request('POST', echo, { key: limited, body }),
  ];

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 202, 400, 401, 429]);
  for (const { status, headers } of answers) {
    const { $ref } = responses[status];
    const { headers: named } = $ref === undefined ? responses[status] : referred(document, $ref);
    const described = Object.entries<{ $ref: string }>(named).map(([name, one]) => {
      expect(referred(document, one.$ref)).toMatchObject({
        description: expect.stringMatching(/\S/),
      });
      return name.toLowerCase();
    });
    const own = [...headers.keys()].filter((name) => !ofHttp.has(name));
    expect({ status, undescribed: own.filter((name) => !described.includes(name)) }).toEqual({
      status,
      undescribed: [],
    });
  }
});

/** Headers of each response that tell a client nothing about the platform. */
const ofHttp = new Set([
  ...['content-type', 'content-length', 'transfer-encoding', 'date', 'connection', 'keep-alive'],
  'vary',
]);

/** The component that a reference names. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
function referred(document: any, reference: string): any {
  const [, , kind = '', name = ''] = reference.split('/');
  return document.components[kind][name];
}

test('is confirmed to a client that has it, until the skills change', async () => {
  const read = (etag = '') =>
    platform.request('GET', path, { key, headers: { 'if-none-match': etag } });
  const first = await read();
  const etag = first.headers.get('etag') ?? '';
  expect((await read()).text).toBe(first.text);
  expect(await read(`"other", ${etag}`)).toMatchObject({ status: 304, text: '' });

  const skill = '/admin/skills/util/v1.0/echo';
  await platform.admin('POST', `${skill}/deprecate`);
  onTestFinished(() => platform.admin('POST', `${skill}/activate`).then(() => {}));

  const second = await read(etag);
  expect(second.status).toBe(200);
  expect(second.headers.get('etag')).not.toBe(etag);
  expect(second.body.paths).not.toHaveProperty('/api/util/v1.0/echo');
});

const tree = {
  type: 'object',
  required: ['root'],
  properties: { root: { $ref: '#/$defs/node' } },
  $defs: {
    node: {
      type: 'object',
      required: ['name'],
      additionalProperties: false,
      properties: {
        name: { type: 'string' },
        under: { type: 'array', items: { $ref: '#/$defs/node' } },
      },
    },
  },
};
const list = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  definitions: { pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }] } },
  type: 'array',
  items: { $ref: '#/definitions/pair' },
};

function skillOf(name: string, facts: Partial<Skill> = {}): Skill {
  return {
    ...{ category: 'own', version: 'v1.0', displayName: name, description: `Does ${name}.` },
    ...{ parameters: { type: 'object' }, output: {}, requiredScopes: ['own'], examples: [] },
    ...{ ...facts, name },
  } as Skill;
}

function describe(api: object, skills: readonly Skill[]) {
  const registry = { list: () => skills } as unknown as SkillRegistry;
  return new SkillsDocument(registry).describe(documentOf(api), {
    organizationId: 'default',
    scopes: ['*'],
  });
}

const title =
  'is accepted by generators, with references inside the schemas, and types their calls';
test.skipIf(!hasGenerators)(title, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skillwright-openapi-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { body: described } = await platform.request('GET', path, { key });
  const own = [skillOf('grow-tree', { parameters: tree, output: list })];
  const document = await describe(described, own);
  const file = join(folder, 'openapi.json');
  writeFileSync(file, document.bytes);

  const { problems } = await lintOpenApi(file);
  const generator = toolFile('scripts/tools/checks', 'openapi-typescript/bin/cli.js');
  const types = ['-o', join(folder, 'api.ts')];
  await promisify(execFile)(process.execPath, [generator, file, ...types], { cwd: folder });
  writeFileSync(
    join(folder, 'calls.ts'),
    `import type { operations } from './api.ts';
     type Body<Id extends keyof operations> = operations[Id] extends
       { requestBody: { content: { 'application/json': infer Input } } } ? Input : never;
     type Job<Id extends keyof operations> = operations[Id] extends
       { responses: { 200: { content: { 'application/json': infer One } } } } ? One : never;
     export const words: Body<'textWordCount_v1_0'> = { text: 'a b' };
     // @ts-expect-error The text is missing.
     export const none: Body<'textWordCount_v1_0'> = {};
     export const grown: Body<'ownGrowTree_v1_0'> = { root: { name: 'a', under: [{ name: 'b' }] } };
     // @ts-expect-error A node has a name.
     export const bare: Body<'ownGrowTree_v1_0'> = { root: { name: 'a', under: [{}] } };
     export const pairs = (job: Job<'ownGrowTree_v1_0'>): number => job.output?.[0]?.[1] ?? 0;
     export const count = (job: Job<'textWordCount_v1_0'>): number | undefined => job.output?.words;
    `,
  );
  const options = ['--strict', '--noEmit', '--allowImportingTsExtensions', '--module', 'nodenext'];
  const tsc = join(root, 'node_modules/.bin/tsc');
  const compiled = await promisify(execFile)(tsc, ['--ignoreConfig', ...options, 'calls.ts'], {
    cwd: folder,
  }).catch((error) => error);

  // Those of the operations that all keys have, too: no rule of Redocly's recommended ones is broken.
  expect(problems).toEqual([]);
  expect(compiled.stdout).toBe('');
});

test('has at most 2,000 skills', async () => {
  const { body: described } = await platform.request('GET', '/openapi.json');
  const many = Array.from({ length: 2_001 }, (_, i) => skillOf(`skill-${i}`));
  await expect(describe(described, many)).rejects.toMatchObject({ code: 'validation_error' });
  many.pop();
  const { paths } = JSON.parse((await describe(described, many)).bytes.toString());
  expect(paths).toHaveProperty('/api/own/v1.0/skill-1999');
});
