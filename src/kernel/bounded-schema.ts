/**
 * Validates JSON values by schemas that strangers wrote: clients, models, servers and documents from outside. Promises
 * that every schema and value ends within a number of steps that is determined by the size of the value alone, and that
 * a schema which is accepted or refused is so everywhere: nothing depends on the clock or the machine. It evaluates the
 * schema as it is and compiles nothing, because the code that Ajv makes of 64 KiB takes seconds and hundreds of MB. For
 * the same reason it is no way to validate by an operator's schema, which Ajv does faster.
 */
import {
  checkDialect,
  type Dialect,
  dialectOf,
  type JsonSchema,
  type Validate,
} from './json-schema.ts';
import { applicators, evaluate } from './schema-applicators.ts';
import { assertions } from './schema-assertions.ts';
import { describeErrors } from './schema-issues.ts';
import { type Keywords, Reading, type SchemaNode } from './schema-nodes.ts';
import { SchemaPatterns } from './schema-patterns.ts';
import { checkSchemaSize } from './schema-rules.ts';
import {
  type Finding,
  FoundEnough,
  OutOfSteps,
  SchemaRun,
  StepMeter,
  stepsFor,
} from './schema-run.ts';
import { allFaultsNodesMax, NestedTooDeeply, nodesIn } from './value-size.ts';

/**
 * Throws SchemaError, one sentence, when a stranger's schema breaks the caps (64 KiB, 32 levels), its dialect's rules, or
 * has a pattern or a reference that cannot be used. Also when no bounded time would do: for patterns that repeat too
 * much, and for references that double at each level or lead to themselves.
 */
export function checkBoundedSchema(schema: JsonSchema): void {
  checkSchemaSize(schema);
  checkDialect(schema);
  read(schema);
}

/**
 * A validator, which reads the schema at its first call. It throws SchemaError for a schema that cannot be used, and
 * OutOfSteps, which is one, where a value takes more steps than it may.
 */
export function boundedValidator(schema: JsonSchema): Validate {
  let node: SchemaNode | undefined;
  return (value) => {
    node ??= readChecked(schema);
    return issuesOf(node, value);
  };
}

/** Reading a schema is a pass over it, with a look for each keyword at each schema within it. */
const stepsPerChar = 16;

/** Tests values by several strangers' schemas, within steps that all of them share. Each schema is read once. */
export class BoundedTests {
  readonly #meter: StepMeter;
  readonly #patterns: SchemaPatterns;
  readonly #dialect: Dialect;
  readonly #nodes = new Map<JsonSchema, SchemaNode>();

  constructor(meter: StepMeter, dialect: Dialect) {
    this.#meter = meter;
    this.#patterns = new SchemaPatterns(meter);
    this.#dialect = dialect;
  }

  /** Whether a value fits a schema. Throws as `boundedValidator`. */
  fits(schema: JsonSchema, value: unknown): boolean {
    const node = this.#nodes.get(schema) ?? this.#read(schema);
    return evaluate(new SchemaRun(this.#meter, 'none'), node, value, null, null);
  }

  #read(schema: JsonSchema): SchemaNode {
    checkSchemaSize(schema);
    this.#meter.spend(stepsPerChar * JSON.stringify(schema).length);
    const node = new Reading(schema, keywords[this.#dialect], this.#patterns).read(schema);
    this.#nodes.set(schema, node);
    return node;
  }
}

function readChecked(schema: JsonSchema): SchemaNode {
  checkSchemaSize(schema);
  return read(schema);
}

const keywords = {
  '2020-12': new Map([...assertions, ...applicators['2020-12']]),
  'draft-07': new Map([...assertions, ...applicators['draft-07']]),
} satisfies Record<string, Keywords>;

function read(schema: JsonSchema): SchemaNode {
  const patterns = new SchemaPatterns(null);
  return new Reading(schema, keywords[dialectOf(schema)], patterns).read(schema);
}

function issuesOf(node: SchemaNode, value: unknown): ReturnType<Validate> {
  try {
    const nodes = nodesIn(value);
    const run = new SchemaRun(new StepMeter(stepsFor(nodes)), 'none');
    if (evaluate(run, node, value, null, null)) return null;
    const finding = nodes <= allFaultsNodesMax ? 'all' : 'first';
    return describeErrors(errorsOf(node, value, stepsFor(nodes), finding));
  } catch (error) {
    if (error instanceof NestedTooDeeply) return [{ field: 'body', issue: 'is nested too deeply' }];
    throw error;
  }
}

/** The errors of a value that does not fit: those that are found within the steps, and at least one. */
function errorsOf(node: SchemaNode, value: unknown, steps: number, finding: Finding) {
  const run = new SchemaRun(new StepMeter(steps), finding);
  try {
    evaluate(run, node, value, null, null);
  } catch (error) {
    if (!(error instanceof FoundEnough || error instanceof OutOfSteps)) throw error;
  }
  if (run.errors.length === 0) run.add(null, 'schema', {}, 'does not fit the schema');
  return run.errors;
}
