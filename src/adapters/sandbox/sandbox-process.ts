/**
 * A sandboxed process: imports one module and answers requests, one at a time, by calling the functions
 * that the module exports. It may read code and nothing else: no other file, network, environment or
 * program, and no code from strings. sandbox.ts starts it, sends requests, and kills it when an answer is
 * late. Requests and answers are JSON, so the process shares no objects with the parent.
 */
import { setImmediate as turnOfLoop } from 'node:timers/promises';

export interface SandboxRequest {
  /** Name of a function that the module exports. */
  readonly function: string;
  /** Its argument, a JSON value. */
  readonly input: unknown;
}

/** The returned value (absent for undefined), or the message of the thrown error. */
export type SandboxAnswer = { readonly value?: unknown } | { readonly error: string };

const messageCharsMax = 1_000;
/** Characters of an answer as JSON: more than the limit of a skill's output. */
const answerCharsMax = 8 * 1024 * 1024;

/** True when a promise of the current request was rejected without a handler. */
let hasUnhandledRejection = false;
process.on('unhandledRejection', () => {
  hasUnhandledRejection = true;
});
process.on('disconnect', () => process.exit());

const module: Record<string, unknown> = await import(process.argv[2] as string);

process.on('message', (request: SandboxRequest) => {
  answerRequest(request).then(
    (answer) => process.send?.(answer),
    () => process.exit(1),
  );
});
process.send?.('ready');

async function answerRequest(request: SandboxRequest): Promise<SandboxAnswer> {
  hasUnhandledRejection = false;
  const answer = await callFunction(request);
  // Microtasks that the function left behind run in this turn, so they count toward the deadline of
  // this request and not of the next one.
  await turnOfLoop();
  return hasUnhandledRejection ? { error: 'leaves work behind that fails' } : answer;
}

async function callFunction({ function: name, input }: SandboxRequest): Promise<SandboxAnswer> {
  try {
    const compute = module[name];
    if (typeof compute !== 'function') throw new Error(`There is no function ${name}`);
    const answer = { value: await compute(input) };
    if (JSON.stringify(answer).length > answerCharsMax) throw new Error('The result is too large');
    return answer;
  } catch (error) {
    return { error: describeError(error) };
  }
}

function describeError(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (message.includes('Maximum call stack size')) return 'The input is nested too deeply';
  return message.slice(0, messageCharsMax);
}
