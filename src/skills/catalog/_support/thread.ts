/** The other side of in-thread.ts: what the thread does. */

import { parentPort, workerData } from 'node:worker_threads';

export interface ThreadOrder {
  readonly module: string;
  readonly function: string;
  readonly input: unknown;
}

/** What the function returned, or the message of what it threw. */
export type ThreadAnswer = { readonly result: unknown } | { readonly error: string };

const messageLengthMax = 1_000;

parentPort?.postMessage(await answerTo(workerData as ThreadOrder));

async function answerTo(order: ThreadOrder): Promise<ThreadAnswer> {
  try {
    const module: Record<string, unknown> = await import(order.module);
    const compute = module[order.function];
    if (typeof compute !== 'function') throw new Error(`There is no function ${order.function}`);
    return { result: await compute(order.input) };
  } catch (error) {
    return { error: described(error) };
  }
}

function described(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (message.includes('Maximum call stack size')) return 'The input is nested too deeply';
  return message.slice(0, messageLengthMax);
}
