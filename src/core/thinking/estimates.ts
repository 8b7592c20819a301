/**
 * Estimates the tokens of a prompt before it is sent, from its size and from the provider's reports for
 * earlier prompts of the same model. Tokenizers differ between models, and many are not published.
 *
 * Three numbers: `bound` is what a call reserves, and is not exceeded by the tokenizers that are known, in any
 * script; `expected` is what it is charged where its provider does not report the prompt; `measure` is what has to fit
 * into a window, with a margin, because a window that is left unused costs as well.
 */
import { type TextKind, type TextSize, textKinds } from '../../adapters/models/text-size.ts';

/** Tokens per byte: the average of the tokenizers of OpenAI and Anthropic. */
const usual: Readonly<Record<TextKind, number>> = {
  words: 0.24,
  dense: 0.5,
  runs: 0.72,
  two: 0.3,
  three: 0.33,
  four: 0.55,
};
/**
 * Tokens per byte at most. A tokenizer has a token for every byte, so no text takes more tokens than it has bytes.
 * Random letters in place of words take 0.55.
 */
const most: Readonly<Record<TextKind, number>> = {
  words: 0.6,
  dense: 1,
  runs: 1,
  two: 1,
  three: 1,
  four: 1,
};
/**
 * Factor on the usual tokens when measuring a window and the model has no report for a kind of text. Anthropic's
 * tokenizer of 2026 gives 1.3 times the tokens of its predecessor.
 */
const unreported = 1.4;
/** Reports below this factor of the usual tokens are implausible. */
const plausibleMin = 0.6;
/** A report counts for a kind of text that has at least this share of the expected tokens. */
const shareMin = 0.4;
/** The factor assumed for the other kinds of text in the same report. */
const othersLeast = 0.5;
/** Reports kept per model and kind of text. The bound is the largest of them times the margin. */
const reportsMax = 20;
const margin = 1.1;
/** Smaller reports are errors of the provider's counting. */
const factorMin = 0.1;
/**
 * Tokens that a provider may add to a prompt, such as its own instructions for tools; larger numbers are errors of
 * its counting.
 */
const hiddenMax = 1_000;
/** Models with reports in memory; the oldest is evicted first. */
const modelsMax = 1_000;

/** What a report says about a kind of text, as multiples of its usual tokens. */
interface PromptReport {
  /** Upper bound of the factor of one kind. */
  readonly bound: number;
  /** The factor of all kinds together. */
  readonly factor: number;
  /** The reported tokens. */
  readonly tokens: number;
}

interface PromptReports extends Partial<Record<TextKind, readonly PromptReport[]>> {
  /** Tokens beyond the bytes of each prompt. */
  readonly hidden: readonly number[];
}

const noReports: PromptReports = { hidden: [0] };

/** The measure of a window. */
export class WindowMeasure {
  /** Tokens that a provider counts beside what is sent. */
  readonly hidden: number;
  /** Tokens per byte. */
  readonly #rates: Readonly<Record<TextKind, number>>;

  constructor(hidden: number, rates: Readonly<Record<TextKind, number>>) {
    this.hidden = hidden;
    this.#rates = rates;
  }

  /** The window tokens of a text of this size. Two texts together take at most the sum. */
  tokensOf(size: TextSize): number {
    const add = (sum: number, kind: TextKind) => sum + size[kind] * this.#rates[kind];
    return whole(textKinds.reduce(add, size.framing));
  }
}

/** Shared by all attempts of a process: the reports on one improve the estimates of the next. */
export class Estimates {
  readonly #models = new Map<string, PromptReports>();

  /** The most tokens that a prompt of this size can be expected to have. */
  bound(model: string, size: TextSize): number {
    return boundOf(this.#models.get(model) ?? noReports, size);
  }

  /** The tokens that a prompt of this size has most likely. */
  expected(model: string, size: TextSize): number {
    return expectedOf(this.#models.get(model) ?? noReports, size);
  }

  /** The measure for a window that must hold for all of these models. */
  measure(names: readonly string[]): WindowMeasure {
    return measureOf(names.map((name) => this.#models.get(name) ?? noReports));
  }

  /** Records the reported tokens of a prompt of this size. */
  learn(model: string, size: TextSize, reported: number): void {
    if (reported <= 0) return;
    const known = this.#models.get(model);
    if (known === undefined && this.#models.size >= modelsMax) {
      this.#models.delete(this.#models.keys().next().value as string);
    }
    this.#models.set(model, withReport(known ?? noReports, size, reported));
  }
}

function boundOf(reports: PromptReports, size: TextSize): number {
  const tokens = textKinds.reduce((sum, kind) => sum + size[kind] * rateOf(reports, kind), 0);
  return whole(size.framing + tokens + hiddenIn(reports) * margin);
}

/** Tokens per byte of this kind, at most. */
function rateOf(reports: PromptReports, kind: TextKind): number {
  const known = reports[kind];
  if (known === undefined) return most[kind];
  return Math.min(1, usual[kind] * margin * Math.max(...known.map(({ bound }) => bound)));
}

function expectedOf(reports: PromptReports, size: TextSize): number {
  const kind = textKinds.reduce((a, b) => (usualOf(size, b) > usualOf(size, a) ? b : a));
  const known = reports[kind] ?? [{ factor: 1 }];
  const factor = known.reduce((sum, report) => sum + report.factor, 0) / known.length;
  const tokens = usualTokens(size) * factor + hiddenIn(reports);
  return Math.min(whole(tokens), boundOf(reports, size));
}

function measureOf(all: readonly PromptReports[]): WindowMeasure {
  const rates = textKinds.map((kind) => {
    const known = all.flatMap((reports) => reports[kind] ?? []).filter(isPlausible);
    if (known.length === 0) return [kind, Math.min(most[kind], usual[kind] * unreported)] as const;
    // A report on few tokens mostly measures what the provider adds to the prompt.
    const tokens = known.reduce((sum, report) => sum + report.tokens, 0);
    const factor = known.reduce((sum, report) => sum + report.factor * report.tokens, 0) / tokens;
    return [kind, Math.min(1, usual[kind] * factor * margin)] as const;
  });
  const hidden = whole(Math.max(...all.map(hiddenIn)) * margin);
  return new WindowMeasure(hidden, Object.fromEntries(rates) as Record<TextKind, number>);
}

/** Filters out reports that leave out cached tokens, as those of some providers do. */
const isPlausible = ({ factor }: PromptReport) => factor >= plausibleMin;

function withReport(reports: PromptReports, size: TextSize, reported: number): PromptReports {
  const all = usualTokens(size);
  const hidden = Math.min(hiddenMax, Math.max(0, reported - boundOf(noReports, size)));
  const seen = reported - hidden;
  const factor = Math.max(factorMin, seen / all);
  const next = { ...reports, hidden: [...reports.hidden, hidden].slice(-reportsMax) };
  for (const kind of textKinds) {
    const own = usualOf(size, kind);
    if (own < all * shareMin) continue;
    const bound = Math.max(factorMin, (seen - (all - own) * othersLeast) / own);
    next[kind] = [...(next[kind] ?? []), { bound, factor, tokens: seen }].slice(-reportsMax);
  }
  return next;
}

const hiddenIn = ({ hidden }: PromptReports) => Math.max(...hidden);

const usualOf = (size: TextSize, kind: TextKind) => size[kind] * usual[kind];

function usualTokens(size: TextSize): number {
  return textKinds.reduce((sum, kind) => sum + usualOf(size, kind), size.framing);
}

/** Rounding errors of floating point must not add a token. */
function whole(tokens: number): number {
  return Math.ceil(tokens - 1e-6);
}
