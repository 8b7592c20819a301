/**
 * Reads the text of an OpenAPI document, JSON or YAML, and brings it to version 3.1. Promises that what it returns is a
 * tree of bounded size and depth. Runs in a sandboxed process, and never fetches anything.
 */
import { upgrade } from '@scalar/openapi-upgrader';
import { parseDocument as parseYaml } from 'yaml';
import { isObject, type Json } from '../../../kernel/json.ts';
import { DocumentError } from './operation.ts';

/** Levels of objects and lists in a document. */
const depthMax = 64;
/** Members and items of a document, those behind aliases of YAML counted each time. */
const nodesMax = 500_000;
/** Aliases of YAML: each may repeat a part of the document. */
const aliasesMax = 100;

/** The document as version 3.1, and the version that it names. */
export function parseDocument(text: string): { document: Json; version: string } {
  const parsed = parseText(text.replace(/^\u{FEFF}/u, ''));
  if (!isObject(parsed)) throw new DocumentError('The document is not an object');
  const { openapi, swagger } = parsed;
  const named = openapi ?? swagger;
  if (typeof named !== 'string' || !/^(2\.0|3\.[012](\.\d+)?)$/.test(named)) {
    const shown = JSON.stringify(named)?.slice(0, 50);
    throw new DocumentError(
      shown === undefined
        ? 'The document names no version: openapi must be 3.0 or 3.1'
        : `The document is of the version ${shown}; 3.0 and 3.1 can be imported`,
    );
  }
  return { document: upgraded(treeOf(parsed), named), version: named };
}

function parseText(text: string): unknown {
  if (/^\s*\{/.test(text)) {
    try {
      return JSON.parse(text);
    } catch (error) {
      // A flow mapping of YAML begins alike.
      return yamlIn(text, `The document is not valid JSON: ${firstLine(error)}`);
    }
  }
  return yamlIn(text);
}

function yamlIn(text: string, otherwise?: string): unknown {
  const parsed = parseYaml(text, { logLevel: 'silent', prettyErrors: true, uniqueKeys: true });
  const [fault] = parsed.errors;
  if (fault !== undefined) {
    throw new DocumentError(otherwise ?? `The document is not valid YAML: ${firstLine(fault)}`);
  }
  try {
    return parsed.toJS({ maxAliasCount: aliasesMax });
  } catch (error) {
    throw new DocumentError(`The document cannot be read: ${firstLine(error)}`);
  }
}

function firstLine(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
  return line.replace(/:$/, '').slice(0, 300);
}

/** A copy in which no part is shared, because libraries change parts in place. */
function treeOf(parsed: Json): Json {
  let nodes = 0;
  const copy = (value: unknown, level: number): unknown => {
    nodes += 1;
    if (nodes > nodesMax) {
      throw new DocumentError(`The document has more than ${nodesMax} members`);
    }
    if (value === null || typeof value !== 'object') return plain(value);
    if (level > depthMax) {
      throw new DocumentError(`The document is nested more than ${depthMax} levels deep`);
    }
    if (Array.isArray(value)) return value.map((item) => copy(item, level + 1));
    if (value instanceof Date) return value.toISOString();
    const entries = Object.entries(value)
      .filter(([name]) => name !== '__proto__')
      .map(([name, member]) => [name, copy(member, level + 1)]);
    return Object.fromEntries(entries);
  };
  return copy(parsed, 1) as Json;
}

/** YAML knows numbers that JSON does not. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'number' && !Number.isFinite(value)) return null;
  return value ?? null;
}

function upgraded(document: Json, version: string): Json {
  if (!/^(2\.0|3\.0)/.test(version)) return document;
  try {
    return upgrade(document, '3.1') as Json;
  } catch (error) {
    throw new DocumentError(
      `The document cannot be read as OpenAPI ${version}: ${firstLine(error)}`,
    );
  }
}
