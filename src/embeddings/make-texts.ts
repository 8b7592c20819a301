/**
 * The vectors of several texts, in as few requests as the provider and the budget allow: a batch that is refused, or for
 * which the budget has no room, is halved. What is made is kept when a later request fails.
 */
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
  /** Places of those that were refused. */
  readonly refused: Set<number>;
  requests: number;
}

/** `mayGoOn` is asked before each request but the first. */
export async function makeTexts(
  state: RequestState,
  owning: Owning,
  given: readonly string[],
  { batch, mayGoOn }: { batch: number; mayGoOn: () => Promise<boolean> },
): Promise<MadeTexts> {
  const made: Made[] = given.map(() => undefined);
  const texts: Texts = { state, owning, given, made, refused: new Set(), requests: 0 };
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
    await noteRefusals(texts);
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
    if (!(error instanceof TextsRefusedError)) throw error;
    if (to - from > 1) return halves;
    const short = await makeShort(texts, given[from] ?? '');
    if (short === 'budget') return short;
    if (short === 'refused') refused.add(from);
    else made[from] = short;
    return [];
  }
}

/** The vector of the beginning of a refused text, which may be refused too. */
async function makeShort(texts: Texts, text: string): Promise<Float32Array | 'refused' | 'budget'> {
  const short = cut(text, shortBytes);
  if (short === text) return 'refused';
  try {
    texts.requests += 1;
    const vectors = await make(texts.state, texts.owning, [short], 'memory');
    return vectors === null ? 'budget' : (vectors[0] ?? 'refused');
  } catch (error) {
    if (error instanceof TextsRefusedError) return 'refused';
    throw error;
  }
}

/** Leaves refused texts to words, if the provider has taken another text; else it refuses for another reason. */
async function noteRefusals({ state, owning, made, refused }: Texts): Promise<void> {
  if (refused.size === 0) return;
  if (!made.some((one) => one instanceof Float32Array)) {
    const taken = await make(state, owning, [harmless], 'memory');
    if (taken === null) return;
  }
  for (const index of refused) made[index] = null;
}

/** The beginning of a text, in whole characters. */
export function cut(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) <= bytesMax) return text;
  return Buffer.from(text)
    .subarray(0, bytesMax)
    .toString('utf8')
    .replace(/\ufffd+$/, '');
}
