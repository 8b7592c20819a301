import type { EgressResponse } from './guarded-fetch.ts';

/** The longest wait that a service can ask for. */
const maxMs = 3_600_000;

/** Milliseconds for which a service asks to be left alone (`Retry-After`), an hour at most; null where it names no time. */
export function retryAfterOf({ headers }: EgressResponse, now: number): number | null {
  const [text = ''] = [headers['retry-after'] ?? []].flat().map((value) => value.trim());
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), maxMs) : null;
}
