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

export interface Deadlines {
  /** The first byte of the answer has arrived. */
  begun(): void;
  stop(): void;
}

export function startDeadlines(
  { firstByteMs, timeoutMs }: TimeLimits,
  onFault: (fault: { readonly kind: 'silent' | 'late'; readonly ms: number }) => void,
): Deadlines {
  const after = (ms: number | undefined, kind: 'silent' | 'late') =>
    ms === undefined ? undefined : setTimeout(() => onFault({ kind, ms }), ms);
  const first = after(firstByteMs, 'silent');
  const last = after(timeoutMs, 'late');
  return {
    begun: () => clearTimeout(first),
    stop() {
      clearTimeout(first);
      clearTimeout(last);
    },
  };
}

export interface SilenceTimer {
  reset(): void;
  stop(): void;
}

/**
 * Calls `onSilence` when `reset` was not called for as long as `limit` says. Bytes that have arrived are
 * read first: this process may have been too busy to read them in time.
 */
export function startSilenceTimer(
  limit: () => number,
  onSilence: (ms: number) => void,
): SilenceTimer {
  let resets = 0;
  let ms = limit();
  const onTimeout = () => {
    const before = resets;
    setImmediate(() => {
      if (before === resets) onSilence(ms);
    });
  };
  let timer = setTimeout(onTimeout, ms);
  return {
    reset() {
      resets += 1;
      const now = limit();
      if (now === ms) return void timer.refresh();
      ms = now;
      clearTimeout(timer);
      timer = setTimeout(onTimeout, ms);
    },
    stop: () => clearTimeout(timer),
  };
}
