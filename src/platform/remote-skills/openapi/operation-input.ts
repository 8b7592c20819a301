/** The input of an operation's skill: a member for each parameter and `body`, and how each is sent. */
import { isObject, type Json } from '../../../kernel/json.ts';
import {
  type BodyForm,
  DocumentError,
  type ParameterPlace,
  type PlannedBody,
  type PlannedParameter,
  type PlannedPart,
} from './operation.ts';
import { resolve, resolveObject } from './references.ts';
import { SchemaBundle } from './schemas.ts';

const places: readonly ParameterPlace[] = ['path', 'query', 'header', 'cookie'];
const parametersMax = 200;
/** Characters of a file in base64: the input of a job has 1 MiB at most. */
const fileCharsMax = 1_000_000;

/** Headers that the document may list, and that are no parameters (OpenAPI 3.1, section 4.8.12). */
const platformHeaders = new Set([
  ...['accept', 'authorization', 'connection', 'content-length', 'content-type', 'cookie', 'host'],
  ...[
    'transfer-encoding',
    'te',
    'trailer',
    'upgrade',
    'expect',
    'keep-alive',
    'proxy-authorization',
  ],
]);

/** What the credentials of the import set, so that no input has to. */
export interface SetByCredentials {
  readonly in: 'header' | 'query';
  readonly name: string;
}

export interface OperationInput {
  readonly schema: Json;
  readonly parameters: readonly PlannedParameter[];
  readonly body: PlannedBody | null;
}

/** Throws DocumentError, one sentence, for an operation that cannot be called. */
export function inputOf(
  document: Json,
  path: string,
  [pathItem, operation]: readonly [Json, Json],
  credentials: SetByCredentials | null,
): OperationInput {
  const bundle = new SchemaBundle(document, 'request');
  const body = bodyOf(document, bundle, operation['requestBody']);
  const declared = parametersOf(document, [pathItem['parameters'], operation['parameters']]);
  const listed = [...declared, ...undeclared(path, declared)].filter(
    (parameter) => !isSetElsewhere(parameter, credentials),
  );
  const fields = new Set<string>(body === null ? [] : ['body']);
  const properties: Json = {};
  const required: string[] = [];
  const parameters: PlannedParameter[] = [];
  for (const parameter of listed) {
    const planned = planOf(parameter, fieldFor(parameter, fields));
    parameters.push(planned);
    properties[planned.field] = parameterSchema(bundle, parameter);
    if (parameter['required'] === true || planned.in === 'path') required.push(planned.field);
  }
  if (body !== null) {
    properties['body'] = body.schema;
    if (body.isRequired) required.push('body');
  }
  const definitions = bundle.definitions();
  const schema = {
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
    ...(Object.keys(definitions).length > 0 && { $defs: definitions }),
  };
  return { schema, parameters, body: body?.plan ?? null };
}

/** The parameters by place; those of an operation win over those of its path. */
function parametersOf(document: Json, lists: readonly unknown[]): Json[] {
  const found = new Map<string, Json>();
  for (const list of lists) {
    for (const one of Array.isArray(list) ? list.slice(0, parametersMax + 1) : []) {
      const parameter = resolveObject(document, one);
      const { in: where, name } = parameter ?? {};
      if (parameter === null || typeof name !== 'string' || name === '') continue;
      if (!places.includes(where as ParameterPlace)) continue;
      found.set(`${String(where)} ${name}`, parameter);
    }
  }
  if (found.size > parametersMax) {
    throw new DocumentError(`It has more than ${parametersMax} parameters`);
  }
  const rank = ({ in: where }: Json) => places.indexOf(where as ParameterPlace);
  return [...found.values()].toSorted((a, b) => rank(a) - rank(b));
}

/** Parameters that the path names, and that the document does not describe. */
function undeclared(path: string, declared: readonly Json[]): Json[] {
  const names = [...path.matchAll(/\{([^{}]+)\}/g)].map(([, name]) => name);
  return [...new Set(names)]
    .filter((name) => !declared.some((one) => one['in'] === 'path' && one['name'] === name))
    .map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }));
}

function isSetElsewhere({ in: where, name }: Json, credentials: SetByCredentials | null): boolean {
  const text = String(name);
  const isSame =
    credentials !== null &&
    where === credentials.in &&
    (where === 'header'
      ? text.toLowerCase() === credentials.name.toLowerCase()
      : text === credentials.name);
  return isSame || (where === 'header' && platformHeaders.has(text.toLowerCase()));
}

/** Its name, unless another has that; then with its place. */
function fieldFor({ name, in: where }: Json, fields: Set<string>): string {
  const text = String(name);
  const base = fields.has(text) || text === '__proto__' ? `${text}_in_${String(where)}` : text;
  let field = base;
  for (let n = 2; fields.has(field); n++) field = `${base}_${n}`;
  fields.add(field);
  return field;
}

const defaultStyles = { path: 'simple', query: 'form', header: 'simple', cookie: 'form' } as const;
const styles: Readonly<Record<ParameterPlace, readonly string[]>> = {
  path: ['simple', 'label', 'matrix'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
  header: ['simple'],
  cookie: ['form'],
};

function planOf(parameter: Json, field: string): PlannedParameter {
  const where = parameter['in'] as ParameterPlace;
  const named = parameter['style'];
  const style = styles[where].find((one) => one === named) ?? defaultStyles[where];
  const { explode = style === 'form' || style === 'deepObject' } = parameter;
  return {
    ...{ field, name: String(parameter['name']), in: where, style },
    explode: explode === true,
    allowReserved: parameter['allowReserved'] === true,
    isJson: isObject(parameter['content']),
  };
}

function parameterSchema(bundle: SchemaBundle, parameter: Json): Json {
  const content = isObject(parameter['content']) ? Object.values(parameter['content']) : [];
  const [media] = content;
  const source = parameter['schema'] ?? (isObject(media) ? media['schema'] : undefined);
  return described(bundle.convert(source ?? {}), parameter);
}

/** With the description that the owner of the schema has, where the schema has none. */
function described(schema: unknown, owner: Json): Json {
  const { description, deprecated } = owner;
  const text = typeof description === 'string' ? description.trim().slice(0, 1_000) : '';
  return {
    ...(isObject(schema) ? schema : {}),
    ...(text !== '' && { description: text }),
    ...(deprecated === true && { deprecated }),
  };
}

interface FoundBody {
  readonly schema: Json;
  readonly isRequired: boolean;
  readonly plan: PlannedBody;
}

/** The body in the form that is easiest to describe, of those that the operation takes. */
function bodyOf(document: Json, bundle: SchemaBundle, given: unknown): FoundBody | null {
  const body = given === undefined ? null : resolveObject(document, given);
  if (body === null || !isObject(body['content'])) return null;
  const offered = Object.entries(body['content']);
  if (offered.length === 0) return null;
  const forms: readonly BodyForm[] = ['json', 'form', 'multipart', 'text', 'binary'];
  for (const form of forms) {
    const found = offered.find(([type]) => formOf(type) === form);
    if (found === undefined) continue;
    const [type, media] = found;
    const { schema, parts } = contentOf(document, bundle, form, resolveObject(document, media));
    const mediaType = type.includes('*') ? wildcards[form] : type;
    const isRequired = body['required'] === true;
    return { schema: described(schema, body), isRequired, plan: { form, mediaType, parts } };
  }
  throw new DocumentError('Its body has no type that can be sent');
}

const wildcards: Readonly<Record<BodyForm, string>> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  multipart: 'multipart/form-data',
  text: 'text/plain',
  binary: 'application/octet-stream',
};

function formOf(mediaType: string): BodyForm {
  const type = mediaType.split(';')[0]?.trim().toLowerCase() ?? '';
  if (type === '*/*' || type === 'application/*' || isJsonType(type)) return 'json';
  if (type === 'application/x-www-form-urlencoded') return 'form';
  if (type === 'multipart/form-data') return 'multipart';
  if (type.startsWith('text/') || /[/+]xml$|[/+]ya?ml$|graphql$/.test(type)) return 'text';
  return 'binary';
}

export function isJsonType(mediaType: string): boolean {
  return /^[^/]+\/([^;]*\+)?json\s*(;|$)/i.test(mediaType);
}

function contentOf(
  document: Json,
  bundle: SchemaBundle,
  form: BodyForm,
  media: Json | null,
): { schema: unknown; parts: Record<string, PlannedPart> } {
  const source = media?.['schema'] ?? {};
  if (form === 'binary') return { schema: fileSchema('The body'), parts: {} };
  if (form === 'text') return { schema: { type: 'string' }, parts: {} };
  if (form === 'json') return { schema: bundle.convert(source), parts: {} };
  return formContent(document, bundle, { form, media: media ?? {}, source });
}

/** A form of named parts: an object, whose properties may be files. */
function formContent(
  document: Json,
  bundle: SchemaBundle,
  { form, media, source }: { form: BodyForm; media: Json; source: unknown },
): { schema: unknown; parts: Record<string, PlannedPart> } {
  const whole = resolveObject(document, source) ?? {};
  const encodings = isObject(media['encoding']) ? media['encoding'] : {};
  const properties = isObject(whole['properties']) ? whole['properties'] : {};
  const parts: Record<string, PlannedPart> = {};
  const schemas: Json = {};
  for (const [name, one] of Object.entries(properties)) {
    const schema = resolve(document, one);
    const encoding = resolveObject(document, encodings[name]) ?? {};
    const isFile = form === 'multipart' && (isFileSchema(schema) || isFileList(document, schema));
    if (isFile) schemas[name] = fileOrFiles(schema);
    const part = partOf(encoding, isFile);
    if (Object.keys(part).length > 0) parts[name] = part;
  }
  const converted = bundle.convert(whole);
  const shown = isObject(converted) ? converted : {};
  const all = isObject(shown['properties']) ? shown['properties'] : {};
  return { schema: { ...shown, type: 'object', properties: { ...all, ...schemas } }, parts };
}

function partOf({ style, explode, contentType }: Json, isFile: boolean): PlannedPart {
  return {
    ...(typeof style === 'string' && { style }),
    ...(typeof explode === 'boolean' && { explode }),
    ...(typeof contentType === 'string' && {
      contentType: contentType.split(',')[0]?.trim() ?? '',
    }),
    ...(isFile && { isFile }),
  };
}

/** `format: binary` of 3.0, and what 3.1 writes instead. */
function isFileSchema(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const { type, format, contentMediaType, contentEncoding } = schema;
  const isBinary = contentMediaType !== undefined && contentEncoding === undefined;
  return format === 'binary' || (isBinary && (type === undefined || type === 'string'));
}

function isFileList(document: Json, schema: unknown): boolean {
  return isObject(schema) && isFileSchema(resolve(document, schema['items']));
}

function fileOrFiles(schema: unknown): Json {
  const about = isObject(schema) && typeof schema['description'] === 'string';
  const text = about ? String(schema['description']).slice(0, 1_000) : 'A file.';
  if (isFileSchema(schema)) return fileSchema(text);
  return { type: 'array', items: fileSchema('A file.'), maxItems: 20, description: text };
}

function fileSchema(description: string): Json {
  return {
    type: 'object',
    description,
    properties: {
      base64: { type: 'string', maxLength: fileCharsMax, contentEncoding: 'base64' },
      filename: { type: 'string', maxLength: 200 },
      content_type: { type: 'string', maxLength: 200 },
    },
    required: ['base64'],
    additionalProperties: false,
  };
}
