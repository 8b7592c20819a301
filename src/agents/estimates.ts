/**
 * Estimates the tokens of a prompt before it is sent, from its size and from the provider's reports for
 * earlier prompts of the same model. Tokenizers differ between models, and many are not published.
 *
 * Three numbers: `bound` is what a call reserves, and is not exceeded by the tokenizers that are known, in any
 * script; `expected` is what it is charged where its provider does not report the prompt; `measure` is what has to fit
 * into a window, with a margin, because a window that is left unused costs as well.
 */
import { type TextKind, type TextSize, textKinds } from './text-size.ts';

/** Tokens of a byte, as the tokenizers of OpenAI and Anthropic have them on average. */
const usual: Readonly<Record<TextKind, number>> = {
  words: 0.24,
  dense: 0.5,
  runs: 0.72,
  two: 0.3,
  three: 0.33,
  four: 0.55,
};
/**
 * The most tokens of a byte. A tokenizer has a token for every byte, so no text takes more tokens than it
 * has bytes. Random letters in the place of words take 0.55.
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
 * The tokens that are planned for in a window, as multiples of the usual ones, where a model has not reported on a kind:
 * Anthropic's tokenizer of 2026 has 1.3 times those of the one before.
 */
const unreported = 1.4;
/** Of the usual tokens of a text, tokenizers have this part at least. */
const plausibleMin = 0.6;
/** A report says something about a kind that has this share of the expected tokens. */
const shareMin = 0.4;
/** The other kinds of a text that was reported are assumed to have this part of their usual tokens. */
const othersLeast = 0.5;
/** Reports kept of a kind of a model; for the bound the largest is used, with this margin. */
const reportsMax = 20;
const margin = 1.1;
/** Smaller reports are errors of the provider's counting. */
const factorMin = 0.1;
/**
 * Tokens that a provider may count beside what is sent, such as instructions of its own for tools; larger
 * numbers are errors of its counting.
 */
const hiddenMax = 1_000;
/** Models with reports in memory; the oldest is evicted first. */
const modelsMax = 1_000;

/** What a report says about a kind of text, as multiples of its usual tokens. */
interface Report {
  /** At most. */
  readonly bound: number;
  /** Of all kinds of the text together. */
  readonly factor: number;
  /** The tokens that it was about. */
  readonly tokens: number;
}

interface Reports extends Partial<Record<TextKind, readonly Report[]>> {
  /** Tokens beyond the bytes of each prompt. */
  readonly hidden: readonly number[];
}

const noReports: Reports = { hidden: [0] };

/** Tokens that a text of this size may take of a window; those of two texts are at most their sum. */
export type Measure = (size: TextSize) => number;

export interface WindowMeasure {
  readonly tokensOf: Measure;
  /** Tokens that a provider counts beside what is sent. */
  readonly hidden: number;
}

export type Estimates = ReturnType<typeof createEstimates>;

export function createEstimates() {
  const models = new Map<string, Reports>();
  return {
    /** The most tokens that a prompt of this size can be expected to have. */
    bound: (model: string, size: TextSize) => boundOf(models.get(model) ?? noReports, size),

    /** The tokens that a prompt of this size has most likely. */
    expected: (model: string, size: TextSize) => expectedOf(models.get(model) ?? noReports, size),

    /** What a text may take of a window that these models share. */
    measure: (names: readonly string[]): WindowMeasure =>
      measureOf(names.map((name) => models.get(name) ?? noReports)),

    /** Records the reported tokens of a prompt of this size. */
    learn(model: string, size: TextSize, reported: number): void {
      if (reported <= 0) return;
      const known = models.get(model);
      if (known === undefined && models.size >= modelsMax) {
        models.delete(models.keys().next().value as string);
      }
      models.set(model, withReport(known ?? noReports, size, reported));
    },
  };
}

function boundOf(reports: Reports, size: TextSize): number {
  const tokens = textKinds.reduce((sum, kind) => sum + size[kind] * rateOf(reports, kind), 0);
  return whole(size.framing + tokens + hiddenIn(reports) * margin);
}

/** The most tokens of a byte of this kind. */
function rateOf(reports: Reports, kind: TextKind): number {
  const known = reports[kind];
  if (known === undefined) return most[kind];
  return Math.min(1, usual[kind] * margin * Math.max(...known.map(({ bound }) => bound)));
}

function expectedOf(reports: Reports, size: TextSize): number {
  const kind = textKinds.reduce((a, b) => (usualOf(size, b) > usualOf(size, a) ? b : a));
  const known = reports[kind] ?? [{ factor: 1 }];
  const factor = known.reduce((sum, report) => sum + report.factor, 0) / known.length;
  const tokens = usualTokens(size) * factor + hiddenIn(reports);
  return Math.min(whole(tokens), boundOf(reports, size));
}

function measureOf(all: readonly Reports[]): WindowMeasure {
  const rates = textKinds.map((kind) => {
    const known = all.flatMap((reports) => reports[kind] ?? []).filter(isPlausible);
    if (known.length === 0) return [kind, Math.min(most[kind], usual[kind] * unreported)] as const;
    // A report on few tokens is mostly about what a provider adds to them.
    const tokens = known.reduce((sum, report) => sum + report.tokens, 0);
    const factor = known.reduce((sum, report) => sum + report.factor * report.tokens, 0) / tokens;
    return [kind, Math.min(1, usual[kind] * factor * margin)] as const;
  });
  return {
    tokensOf: (size) =>
      whole(rates.reduce((sum, [kind, rate]) => sum + size[kind] * rate, size.framing)),
    hidden: whole(Math.max(...all.map(hiddenIn)) * margin),
  };
}

/** Whether a tokenizer can have counted so; some providers report only what was not cached. */
const isPlausible = ({ factor }: Report) => factor >= plausibleMin;

function withReport(reports: Reports, size: TextSize, reported: number): Reports {
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

const hiddenIn = ({ hidden }: Reports) => Math.max(...hidden);

const usualOf = (size: TextSize, kind: TextKind) => size[kind] * usual[kind];

function usualTokens(size: TextSize): number {
  return textKinds.reduce((sum, kind) => sum + usualOf(size, kind), size.framing);
}

/** Rounding errors of floating point must not add a token. */
function whole(tokens: number): number {
  return Math.ceil(tokens - 1e-6);
}
