/** The prices that an operator sets, as `MODEL_PRICES` has them: JSON, or the path of a file with it. Pure. */
import { isObject } from '../../kernel/json.ts';
import { nanoOf } from '../../kernel/money.ts';
import type { ModelPrice } from './prices.ts';

const entriesMax = 10_000;
/** Dollars for a million tokens. */
const rateMax = 1_000_000;
const fields = ['input', 'cache_read', 'cache_write', 'output', 'reasoning'] as const;
const names: ReadonlySet<string> = new Set(['model', 'from', ...fields]);

/** The prices, or the fault of the text. */
export function readOperatorPrices(
  text: string,
): { readonly prices: readonly ModelPrice[] } | { readonly fault: string } {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch (error) {
    return { fault: `it is not JSON: ${(error as Error).message}` };
  }
  if (!Array.isArray(list)) return { fault: 'it is not a list of prices' };
  if (list.length > entriesMax) return { fault: `it has more than ${entriesMax} prices` };
  const prices: ModelPrice[] = [];
  const seen = new Set<string>();
  for (const [i, entry] of list.entries()) {
    const fault = faultOf(entry);
    if (fault !== null) return { fault: `the price ${i + 1} ${fault}` };
    const one = priceOf(entry as Entry);
    const key = `${one.model} ${one.price.from}`;
    if (seen.has(key)) return { fault: `the price ${i + 1} is a second one of ${key}` };
    seen.add(key);
    prices.push(one);
  }
  return { prices };
}

type Entry = { model: string; from: string; input: number; output: number } & Partial<
  Record<(typeof fields)[number], number>
>;

function faultOf(entry: unknown): string | null {
  if (!isObject(entry)) return 'is not an object';
  const unknown = Object.keys(entry).find((name) => !names.has(name));
  if (unknown !== undefined) return `has a field ${unknown}, which there is not`;
  const { model, from } = entry;
  if (typeof model !== 'string' || !/^[a-z][a-z0-9-]*\/[^\s*]*\*?$/.test(model)) {
    return 'needs a model, as provider/model or provider/*';
  }
  if (typeof from !== 'string' || !isDay(from)) return 'needs from, a day such as 2026-01-31';
  for (const name of fields) {
    const value = entry[name];
    if (value === undefined && name !== 'input' && name !== 'output') continue;
    if (typeof value !== 'number' || !(value >= 0 && value <= rateMax)) {
      return `needs ${name}, in dollars for a million tokens`;
    }
  }
  return null;
}

function priceOf({ model, from, input, output, ...more }: Entry): ModelPrice {
  const { cache_read = input, cache_write = input, reasoning = output } = more;
  const usd = { input, cache_read, cache_write, output, reasoning };
  const nano = Object.fromEntries(fields.map((name) => [name, nanoOf(usd[name])]));
  return { model, price: { from, source: 'operator', ...(nano as typeof usd) } };
}

function isDay(text: string): boolean {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN;
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text);
}
