/**
 * A part of a run: the run itself, or a tool in it, with what belongs to it alone. Parts nest, for a
 * tool may think too.
 */
import type { MemoryChange } from '../memories/run-memory.ts';

export interface Scope {
  /** Empty for the run itself; else which tool calls lead here. The same in every attempt. */
  readonly path: string;
  /** 0 for the run itself. */
  readonly depth: number;
  /** The step that this part is, null for the run itself. The same in every attempt. */
  readonly step: number | null;
  /** Takes down what this part, or one inside it, did to the agent's memory. */
  note(change: MemoryChange): void;
}

/** The run itself: what it does to the memory, it does again when it is repeated. */
export const runScope: Scope = { path: '', depth: 0, step: null, note() {} };

/** The part that the tool call of `step` is; `changes` gets what it does to the memory. */
export function childScope(
  parent: Scope,
  step: number,
  callId: string,
  changes: MemoryChange[],
): Scope {
  return {
    path: `${parent.path}/${callId}`,
    depth: parent.depth + 1,
    step,
    note(change) {
      changes.push(change);
      parent.note(change);
    },
  };
}
