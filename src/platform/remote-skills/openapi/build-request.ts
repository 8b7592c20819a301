/** The request of a call, made of the pinned plan of its operation and the input of the run. */
import { isObject, type Json } from '../../../kernel/json.ts';
import type { OperationPlan, PlannedBody, PlannedParameter, PlannedPart } from './operation.ts';
import { encodeAll, headerText, pathText, queryParts, textOf } from './parameter-styles.ts';

export interface BuiltRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}

/** Why an input cannot be sent, as one sentence. */
export class InputError extends Error {
  override readonly name = 'InputError';
}

/**
 * Characters of a request before they are encoded. The names of parameters stand before each item of their values, so a
 * request may be many times as long as its input.
 */
const requestCharsMax = 4 * 1024 * 1024;
/** Parts of a multipart body: a file takes a tenth of a millisecond. */
const partsMax = 1_000;

export async function buildRequest(plan: OperationPlan, input: Json): Promise<BuiltRequest> {
  requireRoom(plan, input);
  const given = plan.parameters.flatMap((parameter) => {
    const value = Object.hasOwn(input, parameter.field) ? input[parameter.field] : undefined;
    return value === undefined || (value === null && !parameter.isJson)
      ? []
      : [{ parameter, value: parameter.isJson ? JSON.stringify(value) : value }];
  });
  const of = (place: PlannedParameter['in']) =>
    given.filter(({ parameter }) => parameter.in === place);
  const query = of('query').flatMap(({ parameter, value }) => queryParts(value, parameter));
  const cookies = of('cookie').flatMap(({ parameter, value }) => queryParts(value, parameter));
  const body = plan.body === null ? null : await bodyOf(plan.body, input['body']);
  const headers: Record<string, string> = { accept: plan.accept };
  for (const { parameter, value } of of('header')) {
    headers[parameter.name.toLowerCase()] = headerValue(parameter, value);
  }
  if (cookies.length > 0) headers['cookie'] = cookies.join('; ');
  if (body !== null) headers['content-type'] = body.mediaType;
  const path = pathOf(plan, of('path'));
  return {
    method: plan.method,
    url: `${plan.baseUrl}${path}${query.length > 0 ? `?${query.join('&')}` : ''}`,
    headers,
    body: body?.content ?? null,
  };
}

/** Throws InputError for an input that would make too long a request. */
function requireRoom({ parameters, body }: OperationPlan, input: Json): void {
  const named = parameters.map(({ field, name }): [string, unknown] => [name, input[field]]);
  const isNamed = body?.form === 'form' || body?.form === 'multipart';
  const fields = isNamed && isObject(input['body']) ? Object.entries(input['body']) : [];
  let chars = 0;
  for (const [name, value] of [...named, ...fields]) {
    chars += charsOf(value, name.length);
    if (chars <= requestCharsMax) continue;
    throw new InputError(`The request would have more than ${requestCharsMax} characters`);
  }
}

/** The characters of a value whose items have a name of this length before them. */
function charsOf(value: unknown, nameLength: number): number {
  if (typeof value !== 'object' || value === null) return nameLength + textOf(value).length + 2;
  let chars = 0;
  if (Array.isArray(value)) {
    for (const one of value) chars += charsOf(one, nameLength);
    return chars;
  }
  for (const [member, one] of Object.entries(value)) {
    chars += charsOf(one, nameLength + member.length + 2);
  }
  return chars;
}

function pathOf(
  { path }: OperationPlan,
  given: readonly { parameter: PlannedParameter; value: unknown }[],
): string {
  const values = new Map(given.map((one) => [one.parameter.name, one]));
  const built = path.replace(/\{([^{}]+)\}/g, (_, name: string) => {
    const found = values.get(name);
    if (found === undefined) throw new InputError(`The path needs a value for ${name}`);
    const text = pathText(found.value, found.parameter);
    if (text !== '') return text;
    throw new InputError(`${found.parameter.field} must not be empty, because it is in the path`);
  });
  // A browser's rules would drop such a segment, and the request would be for another path.
  if (built.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment))) {
    throw new InputError('A value of the path must not be . or ..');
  }
  return built.replace(/[?#]/g, encodeAll);
}

function headerValue({ field, explode }: PlannedParameter, value: unknown): string {
  const text = headerText(value, { explode });
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) return text;
  throw new InputError(`${field} has characters that a header cannot carry`);
}

interface BuiltBody {
  readonly content: string | Uint8Array;
  readonly mediaType: string;
}

async function bodyOf(plan: PlannedBody, value: unknown): Promise<BuiltBody | null> {
  if (value === undefined) return null;
  const { form, mediaType } = plan;
  if (form === 'json') return { content: JSON.stringify(value), mediaType };
  if (form === 'text') return { content: textOf(value), mediaType };
  if (form === 'binary') {
    const { content, type } = fileOf(value);
    return { content, mediaType: type ?? mediaType };
  }
  const members = Object.entries(isObject(value) ? value : {});
  if (form === 'form') {
    const parts = members.flatMap(([name, one]) => formParts(name, one, plan.parts[name] ?? {}));
    return { content: parts.join('&'), mediaType };
  }
  return multipart(members, plan);
}

function formParts(name: string, value: unknown, part: PlannedPart): string[] {
  if (value === null || value === undefined) return [];
  const { style, explode, contentType } = part;
  const isJson = contentType !== undefined ? /json/i.test(contentType) : isObject(value) && !style;
  if (isJson) return [`${encodeAll(name)}=${encodeAll(JSON.stringify(value))}`];
  const isFormStyle = style === undefined || style === 'form' || style === 'deepObject';
  return queryParts(value, {
    name,
    style: style ?? 'form',
    explode: explode ?? isFormStyle,
    allowReserved: false,
  });
}

async function multipart(
  members: readonly [string, unknown][],
  plan: PlannedBody,
): Promise<BuiltBody> {
  const values = members.map(([, value]) => (Array.isArray(value) ? value : [value]));
  if (values.reduce((sum, { length }) => sum + length, 0) > partsMax) {
    throw new InputError(`The body would have more than ${partsMax} parts`);
  }
  const form = new FormData();
  for (const [i, [name]] of members.entries()) {
    for (const one of values[i] ?? []) appendPart(form, name, one, plan.parts[name] ?? {});
  }
  const encoded = new Response(form);
  const mediaType = encoded.headers.get('content-type') ?? plan.mediaType;
  return { content: new Uint8Array(await encoded.arrayBuffer()), mediaType };
}

function appendPart(form: FormData, name: string, value: unknown, part: PlannedPart): void {
  if (value === null || value === undefined) return;
  if (part.isFile === true) {
    const { content, type, filename } = fileOf(value);
    const blob = new Blob([content], {
      type: type ?? part.contentType ?? 'application/octet-stream',
    });
    form.append(name, blob, filename ?? name);
  } else if (isObject(value) || part.contentType !== undefined) {
    const type = part.contentType ?? 'application/json';
    form.append(name, new Blob([textOf(value)], { type }));
  } else form.append(name, textOf(value));
}

function fileOf(value: unknown): {
  content: Uint8Array<ArrayBuffer>;
  type?: string;
  filename?: string;
} {
  const { base64, content_type: type, filename } = isObject(value) ? value : {};
  if (typeof base64 !== 'string') throw new InputError('A file needs its content as base64');
  return {
    content: new Uint8Array(Buffer.from(base64, 'base64')),
    ...(typeof type === 'string' && { type }),
    ...(typeof filename === 'string' && { filename }),
  };
}
