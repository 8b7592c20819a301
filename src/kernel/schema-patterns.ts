/**
 * The regular expressions of strangers' schemas. Promises that all compiled ones of a process together take some tens of
 * MB, and that a match costs no more than what it spends, also where its expression has to be compiled again.
 */
import { type PatternSize, patternSize } from './pattern-size.ts';
import { quoted } from './schema-references.ts';
import { type SchemaRegExp, schemaRegExp } from './schema-regexp.ts';
import { SchemaError } from './schema-rules.ts';
import type { StepMeter } from './schema-run.ts';

export interface Pattern extends PatternSize {
  readonly text: string;
}

/** Parts of one pattern with its repetitions written out, and of all patterns that are read together. */
const patternPartsMax = 2_000;
const patternsPartsMax = 20_000;
const stepsPerPart = 300;

/** The patterns of schemas that are used together. All of them can be kept at once. */
export class SchemaPatterns {
  readonly #meter: StepMeter | null;
  readonly #known = new Map<string, Pattern>();
  #parts = 0;

  /** Without a meter, the caps alone bound what compiling costs: some 50 ms. */
  constructor(meter: StepMeter | null) {
    this.#meter = meter;
  }

  /** Throws SchemaError for a pattern that cannot be used, or would take too much time or memory. */
  read(text: string): Pattern {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const pattern = { text, ...patternSize(text) };
    const { parts } = pattern;
    if (parts > patternPartsMax) throw tooLarge(text);
    if (this.#parts + parts > patternsPartsMax) {
      throw new SchemaError(`has patterns of more than ${patternsPartsMax} parts together`);
    }
    // Also where the expression is kept: what a schema costs must not depend on what the process did before.
    this.#meter?.spend(stepsPerPart * parts);
    keep(pattern);
    this.#known.set(text, pattern);
    this.#parts += parts;
    return pattern;
  }
}

function tooLarge(text: string): SchemaError {
  return new SchemaError(
    `has the pattern ${quoted(text)}, which has more than ${patternPartsMax} parts with its repetitions`,
  );
}

/** So few parts have so few states that RE2 takes one step a character; more may take one for each part. */
const narrow = 8;
const stepsPerTest = 60;

/** Whether a pattern matches. Spends the most that this may take, and a share of compiling it again. */
export function matchesPattern(meter: StepMeter, pattern: Pattern, text: string): boolean {
  const { parts, width } = pattern;
  const perChar = width <= narrow ? 2 : 4 * width;
  // States that take too much memory are dropped, and the expression is compiled again.
  const perCharAgain = width === 1 ? 0 : parts >> 3;
  const perTest = stepsPerTest + (pattern.text.length >> 5);
  meter.spend(perTest + (perChar + perCharAgain) * text.length);
  const found = keep(pattern);
  const matches = found.regexp.test(text);
  addStates(found, text.length);
  return matches;
}

interface Kept {
  readonly regexp: SchemaRegExp;
  readonly pattern: Pattern;
  /** Bytes of the states that RE2 has made at most. */
  stateBytes: number;
}

const kept = new Map<string, Kept>();
let keptParts = 0;
let keptStateBytes = 0;

/** Those that are used together fit in, so none of them is dropped for another. */
const keptPartsMax = patternsPartsMax;
/** RE2 makes no more states than this for one expression, and begins anew. */
const stateBytesMax = 8 * 2 ** 20;
const keptStateBytesMax = 6 * stateBytesMax;

/** The compiled expression. Throws SchemaError for one that RE2 refuses, or that is larger than it was measured. */
function keep(pattern: Pattern): Kept {
  const { text } = pattern;
  const found = kept.get(text) ?? { regexp: compile(pattern), pattern, stateBytes: 0 };
  // The least recently used is the first.
  drop(text);
  kept.set(text, found);
  keptParts += found.pattern.parts;
  keptStateBytes += found.stateBytes;
  for (const oldest of kept.keys()) {
    if (keptParts <= keptPartsMax || oldest === text) break;
    drop(oldest);
  }
  return found;
}

function compile({ text, parts }: Pattern): SchemaRegExp {
  let regexp: SchemaRegExp;
  try {
    regexp = schemaRegExp(text);
  } catch (error) {
    throw new SchemaError((error as Error).message);
  }
  // What it may cost is counted by the parts.
  if (regexp.programSize > parts) throw tooLarge(text);
  return regexp;
}

/** Counts the states for a text. Beyond the bound, the expression with most of them is dropped with them. */
function addStates(one: Kept, chars: number): void {
  const { parts, width } = one.pattern;
  // Without a choice, RE2 needs none.
  if (width === 1) return;
  const before = one.stateBytes;
  one.stateBytes = Math.min(stateBytesMax, before + chars * (200 + 8 * (width + parts)));
  keptStateBytes += one.stateBytes - before;
  if (keptStateBytes <= keptStateBytesMax) return;
  let largest = one;
  for (const other of kept.values()) if (other.stateBytes > largest.stateBytes) largest = other;
  drop(largest.pattern.text);
}

function drop(text: string): void {
  const found = kept.get(text);
  if (found === undefined) return;
  kept.delete(text);
  keptParts -= found.pattern.parts;
  keptStateBytes -= found.stateBytes;
}
