/**
 * Bounds what skills print. Beyond consoleBytesPerSecond a child drops the bytes before they
 * reach the pipe, so that a gigabyte of console output costs its writer's time only. Writes to the
 * file descriptors themselves are bounded by the parent alone.
 */
import { consoleBytesPerSecond } from './limits.ts';

const windowMs = 1_000;

/** Of bytes or messages, in each second. */
export class Budget {
  readonly #perSecond: number;
  readonly #onDropped: (count: number) => void;
  #windowStart = Number.NEGATIVE_INFINITY;
  #spent = 0;
  #dropped = 0;

  /** `onDropped` is called once a second while something is dropped. */
  constructor(perSecond: number, onDropped: (count: number) => void = () => {}) {
    this.#perSecond = perSecond;
    this.#onDropped = onDropped;
  }

  /** False once the second's budget is used up. */
  spend(count = 1): boolean {
    const now = performance.now();
    if (now - this.#windowStart >= windowMs) {
      this.#windowStart = now;
      this.#spent = 0;
    }
    this.#spent += count;
    if (this.#spent <= this.#perSecond) return true;
    // The only timer, and only while output is being dropped.
    if (this.#dropped === 0) setTimeout(() => this.#reportDropped(), windowMs).unref();
    this.#dropped += count;
    return false;
  }

  #reportDropped(): void {
    const count = this.#dropped;
    this.#dropped = 0;
    this.#onDropped(count);
  }
}

/** Takes what is printed to a stream; a text that it returns goes to the stream. */
export type Print = (stream: 'stdout' | 'stderr', text: string) => string | undefined;

/** Puts the budget, and `print` after it, before `process.stdout` and `process.stderr`; opens neither. */
export function limitConsole(onDropped: (bytes: number) => void, print: Print): void {
  const budget = new Budget(consoleBytesPerSecond, onDropped);
  for (const name of ['stdout', 'stderr'] as const) {
    const original = Object.getOwnPropertyDescriptor(process, name);
    let limited: NodeJS.WriteStream | undefined;
    Object.defineProperty(process, name, {
      configurable: true,
      enumerable: true,
      get() {
        limited ??= limitStream(
          original?.get?.call(process) as NodeJS.WriteStream,
          budget,
          (text) => print(name, text),
        );
        return limited;
      },
    });
  }
}

function limitStream(
  stream: NodeJS.WriteStream,
  budget: Budget,
  print: (text: string) => string | undefined,
): NodeJS.WriteStream {
  const write = stream.write.bind(stream) as (...parts: unknown[]) => boolean;
  const limited = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    const isWithin = budget.spend(chunk.length);
    if (isWithin) {
      const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
      const left = print(text);
      if (left !== undefined) return write(left === text ? chunk : left, ...rest);
    }
    const callback = rest.find((part) => typeof part === 'function');
    if (callback !== undefined) queueMicrotask(callback as () => void);
    return true;
  };
  stream.write = limited as typeof stream.write;
  return stream;
}
