/**
 * Where the references of one schema lead: by `$id`, anchors and JSON pointers, within the schema alone. Nothing is
 * fetched. A schema is found by its identity, so the schema must be JSON, in which no object has two places.
 */
import { isObject, type Json } from './json.ts';
import { eachSubschema, SchemaError } from './schema-rules.ts';

/** Characters of a reference, and of an address: each reference costs a pass over its base. */
const addressCharsMax = 2_000;
/** A base that no schema has, for those without `$id`. */
const noBase = 'schema:///';

/** The places in one schema. */
export class SchemaReferences {
  /** The address of the resource that a schema belongs to. */
  readonly #bases = new Map<object, string>();
  /** Schemas with an `$id`, and the whole, by their addresses. */
  readonly #resources = new Map<string, Json>();
  /** By address and anchor. */
  readonly #anchors = new Map<string, Json>();
  #dynamicAnchors = 0;

  /** Throws SchemaError for an `$id` that is no address. */
  constructor(root: Json) {
    this.#resources.set(noBase, root);
    this.#place(root, noBase);
  }

  /** The schema that a reference in `from` leads to. Throws SchemaError if that is nowhere. */
  target(from: Json, keyword: string, reference: string): unknown {
    if (keyword !== '$ref' && this.#dynamicAnchors > 1) {
      // Which of them is meant depends on the way to the reference.
      throw new SchemaError(
        `uses ${keyword} with more than one dynamic anchor, which is not supported`,
      );
    }
    const base = this.#bases.get(from) ?? noBase;
    const { address, fragment } = splitReference(reference, base);
    const resource = this.#resources.get(address);
    if (resource === undefined) {
      throw new SchemaError(
        `refers to ${quoted(reference)}; schemas from elsewhere are never fetched`,
      );
    }
    const isPointer = fragment === '' || fragment.startsWith('/');
    const found = isPointer
      ? pointed(resource, fragment)
      : this.#anchors.get(`${address}#${fragment}`);
    if (typeof found !== 'boolean' && !isObject(found)) {
      throw new SchemaError(`refers to ${quoted(reference)}, which it does not define`);
    }
    // A place where no keyword has a schema, such as `#/components/schemas/a`.
    if (isObject(found) && !this.#bases.has(found)) this.#place(found, address);
    return found;
  }

  #place(schema: unknown, around: string): void {
    if (!isObject(schema) || this.#bases.has(schema)) return;
    const { $id: id, $anchor: anchor, $dynamicAnchor: dynamic, $recursiveAnchor } = schema;
    let base = around;
    if (typeof id === 'string' && id.startsWith('#')) {
      this.#addAnchor(base, id.slice(1), schema);
    } else if (typeof id === 'string') {
      base = splitReference(id, around).address;
      if (!this.#resources.has(base)) this.#resources.set(base, schema);
    }
    for (const name of [anchor, dynamic]) {
      if (typeof name === 'string') this.#addAnchor(base, name, schema);
    }
    if (typeof dynamic === 'string' || $recursiveAnchor === true) this.#dynamicAnchors += 1;
    this.#bases.set(schema, base);
    eachSubschema(schema, (inner) => this.#place(inner, base));
  }

  #addAnchor(base: string, name: string, schema: Json): void {
    const address = `${base}#${name}`;
    if (!this.#anchors.has(address)) this.#anchors.set(address, schema);
  }
}

function splitReference(reference: string, base: string): { address: string; fragment: string } {
  if (reference.length > addressCharsMax || base.length > addressCharsMax) {
    throw new SchemaError(
      `refers to ${quoted(reference)}, and it or its $id is longer than ${addressCharsMax} characters`,
    );
  }
  if (reference.startsWith('#')) return { address: base, fragment: decoded(reference.slice(1)) };
  if (!URL.canParse(reference, base)) {
    throw new SchemaError(`refers to ${quoted(reference)}, which is no address`);
  }
  const url = new URL(reference, base);
  const fragment = decoded(url.hash.slice(1));
  url.hash = '';
  return { address: url.href.replace(/#$/, ''), fragment };
}

/** A text of the schema within a message. */
export function quoted(text: string): string {
  return JSON.stringify(text.length <= 200 ? text : `${text.slice(0, 200)}…`);
}

function decoded(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

function pointed(resource: Json, pointer: string): unknown {
  let found: unknown = resource;
  for (const token of pointer.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    const isInside = typeof found === 'object' && found !== null && Object.hasOwn(found, name);
    if (!isInside) return undefined;
    found = (found as Json)[name];
  }
  return found;
}
