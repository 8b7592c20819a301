/**
 * What the schemas of a version may not do under the same version: refuse an input that they took, or drop an
 * output. Promises that an input which the earlier schema described is still taken when no difference is
 * reported. Reports a difference also where the rules here cannot tell, and says so. The schemas may be a stranger's: the
 * steps of a comparison are bounded, and one that takes more is a difference. Two things are allowed
 * although a strict reading refuses them: a new optional field, and any change of what only describes.
 */
import { dialectOf, type JsonSchema } from '../../kernel/json-schema.ts';
import { canonicalJson } from '../../kernel/text.ts';
import { outputDifferences } from './output-compatibility.ts';
import {
  cannotTell,
  type KeywordChange,
  keywordDifferences,
  mayBe,
  unknownRule,
} from './schema-keywords.ts';
import {
  beginComparison,
  beginPair,
  type Comparison,
  canonicalOf,
  compared,
  differencesMax,
  fieldIn,
  finiteValues,
  isAnything,
  membersOf,
  refers,
  resolved,
  rulesOf,
  type Schema,
  textsOf,
  typesOf,
} from './schema-parts.ts';

/** The schemas of one version of a skill. */
export interface SkillSchemas {
  readonly parameters: JsonSchema;
  readonly output: JsonSchema;
}

/** The differences that are not allowed under the same version, as sentences; none when `next` may replace `before`. */
export function incompatibilities(before: SkillSchemas, next: SkillSchemas): string[] {
  const input = inputDifferences(before.parameters, next.parameters);
  const output = outputDifferences(before.output, next.output);
  return [...new Set([...input, ...output])].slice(0, differencesMax);
}

function inputDifferences(before: JsonSchema, next: JsonSchema): string[] {
  if (canonicalJson(before) === canonicalJson(next)) return [];
  return compared('input', () =>
    dialectOf(before) === dialectOf(next)
      ? narrowed(beginComparison(before, next), before, next, 'input')
      : ['input: $schema has changed, and the schemas of two dialects are not compared'],
  );
}

/** What `before` takes and `next` may refuse, as sentences that begin with the path of the value. */
function narrowed(comparison: Comparison, before: Schema, next: Schema, path: string): string[] {
  beginPair(comparison);
  if (before === false || isAnything(comparison, next)) return [];
  if (next === false) return [`${path} is no longer taken`];
  const earlier = before === true ? {} : resolved(comparison, comparison.before, before);
  const later = resolved(comparison, comparison.next, next as JsonSchema);
  if (earlier === undefined || later === undefined) {
    return [`${path}: cannot tell, because a reference leads nowhere that is compared`];
  }
  const texts = textsOf(comparison, earlier, later);
  const pair = texts.join('\n');
  // A recursive schema: the pair is being compared further up.
  if (comparison.open.has(pair)) return [];
  if (texts[0] === texts[1] && (comparison.sameDefinitions || !refers(comparison, earlier)))
    return [];
  comparison.open.add(pair);
  try {
    return ofSchemas(comparison, earlier, later, path).slice(0, differencesMax);
  } finally {
    comparison.open.delete(pair);
  }
}

function ofSchemas(
  comparison: Comparison,
  before: JsonSchema,
  next: JsonSchema,
  path: string,
): string[] {
  const values = finiteValues(before);
  const hasReferences = refers(comparison, before);
  if (values !== undefined && !refers(comparison, next)) {
    const { tests } = comparison;
    const isPossible = (value: unknown) => hasReferences || tests.fits(before, value);
    return values
      .filter((value) => isPossible(value) && !tests.fits(next, value))
      .map((value) => `${path} no longer takes ${JSON.stringify(value).slice(0, 80)}`);
  }
  const direct = changedKeywords(comparison, before, next, path);
  if (direct.length === 0) return [];
  // A union is taken when each of its branches is.
  for (const branches of [before['anyOf'], before['oneOf']]) {
    if (!Array.isArray(branches)) continue;
    const { anyOf: _, oneOf: __, ...rest } = before;
    const restRules = rulesOf(comparison, rest);
    const found = branches.flatMap((branch: Schema) =>
      narrowed(comparison, joined(comparison, rest, restRules, branch), next, path),
    );
    if (found.length === 0) return [];
    if (Object.keys(restRules).length === 0) return found;
  }
  const parts = (before['allOf'] as Schema[] | undefined) ?? [];
  // Each part alone takes more than all of them.
  if (parts.some((part) => narrowed(comparison, part, next, path).length === 0)) return [];
  const types = typesOf(before);
  if (types.length > 1 && next['anyOf'] !== undefined && before['type'] !== undefined) {
    const found = types.flatMap((type) => narrowed(comparison, { ...before, type }, next, path));
    if (found.length === 0) return [];
  }
  return direct;
}

/** Both schemas at once, or the branch alone, which takes more: the comparison stays on the safe side. */
function joined(
  comparison: Comparison,
  rest: JsonSchema,
  restRules: JsonSchema,
  branch: Schema,
): Schema {
  if (typeof branch === 'boolean') return branch ? rest : false;
  const keywords = membersOf(comparison, branch);
  if (keywords.some(([keyword]) => Object.hasOwn(restRules, keyword))) return branch;
  return Object.fromEntries([...membersOf(comparison, rest), ...keywords]);
}

/** What each keyword of the later schema may refuse. */
function changedKeywords(
  comparison: Comparison,
  before: JsonSchema,
  next: JsonSchema,
  path: string,
): string[] {
  return Object.entries(rulesOf(comparison, next)).flatMap(([keyword, value]) => {
    const change = { comparison, before, next, path, keyword, value };
    switch (keyword) {
      case 'properties':
        return propertiesRule(change);
      case 'additionalProperties':
        return additionalRule(change);
      case 'items':
        return itemsRule(change);
      case 'allOf':
        return (value as Schema[]).flatMap((part) => narrowed(comparison, before, part, path));
      case 'anyOf':
        return anyOfRule(change);
      default:
        return keywordDifferences(change);
    }
  });
}

/** A field that the earlier schema did not name may be added, whatever values it takes. */
function propertiesRule({ comparison, before, path, value }: KeywordChange): string[] {
  if (!mayBe(before, ['object'])) return [];
  const was = (before['properties'] as Record<string, Schema> | undefined) ?? {};
  return membersOf<Schema>(comparison, value).flatMap(([name, schema]) => {
    const isNew = !Object.hasOwn(was, name);
    if (isNew && 'patternProperties' in before && !isAnything(comparison, schema)) {
      return [cannotTell(fieldIn(path, name), 'patternProperties')];
    }
    const earlier = isNew ? describedRest(comparison, before) : was[name];
    if (earlier === undefined) return [];
    return narrowed(comparison, earlier, schema, fieldIn(path, name));
  });
}

/** What fields without a name of their own may hold, where the schema describes them. */
function describedRest(comparison: Comparison, before: JsonSchema): Schema | undefined {
  const { additionalProperties: rest } = before as { additionalProperties?: Schema };
  return rest === undefined || isAnything(comparison, rest) ? undefined : rest;
}

function additionalRule({ comparison, before, next, path, value }: KeywordChange): string[] {
  if (!mayBe(before, ['object']) || isAnything(comparison, value as Schema)) return [];
  const named = (next['properties'] as Record<string, Schema> | undefined) ?? {};
  const was = membersOf<Schema>(comparison, before['properties']);
  const gone = was.filter(([name]) => !Object.hasOwn(named, name));
  const rest = (before['additionalProperties'] as Schema | undefined) ?? true;
  const others = isAnything(comparison, rest)
    ? [`${path} no longer takes fields of any name`]
    : narrowed(comparison, rest, value as Schema, `${path}.*`);
  const patterns = canonicalOf(comparison, [before['patternProperties'] ?? {}]);
  return [
    ...gone.flatMap(([name, schema]) =>
      narrowed(comparison, schema, value as Schema, fieldIn(path, name)),
    ),
    ...others,
    ...(patterns === canonicalOf(comparison, [next['patternProperties'] ?? {}])
      ? []
      : [cannotTell(path, 'patternProperties')]),
  ];
}

function itemsRule({ comparison, before, next, path, value }: KeywordChange): string[] {
  if (!mayBe(before, ['array'])) return [];
  const isTuple = (schema: JsonSchema) => Array.isArray(schema['items']) || 'prefixItems' in schema;
  if (isTuple(before) || isTuple(next)) {
    const places = ({ items, prefixItems, additionalItems }: JsonSchema) =>
      canonicalOf(comparison, { items, prefixItems, additionalItems });
    return places(before) === places(next) ? [] : [cannotTell(path, 'items')];
  }
  const earlier = (before['items'] as Schema | undefined) ?? true;
  return narrowed(comparison, earlier, value as Schema, `${path}[]`);
}

function anyOfRule(change: KeywordChange): string[] {
  const { comparison, before, path, value } = change;
  const branches = value as Schema[];
  if (canonicalOf(comparison, before['anyOf'] ?? null) === canonicalOf(comparison, value))
    return unknownRule(change);
  const fits = (one: Schema) =>
    branches.some((branch) => narrowed(comparison, one, branch, path).length === 0);
  if (fits(before)) return [];
  return [`${path} may no longer match any branch of anyOf`];
}
