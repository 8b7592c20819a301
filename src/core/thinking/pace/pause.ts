import { setTimeout as elapsed } from 'node:timers/promises';
import { stopped } from '../thinking-error.ts';

/** Waits; rejects with a ThinkingError once the run is stopped. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await elapsed(ms, undefined, { signal });
  } catch {
    throw stopped();
  }
}
