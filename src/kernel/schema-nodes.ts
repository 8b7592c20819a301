/**
 * A stranger's schema as nodes, one for each schema in it, with its references resolved. Reading takes time that is
 * linear in the schema. Promises that no node leads to itself without a step into the value, and that the steps of all
 * schemas that one value has to fit at once are bounded.
 */
import { isObject, type Json } from './json.ts';
import type { Pattern, SchemaPatterns } from './schema-patterns.ts';
import { SchemaReferences } from './schema-references.ts';
import { SchemaError } from './schema-rules.ts';
import { type Evaluated, type Place, type SchemaRun, stepsBase } from './schema-run.ts';

/** Whether a value fits one keyword. */
export type Rule = (
  run: SchemaRun,
  value: unknown,
  place: Place | null,
  evaluated: Evaluated | null,
) => boolean;

/** Reads one keyword of a schema; null for one that refuses nothing. Throws SchemaError. */
export type ReadKeyword = (reading: Reading, schema: Json, value: unknown) => Rule | null;

export interface SchemaNode {
  readonly rules: Rule[];
  /** The nodes that the same value has to fit. */
  readonly inPlace: SchemaNode[];
  /** Whether a keyword of the schema reads what the others have evaluated. */
  readonly readsEvaluated: boolean;
}

/** References one after another without a step into the value, and schemas within one another for the same value. */
const inPlaceDepthMax = 200;

/** The keywords of a dialect, in the order in which they are validated. */
export type Keywords = ReadonlyMap<string, ReadKeyword>;

export class Reading {
  readonly #keywords: Keywords;
  readonly #references: SchemaReferences;
  readonly #nodes = new Map<object, SchemaNode>();
  readonly #unread: { readonly schema: Json; readonly node: SchemaNode }[] = [];
  /** The schema whose keywords are being read. */
  #current: SchemaNode = never;
  readonly #patterns: SchemaPatterns;

  constructor(root: Json, keywords: Keywords, patterns: SchemaPatterns) {
    this.#keywords = keywords;
    this.#patterns = patterns;
    this.#references = new SchemaReferences(root);
  }

  read(root: Json): SchemaNode {
    const node = this.node(root);
    // A loop, because references may lead from one schema to the next a thousand times.
    for (let next = this.#unread.pop(); next !== undefined; next = this.#unread.pop()) {
      this.#current = next.node;
      for (const [keyword, read] of this.#keywords) {
        if (!Object.hasOwn(next.schema, keyword)) continue;
        const rule = read(this, next.schema, next.schema[keyword]);
        if (rule !== null) next.node.rules.push(rule);
      }
    }
    const known = new Map<SchemaNode, InPlace | 'open'>();
    for (const one of this.#nodes.values()) checkInPlace(one, known);
    return node;
  }

  /** The node of a schema for a part of the value. */
  node(schema: unknown): SchemaNode {
    if (typeof schema === 'boolean') return schema ? always : never;
    if (!isObject(schema)) throw new SchemaError('has a value in place of a schema');
    const known = this.#nodes.get(schema);
    if (known !== undefined) return known;
    const readsEvaluated = [...readingKeywords].some(
      (keyword) => this.#keywords.has(keyword) && Object.hasOwn(schema, keyword),
    );
    const node: SchemaNode = { rules: [], inPlace: [], readsEvaluated };
    this.#nodes.set(schema, node);
    this.#unread.push({ schema, node });
    return node;
  }

  /** The node of a schema for the same value. */
  sameValue(schema: unknown): SchemaNode {
    const node = this.node(schema);
    this.#current.inPlace.push(node);
    return node;
  }

  referred(from: Json, keyword: string, reference: string): SchemaNode {
    return this.sameValue(this.#references.target(from, keyword, reference));
  }

  /** Throws SchemaError for a pattern that cannot be used, or would take too much time or memory. */
  pattern(text: string): Pattern {
    return this.#patterns.read(text);
  }
}

const always: SchemaNode = { rules: [], inPlace: [], readsEvaluated: false };
const never: SchemaNode = {
  rules: [(run, _value, place) => run.fail(place, 'false schema', {}, 'boolean schema is false')],
  inPlace: [],
  readsEvaluated: false,
};

const readingKeywords = new Set(['unevaluatedItems', 'unevaluatedProperties']);

interface InPlace {
  /** Steps of all schemas that the value has to fit, at least. */
  readonly steps: number;
  readonly depth: number;
}

function checkInPlace(
  node: SchemaNode,
  known: Map<SchemaNode, InPlace | 'open'>,
  level = 0,
): InPlace {
  const found = known.get(node);
  if (found === 'open') {
    throw new SchemaError('refers to itself without a step into the value, which would never end');
  }
  if (found !== undefined) return found;
  known.set(node, 'open');
  let steps = 1 + node.rules.length;
  let depth = level > inPlaceDepthMax ? level : 0;
  if (depth === 0) {
    for (const inner of node.inPlace) {
      const one = checkInPlace(inner, known, level + 1);
      steps += one.steps;
      depth = Math.max(depth, one.depth);
    }
  }
  depth += 1;
  if (depth > inPlaceDepthMax) {
    throw new SchemaError(
      `leads through more than ${inPlaceDepthMax} schemas for one value: nest them less`,
    );
  }
  if (steps > stepsBase) {
    throw new SchemaError(
      `would check one value more than ${stepsBase} times: its definitions refer to others too often`,
    );
  }
  known.set(node, { steps, depth });
  return { steps, depth };
}
