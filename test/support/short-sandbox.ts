/** Asks a module of the sandbox as the skills do, but with little processor time: endless tasks are dear. */
import { inSandbox } from '../../src/core/skills/catalog/_support/in-sandbox.ts';
import { SkillError } from '../../src/core/skills/definition.ts';

export interface ShortTask {
  /** The file under `src`. */
  readonly module: string;
  readonly function: string;
  readonly input: unknown;
}

/** Rejects, as a skill would, when the task takes longer than 0.4 s of processor time. */
export function inShortSandbox(task: ShortTask): Promise<unknown> {
  return decided(() =>
    inSandbox({
      ...task,
      module: new URL(`../../src/${task.module}`, import.meta.url).href,
      signal: new AbortController().signal,
      timeoutMs: 400,
    }),
  );
}

/**
 * What comes of a task that takes too long. A busy machine may give it less of the processor than it is allowed, which
 * says nothing of the task: it is tried again, as the platform would.
 */
export async function decided<Result>(ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    const isHeldUp = error instanceof SkillError && /too busy/.test(error.message);
    if (!isHeldUp) throw error;
    return await decided(ask);
  }
}

export const tookTooLong = { message: 'This takes longer than 0.4 s', retryable: false };
