/**
 * A sandboxed process: imports one module, answers orders one at a time by calling the functions
 * that the module exports. It may read code and nothing else: no other file, network, environment
 * or program, and no code from strings. sandbox.ts starts it, asks, and kills it when an answer is
 * late. Orders and answers are JSON, so nothing of the parent's memory comes in.
 */
import { setImmediate as turnOfLoop } from 'node:timers/promises';

export interface SandboxOrder {
  /** Name of a function that the module exports. */
  readonly function: string;
  /** What it is called with, as JSON carries it. */
  readonly input: unknown;
}

/** What the function returned (absent for undefined), or the message of what it threw. */
export type SandboxAnswer = { readonly value?: unknown } | { readonly error: string };

const messageCharsMax = 1_000;
/** Of one answer as JSON: more than any skill's output may have. */
const answerCharsMax = 8 * 1024 * 1024;

/** Whether the order under way has left a promise to fail that no code awaits. */
let hasStrayed = false;
process.on('unhandledRejection', () => {
  hasStrayed = true;
});
process.on('disconnect', () => process.exit());

const module: Record<string, unknown> = await import(process.argv[2] as string);

process.on('message', (order: SandboxOrder) => {
  answerTo(order).then(
    (answer) => process.send?.(answer),
    () => process.exit(1),
  );
});
process.send?.('ready');

async function answerTo(order: SandboxOrder): Promise<SandboxAnswer> {
  hasStrayed = false;
  const answer = await called(order);
  // Microtasks that the function has left run before this turn is over, so they count as this
  // order's time and not as the next one's.
  await turnOfLoop();
  return hasStrayed ? { error: 'leaves work behind that fails' } : answer;
}

async function called({ function: name, input }: SandboxOrder): Promise<SandboxAnswer> {
  try {
    const compute = module[name];
    if (typeof compute !== 'function') throw new Error(`There is no function ${name}`);
    const answer = { value: await compute(input) };
    if (JSON.stringify(answer).length > answerCharsMax) throw new Error('The result is too large');
    return answer;
  } catch (error) {
    return { error: described(error) };
  }
}

function described(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (message.includes('Maximum call stack size')) return 'The input is nested too deeply';
  return message.slice(0, messageCharsMax);
}
