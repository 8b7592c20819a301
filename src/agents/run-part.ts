/**
 * A part of a run: the run itself, or a tool call within it, with its own path, depth and memory
 * changes. Parts nest, because a tool may call models too.
 */
import type { MemoryChange } from '../memories/run-memory.ts';

export interface RunPart {
  /** The tool calls that lead to this part; empty for the run itself. The same in every attempt. */
  readonly path: string;
  /** 0 for the run itself. */
  readonly depth: number;
  /** The number of this part's step, null for the run itself. The same in every attempt. */
  readonly step: number | null;
  /** Records a change of the agent's memory by this part, or by a part within it. */
  note(change: MemoryChange): void;
}

/** The run itself. It records no memory changes, because a repeated attempt makes them again. */
export const wholeRun: RunPart = { path: '', depth: 0, step: null, note() {} };

/** The part of a tool call, whose step is `step`. Its memory changes are added to `changes`. */
export function toolPart(
  parent: RunPart,
  step: number,
  callId: string,
  changes: MemoryChange[],
): RunPart {
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
