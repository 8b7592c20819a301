/**
 * Makes the generated part of `@skillwright/client` from the OpenAPI document: what the generator of types has to
 * read, and the operations, grouped by tag, with a method for each. Headers are options of a method, and no parameters.
 */

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
}

interface Body {
  readonly required?: boolean;
  readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Answer {
  readonly content?: Body['content'];
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Answer>>;
  readonly security: readonly Readonly<Record<string, unknown>>[];
}

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

export interface OpenApi {
  readonly paths: Paths;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
  readonly webhooks: Readonly<
    Record<string, { post: { requestBody: { content: Record<string, { schema: Schema }> } } }>
  >;
}

/** A method of the client. */
interface Method {
  readonly group: string;
  readonly name: string;
  readonly verb: string;
  readonly path: string;
  readonly operation: Operation;
}

/** Written by hand (jobs.ts), or made for people. */
const excluded: ReadonlySet<string> = new Set([
  'executeSkill',
  'streamJobEvents',
  'listenForWebhookEvents',
  'getDocs',
  // Bytes.
  'uploadFile',
  'getFileContent',
]);
/** `skills` are for calls, and `events` are shorter than run events. */
const groupNames: Readonly<Record<string, string>> = { Skills: 'registry', 'Run events': 'events' };

const header =
  '/** Generated from /openapi.json by `npm run console:types`: changes here are lost. */\n';

/** The document with nothing in it but what types of the client and the console are made of. */
export function withoutAnswersOfErrors({ paths, components, webhooks }: OpenApi): object {
  const kept = Object.entries(paths).map(([path, operations]): [string, object] => [
    path,
    Object.fromEntries(
      Object.entries(operations).map(([verb, operation]) => [verb, withoutErrors(operation)]),
    ),
  ]);
  const events = Object.entries(webhooks).map(([event, { post }]): [string, unknown] => [
    `${pascal(event)}Event`,
    post.requestBody.content['application/json']?.schema,
  ]);
  const schemas = { ...components.schemas, ...Object.fromEntries(events) };
  const info = { title: 'Skillwright', version: '1' };
  return plain({
    openapi: '3.1.0',
    info,
    paths: Object.fromEntries(kept),
    components: { schemas },
  });
}

function withoutErrors(operation: Operation): object {
  const { operationId, parameters, requestBody, responses } = operation;
  const successes = Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([status, { content }]) => [status, { description: '', ...(content && { content }) }]);
  return { operationId, parameters, requestBody, responses: Object.fromEntries(successes) };
}

/** Without examples, which would be most of the file. */
function plain(value: object): object {
  const text = JSON.stringify(value, (key, inner: unknown) =>
    (key === 'example' || key === 'examples') && !isSchema(inner) ? undefined : inner,
  );
  return JSON.parse(text) as object;
}

/** A property may be called `examples`. */
function isSchema(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('type' in value || 'anyOf' in value);
}

/** The module of the operations: their table, and the type of the methods that are made of it. */
export function operationsModule({ paths, webhooks }: OpenApi): string {
  const methods = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, { operationId }]) => !excluded.has(operationId))
      .map(([verb, operation]) => methodOf(path, verb, operation)),
  );
  const groups = Map.groupBy(methods, ({ group }) => group);
  for (const [group, those] of groups) {
    const names = new Set(those.map(({ name }) => name));
    if (names.size < those.length) throw new Error(`Two methods of ${group} have one name`);
  }
  const interfaces = [...groups].map(([group, those]) => interfaceOf(group, those));
  const members = [...groups.keys()].map((group) => `  readonly ${group}: ${pascal(group)}Api;`);
  const events = Object.keys(webhooks);
  return [
    header,
    "import type { CallOptions, OperationTable } from '../operations.ts';",
    "import type { Pages } from '../pages.ts';",
    "import type { components, operations } from './schema.ts';",
    '',
    'type Schemas = components["schemas"];',
    '',
    ...interfaces,
    '/** The operations of the API, by what they are about. */',
    `export interface Api {\n${members.join('\n')}\n}`,
    '',
    '/** What webhooks are sent. */',
    `export type WebhookEvent = ${events.map((event) => `Schemas['${pascal(event)}Event']`).join(' | ')};`,
    '',
    `export const operationTable: OperationTable = ${tableOf(groups)};`,
    '',
  ].join('\n');
}

function methodOf(path: string, verb: string, operation: Operation): Method {
  const [tag = ''] = operation.tags;
  const noun = pascal(tag.replace(/ies$/, 'y').replace(/s$/, ''));
  const plural = pascal(tag);
  const { operationId } = operation;
  // The group says what it is about: `jobs.list`, not `jobs.listJobs`.
  const name = operationId.replace(
    new RegExp(`^([a-z]+)(?:Agent(?=${noun}|${plural}))?(?:${plural}|${noun})(?![a-z])`),
    '$1',
  );
  return { group: groupNames[tag] ?? camel(tag), name, verb: verb.toUpperCase(), path, operation };
}

function interfaceOf(group: string, methods: readonly Method[]): string {
  const lines = methods.map(({ name, verb, path, operation }) => {
    const types = typesOf(operation);
    const parameters = [...types.parameters, 'options?: CallOptions'].join(', ');
    return `  /** ${operation.summary}: \`${verb} ${path}\`. */\n  ${name}(${parameters}): ${types.result};`;
  });
  return `export interface ${pascal(group)}Api {\n${lines.join('\n')}\n}\n`;
}

function typesOf(operation: Operation): { parameters: string[]; result: string } {
  const { operationId, parameters = [], requestBody } = operation;
  const path = parameters.filter((parameter) => parameter.in === 'path');
  const query = parameters.filter((parameter) => parameter.in === 'query');
  if (query.length > 0 && requestBody !== undefined) {
    throw new Error(`${operationId} has a query and a body: the client has one argument for both`);
  }
  const types = path.map(({ name }) => `${name}: string`);
  const at = `operations['${operationId}']`;
  if (requestBody !== undefined) {
    const type = isAnything(requestBody)
      ? 'unknown'
      : (named(requestBody.content['application/json']?.schema) ??
        `NonNullable<${at}['requestBody']>['content']['application/json']`);
    types.push(`body${requestBody.required ? '' : '?'}: ${type}`);
  }
  if (query.length > 0) {
    const mark = query.some(({ required }) => required === true) ? '' : '?';
    types.push(`query${mark}: NonNullable<${at}['parameters']['query']>`);
  }
  return { parameters: types, result: resultOf(operation) };
}

function isAnything({ content }: Body): boolean {
  return Object.keys(content['application/json']?.schema ?? {}).length === 0;
}

function resultOf(operation: Operation): string {
  const { operationId, responses } = operation;
  const statuses = Object.keys(responses).filter((status) => status.startsWith('2'));
  const types = statuses.map((status) => {
    const content = responses[status]?.content;
    if (content === undefined) return 'void';
    const [[type = '', { schema }] = ['', { schema: {} }]] = Object.entries(content);
    const at = `operations['${operationId}']['responses'][${status}]['content']['${type}']`;
    return named(schema) ?? at;
  });
  const list = listOf(operation);
  if (list === null) return `Promise<${[...new Set(types)].join(' | ')}>`;
  const schema = responses['200']?.content?.['application/json']?.schema;
  const entries = list === 'array' ? schema : schema?.properties?.['data'];
  const [type = ''] = types;
  return `Pages<${named(entries?.items) ?? `${list === 'array' ? type : `${type}['data']`}[number]`}>`;
}

/** The type of a schema that has a name. */
function named(schema: Schema | undefined): string | null {
  const name = schema?.$ref?.split('/').at(-1);
  return name === undefined ? null : `Schemas['${name}']`;
}

/** Which form a list has; null for any other answer. */
function listOf({ responses }: Operation): 'array' | 'page' | null {
  const schema = responses['200']?.content?.['application/json']?.schema;
  if (schema?.type === 'array') return 'array';
  return schema?.properties?.['total'] !== undefined && schema.properties['data'] !== undefined
    ? 'page'
    : null;
}

function tableOf(groups: ReadonlyMap<string, readonly Method[]>): string {
  const table = [...groups].map(([group, methods]): [string, object] => [
    group,
    Object.fromEntries(methods.map((method) => [method.name, entryOf(method)])),
  ]);
  return JSON.stringify(Object.fromEntries(table), null, 2);
}

function entryOf({ verb, path, operation }: Method): object {
  const { parameters = [], requestBody, responses, security } = operation;
  const has = (place: Parameter['in'], name?: string) =>
    parameters.some((one) => one.in === place && (name === undefined || one.name === name));
  const credential = security.some((one) => 'adminBearer' in one)
    ? 'admin'
    : security.some((one) => 'apiKey' in one)
      ? 'key'
      : 'none';
  const isText = responses['200']?.content?.['text/plain'] !== undefined;
  return {
    verb,
    path,
    credential,
    ...(requestBody !== undefined && { input: 'body' }),
    ...(has('query') && { input: 'query' }),
    ...(has('query', 'offset') && listOf(operation) !== null && { isPaged: true }),
    ...(has('header', 'idempotency-key') && { isKeyed: true }),
    result: isText ? 'text' : (listOf(operation) ?? (responses['204'] ? 'nothing' : 'json')),
  };
}

function pascal(text: string): string {
  return text
    .split(/[^A-Za-z0-9]+/)
    .map(
      (word) =>
        word.charAt(0).toUpperCase() +
        (/^[A-Z]+$/.test(word) ? word.slice(1).toLowerCase() : word.slice(1)),
    )
    .join('');
}

function camel(text: string): string {
  const name = pascal(text);
  return name.charAt(0).toLowerCase() + name.slice(1);
}
