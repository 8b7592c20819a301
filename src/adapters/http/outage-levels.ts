/**
 * At which level a `503 service_unavailable` is logged. An outage refuses every request for the same cause, so each
 * cause is a warning once a minute. A refusal without a cause is a limit that the caller has reached.
 */

const againMs = 60_000;
/** Causes that are remembered: their texts may have an id in them. */
const causesMax = 100;

export function createOutageLevels(now: () => number) {
  const warnedAt = new Map<string, number>();
  return (cause: unknown): 'warn' | 'debug' => {
    if (cause === undefined) return 'debug';
    const text = String(cause).slice(0, 200);
    const last = warnedAt.get(text);
    if (last !== undefined && now() - last < againMs) return 'debug';
    if (warnedAt.size === causesMax) warnedAt.clear();
    warnedAt.set(text, now());
    return 'warn';
  };
}
