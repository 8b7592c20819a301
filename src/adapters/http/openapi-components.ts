/**
 * Completes the generated document: moves repeated parts (schemas with a title, examples of refusals,
 * response headers) to `components`, and adds the headers that every response of a kind carries. Changes the
 * document in place, so the caller must own it.
 */
import { type ResponseHeader, responseHeaders } from './response-headers.ts';

/** The parts of an OpenAPI document that this module reads. */
export interface OpenApiDocument {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; [kind: string]: Record<string, unknown> };
}

export interface Operation {
  security?: Record<string, string[]>[];
  requestBody?: { content: Content };
  responses: Record<string, Response>;
}

interface Response {
  headers?: Record<string, object>;
  content?: Content;
}

type Content = Record<string, Media>;

interface Media {
  schema: Schema;
  example?: unknown;
  examples?: Record<string, unknown>;
}

type Schema = Record<string, unknown>;

/** Moves repeated parts to the components, and completes the headers of responses. */
export function shareComponents(document: OpenApiDocument): OpenApiDocument {
  const { schemas } = document.components;
  const examples: Record<string, unknown> = {};
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  for (const operation of operations) {
    for (const [status, response] of Object.entries(operation.responses)) {
      response.headers = headersOf(operation, Number(status), response);
      for (const media of Object.values(response.content ?? {})) {
        if (isRefusal(media)) media.examples = referred('examples', media.examples, examples);
      }
    }
    for (const media of mediaOf(operation)) {
      keepExample(media);
      // The response already has the same description.
      delete media.schema['description'];
      media.schema = shareSchemas(media.schema, schemas) as Schema;
    }
  }
  Object.assign(document.components, { examples, headers: responseHeaders });
  return document;
}

/** Copies the example of a schema to the media type, because components have no examples. */
function keepExample(media: Media): void {
  const [example] = (media.schema['examples'] ?? []) as unknown[];
  const hasOne = media.example !== undefined || media.examples !== undefined;
  if (example !== undefined && !hasOne && 'title' in media.schema) media.example = example;
}

function mediaOf({ requestBody, responses }: Operation): Media[] {
  const contents = [
    requestBody?.content,
    ...Object.values(responses).map(({ content }) => content),
  ];
  return contents.flatMap((content) => Object.values(content ?? {}));
}

const isRefusal = ({ schema }: Media) => schema['title'] === 'Error';

/** Puts each of `values` into `components` under its name; references to them. */
function referred(kind: string, values: object = {}, components: Record<string, unknown>) {
  Object.assign(components, values);
  return Object.fromEntries(Object.keys(values).map((name) => [name, reference(kind, name)]));
}

const reference = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });

/** Keywords whose values are data, not schemas. */
const data = new Set(['examples', 'example', 'default', 'enum', 'const', 'required']);

/** The schema with every titled one inside it, itself included, moved to `shared`. */
function shareSchemas(schema: unknown, shared: Record<string, Schema>): unknown {
  if (Array.isArray(schema)) return schema.map((one) => shareSchemas(one, shared));
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      data.has(key) ? value : shareSchemas(value, shared),
    ]),
  );
  if (typeof inner['title'] !== 'string') return inner;
  const { title, description: _, examples: __, ...rest } = inner;
  const known = shared[title];
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(rest)) {
    throw new Error(`Two schemas of the routes have the title ${title}`);
  }
  shared[title] = rest;
  return reference('schemas', title);
}

const limited: ResponseHeader[] = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
];

/** The headers that the route names, and those that every answer of this kind carries. */
function headersOf(operation: Operation, status: number, response: Response) {
  const [media] = Object.values(response.content ?? {});
  const { security = [] } = operation;
  const hasKey = security.length > 0 && security.every((scheme) => 'apiKey' in scheme);
  const isRefused = media !== undefined && isRefusal(media);
  const names: string[] = ['X-Request-Id', ...Object.keys(response.headers ?? {})];
  if (hasKey && status !== 401) names.push(...limited);
  if (isRefused && (status === 429 || status === 503)) names.push('Retry-After');
  if (media?.schema['type'] === 'array') names.push('X-Total-Count');
  return Object.fromEntries(names.map((name) => [name, reference('headers', name)]));
}
