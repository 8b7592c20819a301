const dollars = new Intl.NumberFormat('en', {
  style: 'currency',
  currency: 'USD',
  minimumFractionDigits: 2,
  maximumFractionDigits: 4,
});
const small = new Intl.NumberFormat('en', {
  style: 'currency',
  currency: 'USD',
  maximumSignificantDigits: 2,
  maximumFractionDigits: 9,
});

/** `$12.50`, `$0.0034`; `unknown` for an unknown amount, and `at least $0.01` where a part of it is unknown. */
export function moneyText(usd: number | null, isPartial = false): string {
  if (usd === null) return 'unknown';
  const text = usd > 0 && usd < 0.01 ? small.format(usd) : dollars.format(usd);
  return isPartial ? `at least ${text}` : text;
}
