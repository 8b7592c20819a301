/**
 * One validation of a value by a schema that a stranger wrote. Promises that it ends after a number of steps that
 * depends on the size of the value alone, whatever the schema is; a step takes some ten nanoseconds.
 */
import type { ErrorObject } from 'ajv';
import type { Json } from './json.ts';
import { SchemaError } from './schema-rules.ts';
import { canonicalJson } from './text.ts';
import { NestedTooDeeply, scalarNodes, validationDepthMax } from './value-size.ts';

/** Steps for every value, more for each of its nodes, and for the largest. */
export const stepsBase = 1_000_000;
const stepsPerNode = 200;
const stepsMax = 30_000_000;
/** Of a node whose text is made. */
const stepsPerText = 64;
/** Of a member of an object that is listed for the first time, and again. */
const stepsPerMember = 40;
const stepsPerMemberAgain = 2;
/** Members of an object whose list is kept: listing a hundred thousand takes some hundred times as long as reading them. */
const keptMembersMin = 32;
/** Of a member or item that is marked as evaluated. */
const stepsPerMark = 12;
/** Errors that are collected of one value. */
const errorsMax = 200;
const nameCharsMax = 200;

/** Steps that several validations share. */
export class StepMeter {
  left: number;

  constructor(steps: number) {
    this.left = steps;
  }

  /** Throws OutOfSteps. */
  spend(steps: number): void {
    this.left -= steps;
    // Also for what is no number, of which no comparison is true.
    if (!(this.left >= 0)) throw new OutOfSteps();
  }
}

/** A validation would take more steps than it may. */
export class OutOfSteps extends SchemaError {
  constructor() {
    super('takes too many steps to check this value: simplify the schema, or send a smaller value');
  }
}

/** Enough errors have been found. */
export class FoundEnough extends Error {}

/** The place of a value; null for the whole. */
export interface Place {
  readonly parent: Place | null;
  readonly name: string;
}

/** The members and items that some keyword has evaluated, for `unevaluatedProperties` and `unevaluatedItems`. */
export class Evaluated {
  readonly names = new Set<string>();
  hasAllNames = false;
  readonly items = new Set<number>();
  /** All items before this one. */
  firstItems = 0;

  add(other: Evaluated): void {
    for (const name of other.names) this.names.add(name);
    for (const item of other.items) this.items.add(item);
    this.hasAllNames ||= other.hasAllNames;
    this.firstItems = Math.max(this.firstItems, other.firstItems);
  }
}

type Member = readonly [name: string, member: unknown];

/** What a validation looks for: whether the value fits, its first error, or all of them. */
export type Finding = 'none' | 'first' | 'all';

export class SchemaRun {
  readonly meter: StepMeter;
  readonly errors: ErrorObject[] = [];
  finding: Finding;
  /** Tells the branches of one `anyOf` apart from those of another. */
  schemaPath = '#';
  #depth = 0;
  #unions = 0;
  readonly #members = new Map<object, readonly Member[]>();
  readonly #sizes = new Map<object, number>();

  constructor(meter: StepMeter, finding: Finding) {
    this.meter = meter;
    this.finding = finding;
  }

  enter(steps: number): void {
    this.meter.spend(steps);
    this.#depth += 1;
    if (this.#depth > validationDepthMax) throw new NestedTooDeeply();
  }

  leave(): void {
    this.#depth -= 1;
  }

  /** Whether a test passes, without its errors. */
  quietly(test: () => boolean): boolean {
    const { finding } = this;
    this.finding = 'none';
    const passes = test();
    this.finding = finding;
    return passes;
  }

  /** The errors of the branches of a union, and that of the union. */
  failUnion(place: Place | null, keyword: string, message: string, branches: () => void): false {
    if (this.finding === 'none') return false;
    const { schemaPath } = this;
    this.#unions += 1;
    const own = `${schemaPath}/${this.#unions}`;
    this.schemaPath = `${own}/branch`;
    branches();
    this.schemaPath = own;
    this.fail(place, keyword, {}, message);
    this.schemaPath = schemaPath;
    return false;
  }

  fail(place: Place | null, keyword: string, params: object, message: string): false {
    if (this.finding === 'none') return false;
    this.add(place, keyword, params, message);
    if (this.errors.length >= errorsMax) throw new FoundEnough();
    return false;
  }

  add(place: Place | null, keyword: string, params: object, message: string): void {
    const { schemaPath } = this;
    this.errors.push({ keyword, instancePath: pointerOf(place), schemaPath, params, message });
  }

  /** The place of a member; places are only known while errors are looked for. */
  inside(parent: Place | null, name: string | number): Place | null {
    return this.finding === 'none' ? null : { parent, name: String(name) };
  }

  /** The names and values of an object's members. */
  members(value: Json): readonly Member[] {
    const known = this.#members.get(value);
    if (known !== undefined) {
      this.meter.spend(stepsPerMemberAgain * known.length);
      return known;
    }
    const members = Object.entries(value);
    this.meter.spend(stepsPerMember * members.length);
    if (members.length >= keptMembersMin) this.#members.set(value, members);
    return members;
  }

  /** The steps for marking members and items as evaluated. */
  spendMarks(count: number): void {
    this.meter.spend(stepsPerMark * count);
  }

  /** Equal values have equal texts. */
  canonical(value: unknown): string {
    this.spendText(value);
    return canonicalJson(value);
  }

  /** The steps for making the text of a value. */
  spendText(value: unknown): void {
    this.meter.spend(stepsPerText * this.#sizeOf(value));
  }

  #sizeOf(value: unknown): number {
    if (typeof value !== 'object' || value === null) return scalarNodes(value);
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    let size = 1;
    if (Array.isArray(value)) {
      for (const item of value) size += this.#sizeOf(item);
    } else {
      for (const [name, member] of Object.entries(value)) {
        size += scalarNodes(name) + this.#sizeOf(member);
      }
    }
    this.#sizes.set(value, size);
    return size;
  }
}

/** The steps that a value of so many nodes may take. */
export function stepsFor(nodes: number): number {
  return Math.min(stepsBase + stepsPerNode * nodes, stepsMax);
}

/** As Ajv writes it, with its names cut. */
function pointerOf(place: Place | null): string {
  const names: string[] = [];
  for (let at = place; at !== null; at = at.parent) {
    const name = at.name.length <= nameCharsMax ? at.name : `${at.name.slice(0, nameCharsMax)}…`;
    names.push(`/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  }
  return names.reverse().join('');
}
