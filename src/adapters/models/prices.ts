/**
 * Which price a model has at a moment: the operator's, or else the built-in one; undefined where neither knows it.
 * The price of a call is that of its beginning, and is recorded with it, so that a later change of a price does
 * not change what has been spent.
 */
import { timestamp } from '../../kernel/clock.ts';
import { nanoOf } from '../../kernel/money.ts';
import { priceLines } from './model-table.ts';
import type { Price, Rates } from './price.ts';

/** The price of `model` (`provider/name`) from a day on. A `*` at its end stands for any rest. */
export interface ModelPrice {
  readonly model: string;
  readonly price: Price;
}

const builtIn: readonly ModelPrice[] = priceLines.map(
  ([model, from, input, cacheRead, cacheWrite, output, long]) => {
    const ratesTimes = (times: { readonly input: number; readonly output: number }): Rates => ({
      input: nanoOf(input * times.input),
      cache_read: nanoOf(cacheRead * times.input),
      cache_write: nanoOf(cacheWrite * times.input),
      output: nanoOf(output * times.output),
      reasoning: nanoOf(output * times.output),
    });
    const more = long && { long_prompts: { over: long.over, ...ratesTimes(long) } };
    return {
      model,
      price: { from, source: 'built-in', ...ratesTimes({ input: 1, output: 1 }), ...more },
    };
  },
);

/** The prices of an installation. */
export class Prices {
  readonly #operators: readonly ModelPrice[];
  readonly #ofModels = new Map<string, readonly (readonly Price[])[]>();

  constructor(operators: readonly ModelPrice[]) {
    this.#operators = operators;
  }

  /** The price of a call that begins at `now`. */
  at(model: string, now: number): Price | undefined {
    const day = timestamp(now).slice(0, 10);
    let lists = this.#ofModels.get(model);
    if (lists === undefined) {
      lists = listsOf(model, this.#operators);
      if (this.#ofModels.size >= modelsMax) this.#ofModels.clear();
      this.#ofModels.set(model, lists);
    }
    for (const prices of lists) {
      const price = prices.find(({ from }) => from <= day);
      if (price !== undefined) return price;
    }
    return undefined;
  }
}

/** Names in memory; a skill cannot choose its model, so there are few. */
const modelsMax = 1_000;

/** The prices that a model may have, the latest first, in lists of which the first with a price counts. */
function listsOf(model: string, operators: readonly ModelPrice[]): (readonly Price[])[] {
  const latestFirst = (some: readonly ModelPrice[]) =>
    some.map(({ price }) => price).sort((a, b) => (a.from < b.from ? 1 : -1));
  const exact = operators.filter((one) => one.model === model);
  const patterns = operators
    .filter((one) => one.model.endsWith('*') && model.startsWith(one.model.slice(0, -1)))
    .map((one) => one.model);
  const longestFirst = [...new Set(patterns)].sort((a, b) => b.length - a.length);
  const known = builtIn.filter((one) => one.model === model);
  return [
    exact,
    ...longestFirst.map((pattern) => operators.filter((one) => one.model === pattern)),
    known.length > 0 ? known : builtIn.filter((one) => one.model === withoutDate(model)),
  ].map(latestFirst);
}

/** A model's name without the date of its release, with which it costs the same. */
function withoutDate(model: string): string {
  return model.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$/, '');
}
