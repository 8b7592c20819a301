/** The keywords of JSON Schema with schemas inside them, as rules of a stranger's schema. */
import { isObject, type Json } from './json.ts';
import { isNames, malformed } from './schema-assertions.ts';
import type { Reading, ReadKeyword, Rule, SchemaNode } from './schema-nodes.ts';
import { matchesPattern, type Pattern } from './schema-patterns.ts';
import { Evaluated, type Place, type SchemaRun } from './schema-run.ts';

/** Whether a value fits a schema. */
export function evaluate(
  run: SchemaRun,
  node: SchemaNode,
  value: unknown,
  place: Place | null,
  evaluated: Evaluated | null,
): boolean {
  run.enter(1 + node.rules.length);
  // What is evaluated beside this schema does not count for its own keywords.
  const own = node.readsEvaluated ? newEvaluated(run) : evaluated;
  let fits = true;
  for (const rule of node.rules) {
    if (rule(run, value, place, own)) continue;
    fits = false;
    if (run.finding !== 'all') break;
  }
  if (own !== evaluated && fits) merge(run, evaluated, own);
  run.leave();
  return fits;
}

function newEvaluated(run: SchemaRun): Evaluated {
  run.spendMarks(3);
  return new Evaluated();
}

function mark(run: SchemaRun, evaluated: Evaluated | null, name: string): void {
  if (evaluated === null) return;
  run.spendMarks(1);
  evaluated.names.add(name);
}

function merge(run: SchemaRun, into: Evaluated | null, from: Evaluated | null): void {
  if (into === null || from === null) return;
  run.spendMarks(1 + from.names.size + from.items.size);
  into.add(from);
}

/** Whether a value fits a schema, which evaluates its members only if it does. */
function tried(
  run: SchemaRun,
  node: SchemaNode,
  value: unknown,
  evaluated: Evaluated | null,
): boolean {
  const own = evaluated === null ? null : newEvaluated(run);
  const fits = run.quietly(() => evaluate(run, node, value, null, own));
  if (fits) merge(run, evaluated, own);
  return fits;
}

function nodesForSameValue(reading: Reading, keyword: string, schemas: unknown): SchemaNode[] {
  if (!Array.isArray(schemas)) throw malformed(keyword, 'a list of schemas');
  return schemas.map((schema) => reading.sameValue(schema));
}

function nodesOf(
  keyword: string,
  schemas: unknown,
  node: (schema: unknown) => SchemaNode,
): [string, SchemaNode][] {
  if (!isObject(schemas)) throw malformed(keyword, 'an object of schemas');
  return Object.entries(schemas).map(([name, schema]) => [name, node(schema)]);
}

const readReference =
  (keyword: string): ReadKeyword =>
  (reading, schema, reference) => {
    if (typeof reference !== 'string') throw malformed(keyword, 'a text');
    const node = reading.referred(schema, keyword, reference);
    return (run, value, place, evaluated) => evaluate(run, node, value, place, evaluated);
  };

const readNot: ReadKeyword = (reading, _schema, inner) => {
  const node = reading.sameValue(inner);
  return (run, value, place) =>
    !tried(run, node, value, null) || run.fail(place, 'not', {}, 'must NOT be valid');
};

const readAllOf: ReadKeyword = (reading, _schema, schemas) => {
  const nodes = nodesForSameValue(reading, 'allOf', schemas);
  return (run, value, place, evaluated) => {
    let fits = true;
    for (const node of nodes) {
      if (evaluate(run, node, value, place, evaluated)) continue;
      fits = false;
      if (run.finding !== 'all') break;
    }
    return fits;
  };
};

const readAnyOf: ReadKeyword = (reading, _schema, schemas) => {
  const nodes = nodesForSameValue(reading, 'anyOf', schemas);
  return (run, value, place, evaluated) => {
    let fits = false;
    for (const node of nodes) {
      if (tried(run, node, value, evaluated)) fits = true;
      // Each branch that fits evaluates members, so all are tried where another keyword reads that.
      if (fits && evaluated === null) break;
    }
    return (
      fits ||
      run.failUnion(place, 'anyOf', 'must match a schema in anyOf', () => {
        for (const node of nodes) evaluate(run, node, value, place, null);
      })
    );
  };
};

const readOneOf: ReadKeyword = (reading, _schema, schemas) => {
  const nodes = nodesForSameValue(reading, 'oneOf', schemas);
  return (run, value, place, evaluated) => {
    let count = 0;
    for (const node of nodes) {
      if (tried(run, node, value, evaluated)) count += 1;
      if (count > 1) break;
    }
    const message = 'must match exactly one schema in oneOf';
    return (
      count === 1 ||
      run.failUnion(place, 'oneOf', message, () => {
        if (count === 0) for (const node of nodes) evaluate(run, node, value, place, null);
      })
    );
  };
};

const readIf: ReadKeyword = (reading, schema, condition) => {
  const inner = (keyword: 'then' | 'else') =>
    Object.hasOwn(schema, keyword) ? reading.sameValue(schema[keyword]) : null;
  const [ifNode, thenNode, elseNode] = [reading.sameValue(condition), inner('then'), inner('else')];
  return (run, value, place, evaluated) => {
    // Without the two, it only evaluates members.
    if (thenNode === null && elseNode === null && evaluated === null) return true;
    const isThen = tried(run, ifNode, value, evaluated);
    const node = isThen ? thenNode : elseNode;
    if (node === null || evaluate(run, node, value, place, evaluated)) return true;
    return run.fail(place, 'if', {}, `must match "${isThen ? 'then' : 'else'}" schema`);
  };
};

/** Items from `from` on. */
function itemsRule(node: SchemaNode, from: number): Rule {
  return (run, value, place, evaluated) => {
    if (!Array.isArray(value)) return true;
    let fits = true;
    for (let i = from; i < value.length; i++) {
      if (evaluate(run, node, value[i], run.inside(place, i), null)) continue;
      fits = false;
      if (run.finding !== 'all') break;
    }
    if (evaluated !== null) evaluated.firstItems = value.length;
    return fits;
  };
}

const readTuple =
  (keyword: string): ReadKeyword =>
  (reading, _schema, schemas) => {
    if (!Array.isArray(schemas)) throw malformed(keyword, 'a list of schemas');
    const nodes = schemas.map((schema) => reading.node(schema));
    return (run, value, place, evaluated) => {
      if (!Array.isArray(value)) return true;
      const count = Math.min(nodes.length, value.length);
      let fits = true;
      for (let i = 0; i < count; i++) {
        const node = nodes[i] as SchemaNode;
        if (evaluate(run, node, value[i], run.inside(place, i), null)) continue;
        fits = false;
        if (run.finding !== 'all') break;
      }
      if (evaluated !== null) evaluated.firstItems = Math.max(evaluated.firstItems, count);
      return fits;
    };
  };

const readItems: ReadKeyword = (reading, { prefixItems }, schema) =>
  itemsRule(reading.node(schema), Array.isArray(prefixItems) ? prefixItems.length : 0);

const readItemsOfDraft07: ReadKeyword = (reading, schema, items) =>
  Array.isArray(items)
    ? readTuple('items')(reading, schema, items)
    : itemsRule(reading.node(items), 0);

const readAdditionalItems: ReadKeyword = (reading, { items }, schema) =>
  Array.isArray(items) ? itemsRule(reading.node(schema), items.length) : null;

const countOf = (value: unknown, fallback: number) =>
  typeof value === 'number' ? value : fallback;

function containsRule(node: SchemaNode, least: number, most: number): Rule {
  return (run, value, place, evaluated) => {
    if (!Array.isArray(value)) return true;
    let count = 0;
    for (let i = 0; i < value.length; i++) {
      if (!tried(run, node, value[i], null)) continue;
      count += 1;
      if (evaluated !== null) {
        run.spendMarks(1);
        evaluated.items.add(i);
      }
      if (evaluated === null && count >= least && most === Number.POSITIVE_INFINITY) return true;
    }
    const many = most === Number.POSITIVE_INFINITY ? '' : ` and no more than ${most}`;
    return (
      (count >= least && count <= most) ||
      run.fail(place, 'contains', {}, `must contain at least ${least}${many} valid item(s)`)
    );
  };
}

const readContains: ReadKeyword = (reading, { minContains, maxContains }, schema) =>
  containsRule(
    reading.node(schema),
    countOf(minContains, 1),
    countOf(maxContains, Number.POSITIVE_INFINITY),
  );

const readContainsOfDraft07: ReadKeyword = (reading, _schema, schema) =>
  containsRule(reading.node(schema), 1, Number.POSITIVE_INFINITY);

const readProperties: ReadKeyword = (reading, _schema, schemas) => {
  const nodes = nodesOf('properties', schemas, (schema) => reading.node(schema));
  return (run, value, place, evaluated) => {
    if (!isObject(value)) return true;
    run.meter.spend(nodes.length);
    let fits = true;
    for (const [name, node] of nodes) {
      if (!Object.hasOwn(value, name)) continue;
      mark(run, evaluated, name);
      if (evaluate(run, node, value[name], run.inside(place, name), null)) continue;
      fits = false;
      if (run.finding !== 'all') break;
    }
    return fits;
  };
};

function patternsOf(reading: Reading, schema: Json): [Pattern, SchemaNode][] {
  const { patternProperties: patterns } = schema;
  if (patterns === undefined) return [];
  return nodesOf('patternProperties', patterns, (inner) => reading.node(inner)).map(
    ([pattern, node]) => [reading.pattern(pattern), node],
  );
}

const readPatternProperties: ReadKeyword = (reading, schema) => {
  const patterns = patternsOf(reading, schema);
  return (run, value, place, evaluated) => {
    if (!isObject(value)) return true;
    let fits = true;
    for (const [name, member] of run.members(value)) {
      for (const [pattern, node] of patterns) {
        if (!matchesPattern(run.meter, pattern, name)) continue;
        mark(run, evaluated, name);
        if (evaluate(run, node, member, run.inside(place, name), null)) continue;
        fits = false;
        if (run.finding !== 'all') return false;
      }
    }
    return fits;
  };
};

/** A schema for all members for which `isOther` holds. */
function othersRule(
  reading: Reading,
  schema: unknown,
  [keyword, param]: readonly [keyword: string, param: string],
  isOther: (run: SchemaRun, name: string, evaluated: Evaluated | null) => boolean,
): Rule {
  const node = reading.node(schema);
  return (run, value, place, evaluated) => {
    if (!isObject(value)) return true;
    let fits = true;
    for (const [name, member] of run.members(value)) {
      if (!isOther(run, name, evaluated)) continue;
      const isFitting =
        schema === false
          ? run.fail(place, keyword, { [param]: name }, 'must NOT have other properties')
          : evaluate(run, node, member, run.inside(place, name), null);
      if (isFitting) continue;
      fits = false;
      if (run.finding !== 'all') return false;
    }
    if (evaluated !== null) evaluated.hasAllNames = true;
    return fits;
  };
}

const readAdditionalProperties: ReadKeyword = (reading, schema, additional) => {
  const { properties } = schema;
  const named = isObject(properties) ? properties : {};
  const patterns = patternsOf(reading, schema);
  const fault = ['additionalProperties', 'additionalProperty'] as const;
  return othersRule(
    reading,
    additional,
    fault,
    ({ meter }, name) =>
      !Object.hasOwn(named, name) &&
      !patterns.some(([pattern]) => matchesPattern(meter, pattern, name)),
  );
};

const readPropertyNames: ReadKeyword = (reading, _schema, names) => {
  const node = reading.node(names);
  return (run, value, place) => {
    if (!isObject(value)) return true;
    let fits = true;
    for (const [name] of run.members(value)) {
      if (evaluate(run, node, name, place, null)) continue;
      fits = run.fail(place, 'propertyNames', {}, 'property name must be valid');
      if (run.finding !== 'all') return false;
    }
    return fits;
  };
};

/** The names that a member brings with it. */
function dependentNames(keyword: string, entries: readonly (readonly [string, unknown])[]): Rule {
  const all = entries.map(([name, names]) => {
    if (!isNames(names)) throw malformed(keyword, 'an object of lists of names');
    return [name, names] as const;
  });
  return (run, value, place) => {
    if (!isObject(value)) return true;
    let fits = true;
    for (const [name, names] of all) {
      run.meter.spend(1);
      if (!Object.hasOwn(value, name)) continue;
      run.meter.spend(names.length);
      for (const missingProperty of names) {
        if (Object.hasOwn(value, missingProperty)) continue;
        fits = run.fail(place, keyword, { missingProperty }, 'is required');
        if (run.finding !== 'all') return false;
      }
    }
    return fits;
  };
}

/** The schemas that an object has to fit where it has a member. */
function dependentSchemas(
  reading: Reading,
  entries: readonly (readonly [string, unknown])[],
): Rule {
  const nodes = entries.map(([name, schema]) => [name, reading.sameValue(schema)] as const);
  return (run, value, place, evaluated) => {
    if (!isObject(value)) return true;
    run.meter.spend(nodes.length);
    let fits = true;
    for (const [name, node] of nodes) {
      if (!Object.hasOwn(value, name)) continue;
      if (evaluate(run, node, value, place, evaluated)) continue;
      fits = false;
      if (run.finding !== 'all') return false;
    }
    return fits;
  };
}

function entriesOf(keyword: string, value: unknown): [string, unknown][] {
  if (!isObject(value)) throw malformed(keyword, 'an object');
  return Object.entries(value);
}

const readDependentRequired: ReadKeyword = (_reading, _schema, value) =>
  dependentNames('dependentRequired', entriesOf('dependentRequired', value));

const readDependentSchemas: ReadKeyword = (reading, _schema, value) =>
  dependentSchemas(reading, entriesOf('dependentSchemas', value));

/** Of draft-07, and taken in 2020-12 as well: lists of names, or schemas. */
const readDependencies: ReadKeyword = (reading, _schema, value) => {
  const entries = entriesOf('dependencies', value);
  const names = dependentNames(
    'dependencies',
    entries.filter(([, one]) => Array.isArray(one)),
  );
  const schemas = dependentSchemas(
    reading,
    entries.filter(([, one]) => !Array.isArray(one)),
  );
  return (...given) => names(...given) && schemas(...given);
};

const readUnevaluatedProperties: ReadKeyword = (reading, _schema, schema) =>
  othersRule(
    reading,
    schema,
    ['unevaluatedProperties', 'unevaluatedProperty'],
    (_run, name, evaluated) =>
      evaluated !== null && !evaluated.hasAllNames && !evaluated.names.has(name),
  );

const readUnevaluatedItems: ReadKeyword = (reading, _schema, schema) => {
  const node = reading.node(schema);
  return (run, value, place, evaluated) => {
    if (!Array.isArray(value) || evaluated === null) return true;
    let fits = true;
    for (let i = evaluated.firstItems; i < value.length; i++) {
      run.meter.spend(1);
      if (evaluated.items.has(i)) continue;
      if (evaluate(run, node, value[i], run.inside(place, i), null)) continue;
      fits = false;
      if (run.finding !== 'all') break;
    }
    evaluated.firstItems = value.length;
    return fits;
  };
};

type Entries = readonly (readonly [keyword: string, read: ReadKeyword])[];

const ofAll: Entries = [
  ['$ref', readReference('$ref')],
  ['not', readNot],
  ['anyOf', readAnyOf],
  ['oneOf', readOneOf],
  ['allOf', readAllOf],
  ['if', readIf],
  ['propertyNames', readPropertyNames],
  ['additionalProperties', readAdditionalProperties],
  ['dependencies', readDependencies],
  ['properties', readProperties],
  ['patternProperties', readPatternProperties],
];

/** By dialect, in their order: keywords that read which members are evaluated come after those that evaluate them. */
export const applicators: Readonly<Record<'2020-12' | 'draft-07', Entries>> = {
  '2020-12': [
    ['$dynamicRef', readReference('$dynamicRef')],
    ['$recursiveRef', readReference('$recursiveRef')],
    ...ofAll,
    ['prefixItems', readTuple('prefixItems')],
    ['items', readItems],
    ['contains', readContains],
    ['dependentRequired', readDependentRequired],
    ['dependentSchemas', readDependentSchemas],
    ['unevaluatedItems', readUnevaluatedItems],
    ['unevaluatedProperties', readUnevaluatedProperties],
  ],
  'draft-07': [
    ...ofAll,
    ['items', readItemsOfDraft07],
    ['additionalItems', readAdditionalItems],
    ['contains', readContainsOfDraft07],
  ],
};
