/** Asks a module of the sandbox as the skills do, but with little processor time: endless tasks are dear. */
import { inSandbox } from '../../src/skills/catalog/_support/in-sandbox.ts';

export interface ShortTask {
  /** The file under `src`. */
  readonly module: string;
  readonly function: string;
  readonly input: unknown;
}

/** Rejects, as a skill would, when the task takes longer than 0.4 s of processor time. */
export function inShortSandbox(task: ShortTask): Promise<unknown> {
  return inSandbox({
    ...task,
    module: new URL(`../../src/${task.module}`, import.meta.url).href,
    signal: new AbortController().signal,
    timeoutMs: 400,
  });
}

export const tookTooLong = { message: 'This takes longer than 0.4 s', retryable: false };
