/** Amounts of money are whole nano-dollars (a billionth of a US dollar), so that their sums are exact. */

const nanoPerUsd = 1_000_000_000;

/** Dollars, as clients read them. An amount has nine decimals at most, so the number is its exact decimal. */
export function usdOf(nano: number): number {
  return nano / nanoPerUsd;
}

export function usdOrNull(nano: number | null): number | null {
  return nano === null ? null : usdOf(nano);
}

export function nanoOf(usd: number): number {
  return Math.round(usd * nanoPerUsd);
}
