/**
 * Prices of tokens, and what calls cost. Amounts are whole nano-dollars (a billionth of a US dollar), so that
 * sums are exact. Pure.
 */
import { nanoOf, usdOf } from '../kernel/money.ts';
import type { Usage } from './model.ts';

/** Nano-dollars for a million tokens of each kind. */
export interface Rates {
  /** Of a prompt, neither read from a cache nor written to it. */
  readonly input: number;
  readonly cache_read: number;
  readonly cache_write: number;
  /** Of an answer, without its reasoning. */
  readonly output: number;
  readonly reasoning: number;
}

/** The prices of a model's tokens from a day on. */
export interface Price extends Rates {
  /** The first day, in UTC, `YYYY-MM-DD`. */
  readonly from: string;
  readonly source: 'built-in' | 'operator';
}

const tokensOfRate = 1_000_000n;

/** Amounts of nano-dollars for a million tokens; a rate may be larger than the safe integers allow for sums. */
const sumOf = (parts: readonly (readonly [tokens: number, rate: number])[]) =>
  parts.reduce((sum, [tokens, rate]) => sum + BigInt(tokens) * BigInt(rate), 0n);
/** A part of a nano-dollar counts as a whole one. */
const whole = (amount: bigint) => Number((amount + tokensOfRate - 1n) / tokensOfRate);

/** The cost of the tokens that were reported; null where none was. */
export function costOf(usage: Usage, price: Rates): number | null {
  const { prompt, completion, cacheRead = 0, cacheWrite = 0, reasoning = 0 } = usage;
  if (prompt === null && completion === null) return null;
  const input = prompt === null ? 0 : prompt - cacheRead - cacheWrite;
  const output = completion === null ? 0 : completion - reasoning;
  return whole(
    sumOf([
      [input, price.input],
      [prompt === null ? 0 : cacheRead, price.cache_read],
      [prompt === null ? 0 : cacheWrite, price.cache_write],
      [output, price.output],
      [completion === null ? 0 : reasoning, price.reasoning],
    ]),
  );
}

/** The most that a call of so many tokens can cost, whatever is cached or reasoning. */
export function mostCostOf(
  { prompt, output }: { prompt: number; output: number },
  price: Rates,
): number {
  return whole(
    sumOf([
      [prompt, dearestInput(price)],
      [output, dearestOutput(price)],
    ]),
  );
}

/** The most tokens of an answer with which a call costs at most `nano`; negative where its prompt costs more. */
export function outputWithin(nano: number, prompt: number, price: Rates): number {
  const left = BigInt(nano) * tokensOfRate - sumOf([[prompt, dearestInput(price)]]);
  const rate = BigInt(dearestOutput(price));
  if (left < 0n) return -1;
  return rate === 0n ? Number.MAX_SAFE_INTEGER : Number(left / rate);
}

const dearestInput = ({ input, cache_read, cache_write }: Rates) =>
  Math.max(input, cache_read, cache_write);
const dearestOutput = ({ output, reasoning }: Rates) => Math.max(output, reasoning);

/** A price as a step records it and clients read it: dollars for a million tokens. */
export type PriceBody = Price;

export function priceBodyOf({ from, source, ...rates }: Price): PriceBody {
  return { from, source, ...mapped(rates, usdOf) };
}

export function priceOfBody({ from, source, ...rates }: PriceBody): Price {
  return { from, source, ...mapped(rates, nanoOf) };
}

function mapped(rates: Rates, by: (amount: number) => number): Rates {
  const { input, cache_read, cache_write, output, reasoning } = rates;
  return {
    input: by(input),
    cache_read: by(cache_read),
    cache_write: by(cache_write),
    output: by(output),
    reasoning: by(reasoning),
  };
}
