/**
 * Places the schema of a skill among the components of an OpenAPI document. Generators resolve references from the
 * root of the document and know components by their names, so definitions become components of their own, and
 * draft-07 is written as 2020-12, the dialect of OpenAPI 3.1.
 */
import { isObject, type Json } from '../../../kernel/json.ts';
import type { JsonSchema } from '../../../kernel/json-schema.ts';
import { mapSubschemas } from '../../../kernel/schema-rules.ts';

export type Components = Record<string, unknown>;

interface Placing {
  readonly name: string;
  readonly root: JsonSchema;
  /** Component names by the pointer of a definition. */
  readonly names: Map<string, string>;
  readonly taken: Set<string>;
  /** How many definitions have a name that begins so. */
  readonly counts: Map<string, number>;
  /** Of schemas within one another, and of the definitions that they refer to. */
  depth: number;
  readonly components: Components;
  /** References to places inside components. */
  readonly deep: string[];
}

/** Levels of schemas, with those of the definitions that they refer to. */
const depthMax = 500;

/** A schema that refers to what OpenAPI cannot: it is described as any value. */
class Unplaceable extends Error {}

const definitionKeywords: ReadonlySet<string> = new Set(['$defs', 'definitions']);
/** Keywords that lead to a schema by something else than its place. */
const namingKeywords = ['$dynamicRef', '$recursiveRef', '$id'];
const dropped: ReadonlySet<string> = new Set([
  '$anchor',
  '$comment',
  '$dynamicAnchor',
  '$id',
  '$recursiveAnchor',
  '$schema',
]);

/** The component `name`, and the definitions to which it refers as `name_definition`. */
export function componentsOf(name: string, schema: JsonSchema): Components {
  const placing: Placing = {
    ...{ name, root: schema, components: {}, deep: [], depth: 0 },
    ...{ names: new Map(), taken: new Set(), counts: new Map() },
  };
  try {
    const { $id: _, ...root } = schema;
    placing.components[name] = place(placing, withoutDefinitions(root));
    if (placing.deep.some((reference) => !leadsSomewhere(placing.components, reference))) {
      throw new Unplaceable();
    }
    return placing.components;
  } catch (error) {
    if (error instanceof Unplaceable || error instanceof URIError) {
      return { [name]: { description: 'Any JSON: the registry has the schema of the skill.' } };
    }
    throw error;
  }
}

function withoutDefinitions(schema: Json): Json {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !definitionKeywords.has(key)));
}

function place(placing: Placing, schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  if (namingKeywords.some((keyword) => typeof schema[keyword] === 'string')) {
    throw new Unplaceable();
  }
  // Definitions of a service outside may lead to one another a thousand times.
  placing.depth += 1;
  if (placing.depth > depthMax) throw new Unplaceable();
  const placed = mapSubschemas(schema, (inner) => place(placing, inner));
  const kept = Object.fromEntries(Object.entries(placed).filter(([key]) => !dropped.has(key)));
  if (typeof kept['$ref'] === 'string') kept['$ref'] = referenceOf(placing, kept['$ref']);
  placing.depth -= 1;
  return isObject(kept['items']) || !Array.isArray(kept['items']) ? kept : asPrefixItems(kept);
}

/** A tuple of draft-07. */
function asPrefixItems({ items, additionalItems, ...rest }: Json): Json {
  const further = additionalItems === undefined ? {} : { items: additionalItems };
  return { ...rest, prefixItems: items, ...further };
}

function referenceOf(placing: Placing, reference: string): string {
  const own = `#/components/schemas/${placing.name}`;
  if (reference === '#') return own;
  if (!reference.startsWith('#/')) throw new Unplaceable();
  const [keyword = '', definition, ...inner] = reference.slice(2).split('/');
  const isDefinition = definitionKeywords.has(keyword) && definition !== undefined;
  const place = isDefinition
    ? `#/components/schemas/${definitionOf(placing, keyword, definition)}`
    : `${own}/${[keyword, definition ?? []].flat().join('/')}`;
  const target = [place, ...inner].join('/');
  if (!isDefinition || inner.length > 0) placing.deep.push(target);
  return target;
}

/** The name of the component that a definition has become. */
function definitionOf(placing: Placing, keyword: string, encoded: string): string {
  const pointer = `${keyword}/${encoded}`;
  const known = placing.names.get(pointer);
  if (known !== undefined) return known;
  const definitions = placing.root[keyword];
  const definition = isObject(definitions) ? definitions[decoded(encoded)] : undefined;
  if (definition === undefined) throw new Unplaceable();
  const base = `${placing.name}_${decoded(encoded).replace(/[^A-Za-z0-9]/g, '_')}`;
  const { taken, counts } = placing;
  let count = (counts.get(base) ?? 0) + 1;
  while (taken.has(numbered(base, count))) count += 1;
  counts.set(base, count);
  const name = numbered(base, count);
  taken.add(name);
  // Before its inside is placed: a definition may refer to itself.
  placing.names.set(pointer, name);
  placing.components[name] = asObject(place(placing, definition));
  return name;
}

const numbered = (base: string, count: number) => (count === 1 ? base : `${base}_${count}`);

/** Generators want components to be objects. */
function asObject(schema: unknown): unknown {
  if (schema === true) return {};
  return schema === false ? { not: {} } : schema;
}

function decoded(segment: string): string {
  return decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~');
}

function leadsSomewhere(components: Components, reference: string): boolean {
  const segments = reference.slice('#/components/schemas/'.length).split('/').map(decoded);
  let found: unknown = components;
  for (const segment of segments) {
    const isInside = typeof found === 'object' && found !== null && Object.hasOwn(found, segment);
    if (!isInside) return false;
    found = (found as Json)[segment];
  }
  return true;
}
