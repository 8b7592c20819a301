/** Bounds the time of one call: its silence, its first byte, its end. */

/** How long a provider may send nothing, in milliseconds. */
export interface SilenceLimits {
  /** Before the first part of the answer: a long prompt takes time. */
  readonly firstTokenMs: number;
  /** Between two parts of an answer. */
  readonly betweenMs: number;
  /** How long it may send keep-alives alone, before the answer or within it. */
  readonly keepAliveMs: number;
}

/** How long a call may take, in milliseconds. */
export interface TimeLimits extends SilenceLimits {
  /** Until the first byte of the answer; the head of the response, comments and pings do not count. */
  readonly firstByteMs?: number | undefined;
  /** Until its end. */
  readonly timeoutMs?: number | undefined;
}

/** The ends of a call's time. */
export class Deadlines {
  readonly #first: NodeJS.Timeout | undefined;
  readonly #last: NodeJS.Timeout | undefined;

  constructor(
    { firstByteMs, timeoutMs }: TimeLimits,
    onFault: (fault: { readonly kind: 'silent' | 'late'; readonly ms: number }) => void,
  ) {
    const after = (ms: number | undefined, kind: 'silent' | 'late') =>
      ms === undefined ? undefined : setTimeout(() => onFault({ kind, ms }), ms);
    this.#first = after(firstByteMs, 'silent');
    this.#last = after(timeoutMs, 'late');
  }

  /** The first byte of the answer has arrived. */
  begun(): void {
    clearTimeout(this.#first);
  }

  stop(): void {
    clearTimeout(this.#first);
    clearTimeout(this.#last);
  }
}

/**
 * Calls `onSilence` when `reset` was not called for as long as `limit` says. Bytes that have arrived are
 * read first: this process may have been too busy to read them in time.
 */
export class SilenceTimer {
  readonly #limit: () => number;
  readonly #onTimeout: () => void;
  #resets = 0;
  #ms: number;
  #timer: NodeJS.Timeout;

  constructor(limit: () => number, onSilence: (ms: number) => void) {
    this.#limit = limit;
    this.#ms = limit();
    this.#onTimeout = () => {
      const before = this.#resets;
      setImmediate(() => {
        if (before === this.#resets) onSilence(this.#ms);
      });
    };
    this.#timer = setTimeout(this.#onTimeout, this.#ms);
  }

  reset(): void {
    this.#resets += 1;
    const now = this.#limit();
    if (now === this.#ms) {
      this.#timer.refresh();
      return;
    }
    this.#ms = now;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#onTimeout, now);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
