/**
 * Turns an OpenAPI document into operations. Runs in a sandboxed process, because documents are untrusted: it takes text
 * and returns JSON.
 */
import { isObject, type Json } from '../../../kernel/json.ts';
import { DocumentError, methods, type Operation } from './operation.ts';
import { inputOf, type SetByCredentials } from './operation-input.ts';
import { nameOperations } from './operation-names.ts';
import { outputOf } from './operation-output.ts';
import { parseDocument } from './parse-document.ts';
import { resolveObject } from './references.ts';
import { baseUrlOf, operationUrlOf, type ServerChoice } from './servers.ts';

const descriptionCharsMax = 4_000;
const toolCharsMax = 200;
/** Operations of one import. */
const operationsMax = 500;
/** Characters of all operations as JSON. */
const answerCharsMax = 6_000_000;

export interface ReadRequest extends ServerChoice {
  readonly text: string;
  /** Operations to take, each as `operationId` or `GET /path`; null takes all. */
  readonly operations: readonly string[] | null;
  readonly credentials: SetByCredentials | null;
}

export interface ReadDocument {
  readonly operations: readonly Operation[];
  readonly leftOut: readonly { readonly tool: string; readonly reason: string }[];
  readonly about: {
    readonly title: string | null;
    readonly version: string | null;
    readonly openapi: string;
    readonly base_url: string;
  };
}

interface Found {
  readonly tool: string;
  readonly operationId: string | null;
  readonly path: string;
  readonly method: string;
  readonly pathItem: Json;
  readonly operation: Json;
}

/** Throws an Error whose message is one sentence for the operator. */
export function readDocument(request: ReadRequest): ReadDocument {
  const { document, version } = parseDocument(request.text);
  const base = baseUrlOf(document, request);
  if (base === null) {
    throw new DocumentError('The document names no server: set base_url');
  }
  if (!/^https?:\/\/[^/]/.test(base)) {
    throw new DocumentError(`The server of the document is no http address: set base_url`);
  }
  const leftOut: { tool: string; reason: string }[] = [];
  const found = selected(request.operations, operationsOf(document, leftOut));
  const names = nameOperations(found);
  const operations: Operation[] = [];
  let chars = 0;
  for (const one of found) {
    try {
      const operation = toOperation(document, one, { base, request, names });
      chars += JSON.stringify(operation).length;
      if (chars > answerCharsMax) throw new DocumentError('The operations are too large together');
      operations.push(operation);
    } catch (error) {
      if (!(error instanceof DocumentError)) throw error;
      leftOut.push({ tool: one.tool, reason: error.message });
    }
  }
  const info = isObject(document['info']) ? document['info'] : {};
  const about = {
    ...{ title: textOrNull(info['title'], 200), version: textOrNull(info['version'], 100) },
    ...{ openapi: version, base_url: base },
  };
  return { operations, leftOut, about };
}

/** Operations that a list names. */
const listedMax = 2_000;

export interface ListedOperations {
  readonly title: string | null;
  readonly operations: {
    readonly operation: string;
    readonly operation_id: string | null;
    readonly summary: string | null;
  }[];
  readonly total: number;
}

/** The operations of a document as they can be chosen, whether or not each can be a skill. */
export function listOperations({ text }: Pick<ReadRequest, 'text'>): ListedOperations {
  const { document } = parseDocument(text);
  const found = operationsOf(document, []);
  const info = isObject(document['info']) ? document['info'] : {};
  return {
    title: textOrNull(info['title'], 200),
    operations: found.slice(0, listedMax).map(({ tool, operationId, operation }) => ({
      ...{ operation: tool, operation_id: operationId },
      summary: textOrNull(operation['summary'], 200),
    })),
    total: found.length,
  };
}

function operationsOf(document: Json, leftOut: { tool: string; reason: string }[]): Found[] {
  const paths = isObject(document['paths']) ? document['paths'] : {};
  const found: Found[] = [];
  for (const [path, item] of Object.entries(paths)) {
    if (!path.startsWith('/')) continue;
    try {
      const pathItem = resolveObject(document, item) ?? {};
      for (const method of methods) {
        const operation = resolveObject(document, pathItem[method]);
        if (operation === null) continue;
        const tool = `${method.toUpperCase()} ${path}`;
        if (tool.length > toolCharsMax) {
          leftOut.push({ tool: tool.slice(0, toolCharsMax), reason: 'Its path is too long' });
          continue;
        }
        const operationId = textOrNull(operation['operationId'], 500);
        found.push({ tool, operationId, path, method: method.toUpperCase(), pathItem, operation });
      }
    } catch (error) {
      if (!(error instanceof DocumentError)) throw error;
      leftOut.push({ tool: path.slice(0, toolCharsMax), reason: error.message });
    }
  }
  return found;
}

function selected(requested: readonly string[] | null, found: readonly Found[]): readonly Found[] {
  if (found.length === 0) throw new DocumentError('The document has no operations');
  const names = requested && new Set(requested);
  const isRequested = ({ tool, operationId }: Found) =>
    names === null || names.has(tool) || (operationId !== null && names.has(operationId));
  const chosen = found.filter(isRequested);
  const all = new Set(found.flatMap(({ tool, operationId }) => [tool, operationId]));
  const unknown = (requested ?? []).filter((name) => !all.has(name));
  if (unknown.length > 0) {
    const [first] = unknown;
    throw new DocumentError(`The document has no operation ${JSON.stringify(first)}`);
  }
  if (chosen.length > operationsMax) {
    throw new DocumentError(
      `The document has ${chosen.length} operations, more than ${operationsMax}: choose some with operations`,
    );
  }
  return chosen;
}

function toOperation(
  document: Json,
  { tool, operationId, path, method, pathItem, operation }: Found,
  {
    base,
    request,
    names,
  }: {
    base: string;
    request: ReadRequest;
    names: ReadonlyMap<string, string>;
  },
): Operation {
  const baseUrl = operationUrlOf(base, [operation, pathItem], request);
  const input = inputOf(document, path, [pathItem, operation], request.credentials);
  const output = outputOf(document, operation);
  const { parameters, body } = input;
  return {
    ...{ tool, operationId, skillName: names.get(tool) ?? tool },
    title: textOrNull(operation['summary'], 200),
    description: describe(operation, pathItem, tool),
    ...{ input: input.schema, output: output.schema },
    isDeprecated: operation['deprecated'] === true,
    plan: { method, path, baseUrl, parameters, body, accept: output.accept },
  };
}

function describe(operation: Json, pathItem: Json, tool: string): string {
  const texts = [operation['summary'], operation['description']].flatMap((text) =>
    typeof text === 'string' && text.trim() !== '' ? [text.trim()] : [],
  );
  const [first, second] = texts;
  const whole = first === second || second === undefined ? first : texts.join('\n\n');
  const inherited = textOrNull(pathItem['summary'] ?? pathItem['description'], descriptionCharsMax);
  return (whole ?? inherited ?? `Calls ${tool}.`).slice(0, descriptionCharsMax);
}

function textOrNull(value: unknown, charsMax: number): string | null {
  const text =
    typeof value === 'string' ? value.trim() : typeof value === 'number' ? String(value) : '';
  return text === '' ? null : text.slice(0, charsMax);
}
