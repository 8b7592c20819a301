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

/** A part within another, and its memory changes, which the outer part gets too. */
export interface InnerPart {
  readonly part: RunPart;
  readonly changes: readonly MemoryChange[];
}

/** `name` leads to the part within `outer`. A step of the run's own code keeps the depth. */
export function innerPart(
  outer: RunPart,
  step: number,
  name: string,
  depth = outer.depth + 1,
): InnerPart {
  const changes: MemoryChange[] = [];
  const note = (change: MemoryChange) => {
    changes.push(change);
    outer.note(change);
  };
  return { part: { path: `${outer.path}/${name}`, depth, step, note }, changes };
}
