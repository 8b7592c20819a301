/**
 * Bounds what skills print. Beyond consoleBytesPerSecond a child drops the bytes before they
 * reach the pipe, so that a gigabyte of console output costs its writer's time only. Writes to the
 * file descriptors themselves are bounded by the parent alone.
 */
import { consoleBytesPerSecond } from './limits.ts';

const windowMs = 1_000;

export interface ByteBudget {
  /** Counts bytes; false once the second's budget is used up. */
  spend(bytes: number): boolean;
}

export function createByteBudget(onDropped: (bytes: number) => void): ByteBudget {
  let windowStart = Number.NEGATIVE_INFINITY;
  let spent = 0;
  let dropped = 0;
  const tell = (): void => {
    const bytes = dropped;
    dropped = 0;
    onDropped(bytes);
  };
  return {
    spend(bytes) {
      const now = performance.now();
      if (now - windowStart >= windowMs) {
        windowStart = now;
        spent = 0;
      }
      spent += bytes;
      if (spent <= consoleBytesPerSecond) return true;
      // The only timer, and only while output is being dropped.
      if (dropped === 0) setTimeout(tell, windowMs).unref();
      dropped += bytes;
      return false;
    },
  };
}

/** Takes what is printed to a stream; a text that it returns goes to the stream. */
export type Print = (stream: 'stdout' | 'stderr', text: string) => string | undefined;

/** Puts the budget, and `print` after it, before `process.stdout` and `process.stderr`; opens neither. */
export function limitConsole(onDropped: (bytes: number) => void, print: Print): void {
  const budget = createByteBudget(onDropped);
  for (const name of ['stdout', 'stderr'] as const) {
    const original = Object.getOwnPropertyDescriptor(process, name);
    let limited: NodeJS.WriteStream | undefined;
    Object.defineProperty(process, name, {
      configurable: true,
      enumerable: true,
      get() {
        limited ??= withBudget(original?.get?.call(process) as NodeJS.WriteStream, {
          spend: budget.spend,
          print: (text) => print(name, text),
        });
        return limited;
      },
    });
  }
}

function withBudget(
  stream: NodeJS.WriteStream,
  {
    spend,
    print,
  }: { spend: (bytes: number) => boolean; print: (text: string) => string | undefined },
): NodeJS.WriteStream {
  const write = stream.write.bind(stream) as (...parts: unknown[]) => boolean;
  const limited = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    const isWithin = spend(chunk.length);
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
