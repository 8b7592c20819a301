/**
 * Prices of tokens, and what calls cost. Amounts are whole nano-dollars (a billionth of a US dollar), so that
 * sums are exact. Pure.
 */
import { nanoOf, usdOf } from '../../kernel/money.ts';
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

/** Rates, with higher ones for all tokens of a call with a long prompt if the provider has them. */
export interface Tariff extends Rates {
  readonly long_prompts?: LongPrompts;
}

interface LongPrompts extends Rates {
  /** Tokens of a prompt beyond which it is a long one. */
  readonly over: number;
}

/** The prices of a model's tokens from a day on. */
export interface Price extends Tariff {
  /** The first day, in UTC, `YYYY-MM-DD`. */
  readonly from: string;
  readonly source: 'built-in' | 'operator';
}

const tokensOfRate = 1_000_000n;

/** Amounts of nano-dollars for a million tokens; a rate may be larger than the safe integers allow for sums. */
const sumOf = (parts: readonly (readonly [tokens: number, rate: number])[]) =>
  parts.reduce((sum, [tokens, rate]) => sum + BigInt(tokens) * BigInt(rate), 0n);
/** Rounded up to a whole nano-dollar. */
const whole = (amount: bigint) => Number((amount + tokensOfRate - 1n) / tokensOfRate);

/** The rates of a call whose prompt has so many tokens. */
export function ratesFor(tariff: Tariff, prompt: number): Rates {
  const { long_prompts: long } = tariff;
  return long !== undefined && prompt > long.over ? long : tariff;
}

/** The cost of the tokens that were reported; null where none was. */
export function costOf(usage: Usage, tariff: Tariff): number | null {
  const { prompt, completion, cacheRead = 0, cacheWrite = 0, reasoning = 0 } = usage;
  const price = ratesFor(tariff, prompt ?? 0);
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
  tariff: Tariff,
): number {
  const price = ratesFor(tariff, prompt);
  return whole(
    sumOf([
      [prompt, dearestInput(price)],
      [output, dearestOutput(price)],
    ]),
  );
}

/** The most output tokens with which a call costs at most `nano`; negative if the prompt alone costs more. */
export function outputWithin(nano: number, prompt: number, tariff: Tariff): number {
  const price = ratesFor(tariff, prompt);
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

export function priceBodyOf(price: Price): PriceBody {
  return converted(price, usdOf);
}

export function priceOfBody(body: PriceBody): Price {
  return converted(body, nanoOf);
}

function converted({ from, source, long_prompts: long, ...rates }: Price, by: Conversion): Price {
  const more = long && { long_prompts: { over: long.over, ...mapped(long, by) } };
  return { from, source, ...mapped(rates, by), ...more };
}

type Conversion = (amount: number) => number;

function mapped(rates: Rates, by: Conversion): Rates {
  const { input, cache_read, cache_write, output, reasoning } = rates;
  return {
    input: by(input),
    cache_read: by(cache_read),
    cache_write: by(cache_write),
    output: by(output),
    reasoning: by(reasoning),
  };
}
