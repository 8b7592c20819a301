/**
 * The vectors of several texts, in as few requests as the provider and the budget allow: a batch that is refused, or that
 * needs too much of the budget, is halved. What is made is kept when a later request fails. A text with which the
 * provider fails again and again, and no other, is refused too, or it would hold up all texts behind it.
 */
import { cutToBytes } from '../kernel/cut-text.ts';
import { TextsRefusedError } from '../models/embeddings.ts';
import { ModelError } from '../models/model.ts';
import { make, type Owning, type RequestState } from './request.ts';

/** Requests for the texts of one call; the others are made by the next one. */
const requestsMax = 40;
/** UTF-8 bytes of a text that was refused, where it is tried again. */
const shortBytes = 1_000;
/** A text that no model refuses: where it is refused too, the provider refuses something else. */
const harmless = 'text';

/** A vector; null for a text that the model does not take; undefined for one that was not tried. */
export type Made = Float32Array | null | undefined;

export interface MadeTexts {
  readonly made: readonly Made[];
  /** What ended it before all texts were tried. */
  readonly stopped: ModelError | 'budget' | null;
}

interface Texts {
  readonly state: RequestState;
  readonly owning: Owning;
  readonly given: readonly string[];
  readonly made: Made[];
  /** Whether the provider has failed with several at once until it gets one a request. */
  readonly isOneByOne: boolean;
  /** Places of those that were refused. */
  readonly refused: Set<number>;
  /** Whether the provider fails with a text alone often enough to do without its vector. */
  readonly failsOften: (text: string) => boolean;
  /** Of a text alone that is to be tried again. */
  failure: ModelError | null;
  requests: number;
}

interface Making {
  /** Texts of a request. */
  readonly batch: number;
  /** Asked before each request but the first. */
  readonly mayGoOn: () => Promise<boolean>;
  readonly failsOften: Texts['failsOften'];
}

export async function makeTexts(
  state: RequestState,
  owning: Owning,
  given: readonly string[],
  { batch, mayGoOn, failsOften }: Making,
): Promise<MadeTexts> {
  const made: Made[] = given.map(() => undefined);
  const texts: Texts = {
    ...{ state, owning, given, made, failsOften },
    isOneByOne: batch === 1,
    ...{ refused: new Set(), failure: null, requests: 0 },
  };
  const ranges: Range[] = [];
  for (let from = 0; from < given.length; from += batch) {
    ranges.unshift({ from, to: Math.min(given.length, from + batch) });
  }
  let stopped: MadeTexts['stopped'] = null;
  try {
    for (let range = ranges.pop(); range !== undefined; range = ranges.pop()) {
      if (texts.requests >= requestsMax || (texts.requests > 0 && !(await mayGoOn()))) break;
      const halves = await makeRange(texts, range);
      if (halves === 'budget') {
        stopped = 'budget';
        break;
      }
      ranges.push(...halves);
    }
    const refusals = await noteRefusals(texts);
    stopped ??= refusals ?? texts.failure;
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    stopped = error;
  }
  return { made, stopped };
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/** The parts that are still to be made; the first half comes last. */
async function makeRange(texts: Texts, { from, to }: Range): Promise<Range[] | 'budget'> {
  const { state, owning, given, made, refused } = texts;
  const middle = Math.ceil((from + to) / 2);
  const halves = [
    { from: middle, to },
    { from, to: middle },
  ];
  try {
    texts.requests += 1;
    const vectors = await make(state, owning, given.slice(from, to), 'memory');
    if (vectors === null) return to - from > 1 ? halves : 'budget';
    for (const [i, vector] of vectors.entries()) made[from + i] = vector;
    return [];
  } catch (error) {
    const isRefused = error instanceof TextsRefusedError;
    if (to - from > 1) {
      if (!isRefused) throw error;
      return halves;
    }
    if (!isRefused && !(await isFaultOfText(texts, error))) throw error;
    const short = await makeShort(texts, given[from] ?? '', error as ModelError);
    if (short === 'budget') return short;
    if (short instanceof Float32Array) made[from] = short;
    else if (short instanceof TextsRefusedError) refused.add(from);
    else if (texts.failsOften(given[from] ?? '')) made[from] = null;
    else texts.failure = short;
    return [];
  }
}

/** Whether a provider that has failed with a text takes another one: it is not out of order then. */
async function isFaultOfText(
  { state, owning, isOneByOne }: Texts,
  error: unknown,
): Promise<boolean> {
  return (
    isOneByOne && isFailure(error) && (await make(state, owning, [harmless], 'memory')) !== null
  );
}

const isFailure = (error: unknown): error is ModelError =>
  error instanceof ModelError && error.fault === 'unavailable' && !error.isRateLimited;

/** The vector of the beginning of a text that was refused or failed; the error where that is, too. */
async function makeShort(
  texts: Texts,
  text: string,
  error: ModelError,
): Promise<Float32Array | ModelError | 'budget'> {
  const short = cutToBytes(text, shortBytes);
  if (short === text) return error;
  try {
    texts.requests += 1;
    const vectors = await make(texts.state, texts.owning, [short], 'memory');
    return vectors === null ? 'budget' : (vectors[0] ?? error);
  } catch (again) {
    if (again instanceof TextsRefusedError || isFailure(again)) return again;
    throw again;
  }
}

/** Leaves refused texts to words, if the provider has taken another text; else it refuses for another reason. */
async function noteRefusals({ state, owning, made, refused }: Texts): Promise<'budget' | null> {
  if (refused.size === 0) return null;
  if (!made.some((one) => one instanceof Float32Array)) {
    const taken = await make(state, owning, [harmless], 'memory');
    if (taken === null) return 'budget';
  }
  for (const index of refused) made[index] = null;
  return null;
}
