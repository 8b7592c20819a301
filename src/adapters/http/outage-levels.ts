/**
 * At which level a `503 service_unavailable` is logged. An outage refuses every request for the same cause, so each
 * cause is a warning once a minute. A refusal without a cause is a limit that the caller has reached.
 */

const againMs = 60_000;
/** Causes that are remembered: their texts may have an id in them. */
const causesMax = 100;

export class OutageLevels {
  readonly #warnedAt = new Map<string, number>();

  levelOf(cause: unknown, now: number = performance.now()): 'warn' | 'debug' {
    if (cause === undefined) return 'debug';
    const text = String(cause).slice(0, 200);
    const last = this.#warnedAt.get(text);
    if (last !== undefined && now - last < againMs) return 'debug';
    if (this.#warnedAt.size === causesMax) this.#warnedAt.clear();
    this.#warnedAt.set(text, now);
    return 'warn';
  }
}
