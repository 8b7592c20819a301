/**
 * What callers may lose of an output: a field that is gone or no longer certain, or a value of another type.
 * New fields and new values of the same type are allowed.
 */
import type { JsonSchema } from '../../kernel/json-schema.ts';
import { canonicalJson } from '../../kernel/text.ts';
import {
  beginComparison,
  beginPair,
  type Comparison,
  canonicalOf,
  compared,
  differencesMax,
  fieldIn,
  membersOf,
  namesOf,
  resolved,
  type Schema,
  textsOf,
  typesOf,
} from './schema-parts.ts';

export function outputDifferences(before: JsonSchema, next: JsonSchema): string[] {
  if (canonicalJson(before) === canonicalJson(next)) return [];
  return compared('output', () => dropped(beginComparison(before, next), before, next, 'output'));
}

function dropped(comparison: Comparison, before: Schema, next: Schema, path: string): string[] {
  beginPair(comparison);
  if (typeof before === 'boolean') return [];
  if (next === false) return [`${path} is gone`];
  const earlier = resolved(comparison, comparison.before, before);
  const later = next === true ? {} : resolved(comparison, comparison.next, next);
  if (earlier === undefined || later === undefined) {
    return [`${path}: cannot tell, because a reference leads nowhere that is compared`];
  }
  const [a, b] = textsOf(comparison, earlier, later);
  const pair = `${a}\n${b}`;
  if (comparison.open.has(pair) || (a === b && comparison.sameDefinitions)) return [];
  comparison.open.add(pair);
  try {
    return [
      ...otherTypes(earlier, later, path),
      ...droppedFields(comparison, earlier, later, path),
      ...droppedItems(comparison, earlier, later, path),
      ...changedBranches(comparison, earlier, later, path),
    ].slice(0, differencesMax);
  } finally {
    comparison.open.delete(pair);
  }
}

function otherTypes(before: JsonSchema, next: JsonSchema, path: string): string[] {
  if (before['type'] === undefined) return [];
  const was = typesOf(before);
  const now = typesOf(next);
  const isNew = (type: string) =>
    !was.includes(type) && !(type === 'integer' && was.includes('number'));
  const other = now.filter(isNew);
  if (other.length === 0) return [];
  return [`${path} was ${was.join(' or ')} and may now be ${other.join(' or ')}`];
}

function droppedFields(
  comparison: Comparison,
  before: JsonSchema,
  next: JsonSchema,
  path: string,
): string[] {
  const was = (before['properties'] as Record<string, Schema> | undefined) ?? {};
  const now = (next['properties'] as Record<string, Schema> | undefined) ?? {};
  const required = new Set(namesOf(comparison, next['required']));
  const uncertain = namesOf(comparison, before['required'])
    .filter(
      (name) => !required.has(name) && (Object.hasOwn(now, name) || !Object.hasOwn(was, name)),
    )
    .map((name) => `${fieldIn(path, name)} is no longer always there`);
  const fields = membersOf<Schema>(comparison, was).flatMap(([name, schema]) => {
    const later = Object.hasOwn(now, name) ? now[name] : undefined;
    if (later === undefined) return [`${fieldIn(path, name)} is gone`];
    return dropped(comparison, schema, later, fieldIn(path, name));
  });
  return [...fields, ...uncertain];
}

function droppedItems(
  comparison: Comparison,
  before: JsonSchema,
  next: JsonSchema,
  path: string,
): string[] {
  const { items: was } = before;
  if (was === undefined || Array.isArray(was)) return [];
  const now = (next['items'] as Schema | undefined) ?? true;
  return dropped(comparison, was as Schema, now, `${path}[]`);
}

/** Fields within branches are compared only as a whole. */
function changedBranches(
  comparison: Comparison,
  before: JsonSchema,
  next: JsonSchema,
  path: string,
): string[] {
  return ['anyOf', 'oneOf', 'allOf', 'prefixItems', '$ref']
    .filter((key) => key in before)
    .filter(
      (key) =>
        canonicalOf(comparison, [before[key]]) !== canonicalOf(comparison, [next[key] ?? null]),
    )
    .map(
      (key) => `${path}: ${key} has changed, and it cannot be told whether an output was dropped`,
    );
}
