/**
 * Makes the vectors of several texts in as few requests as the provider and the budget allow: a batch that is refused or
 * exceeds the budget is halved. A failure keeps the vectors made before it. A text counts as refused if the provider
 * repeatedly fails for it alone, so that it does not block the texts after it.
 */

import { createHash } from 'node:crypto';
import { TextsRefusedError } from '../../adapters/models/embeddings.ts';
import { ModelError } from '../../adapters/models/model.ts';
import { cutToBytes } from '../../kernel/cut-text.ts';
import type { EmbeddingRequests, Owning } from './request.ts';

/** Requests for the texts of one call; the others are made by the next one. */
const requestsMax = 40;
/** Failures of single-text requests after which a text gets no vector, and texts whose failures are counted. */
const failuresMax = 3;
const failuresKept = 1_000;
/** UTF-8 bytes to which a refused text is cut for a second try. */
const shortBytes = 1_000;
/** A probe that every model accepts: if it is refused, the refusal is not about the texts. */
const harmless = 'text';

/** A vector; null for a text that the model does not take; undefined for one that was not tried. */
export type Made = Float32Array | null | undefined;

export interface MadeTexts {
  readonly made: readonly Made[];
  /** Why it ended before all texts were tried; null if all were. */
  readonly stopped: ModelError | 'budget' | null;
}

interface Texts {
  readonly requests: EmbeddingRequests;
  readonly owning: Owning;
  readonly given: readonly string[];
  readonly made: Made[];
  /** Whether to send one text per request, because the provider failed for several. */
  readonly isOneByOne: boolean;
  /** Indexes of the refused texts. */
  readonly refused: Set<number>;
  readonly failures: TextFailures;
  /** The failure of a single text that is to be retried. */
  failure: ModelError | null;
  /** Requests so far. */
  count: number;
}

interface Making {
  /** Texts of a request. */
  readonly batch: number;
  readonly failures: TextFailures;
}

/** Failures of the provider for single texts. */
export class TextFailures {
  readonly #counts = new Map<string, number>();

  /** Counts a failure of a text; returns whether the text should get no vector. */
  failsOften({ organizationId }: Owning, text: string): boolean {
    const digest = createHash('sha256').update(`${organizationId}/${text}`).digest('base64');
    const count = (this.#counts.get(digest) ?? 0) + 1;
    if (this.#counts.size >= failuresKept) this.#counts.clear();
    if (count < failuresMax) this.#counts.set(digest, count);
    else this.#counts.delete(digest);
    return count >= failuresMax;
  }
}

/** Calls `mayGoOn` before each request but the first. */
export async function makeTexts(
  requests: EmbeddingRequests,
  owning: Owning,
  given: readonly string[],
  { batch, failures }: Making,
  mayGoOn: () => Promise<boolean>,
): Promise<MadeTexts> {
  const made: Made[] = given.map(() => undefined);
  const texts: Texts = {
    ...{ requests, owning, given, made, failures },
    isOneByOne: batch === 1,
    ...{ refused: new Set(), failure: null, count: 0 },
  };
  const ranges: Range[] = [];
  for (let from = 0; from < given.length; from += batch) {
    ranges.unshift({ from, to: Math.min(given.length, from + batch) });
  }
  let stopped: MadeTexts['stopped'] = null;
  try {
    for (let range = ranges.pop(); range !== undefined; range = ranges.pop()) {
      if (texts.count >= requestsMax || (texts.count > 0 && !(await mayGoOn()))) break;
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

/** Makes the vectors of a range; returns the parts that are still to be made, as a stack. */
async function makeRange(texts: Texts, { from, to }: Range): Promise<Range[] | 'budget'> {
  const { requests, owning, given, made, refused } = texts;
  const middle = Math.ceil((from + to) / 2);
  const halves = [
    { from: middle, to },
    { from, to: middle },
  ];
  try {
    texts.count += 1;
    const vectors = await requests.make(owning, given.slice(from, to), 'memory');
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
    else if (texts.failures.failsOften(texts.owning, given[from] ?? '')) made[from] = null;
    else texts.failure = short;
    return [];
  }
}

/** Whether a provider that failed for a text accepts another text, so that the text is at fault. */
async function isFaultOfText(
  { requests, owning, isOneByOne }: Texts,
  error: unknown,
): Promise<boolean> {
  return (
    isOneByOne && isFailure(error) && (await requests.make(owning, [harmless], 'memory')) !== null
  );
}

const isFailure = (error: unknown): error is ModelError =>
  error instanceof ModelError && error.fault === 'unavailable' && !error.isRateLimited;

/** The vector of the beginning of a text that was refused or failed; the error if that fails too. */
async function makeShort(
  texts: Texts,
  text: string,
  error: ModelError,
): Promise<Float32Array | ModelError | 'budget'> {
  const short = cutToBytes(text, shortBytes);
  if (short === text) return error;
  try {
    texts.count += 1;
    const vectors = await texts.requests.make(texts.owning, [short], 'memory');
    return vectors === null ? 'budget' : (vectors[0] ?? error);
  } catch (again) {
    if (again instanceof TextsRefusedError || isFailure(again)) return again;
    throw again;
  }
}

/** Marks refused texts as having no vector, but only if the provider has accepted another text. */
async function noteRefusals({ requests, owning, made, refused }: Texts): Promise<'budget' | null> {
  if (refused.size === 0) return null;
  if (!made.some((one) => one instanceof Float32Array)) {
    const taken = await requests.make(owning, [harmless], 'memory');
    if (taken === null) return 'budget';
  }
  for (const index of refused) made[index] = null;
  return null;
}
