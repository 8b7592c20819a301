/**
 * A part of a run: the run itself, or a tool call or a guard within it, with its own path, depth and memory
 * changes. Parts nest, because a tool may call models too.
 */
import { PartChanges } from '../memories/part-changes.ts';

export interface RunPart {
  /** The tool calls that lead to this part; empty for the run itself. The same in every attempt. */
  readonly path: string;
  /** 0 for the run itself. */
  readonly depth: number;
  /** The number of this part's step, null for the run itself. The same in every attempt. */
  readonly step: number | null;
  /** Of the agent's memory, by this part and the parts within it. Null for the run itself: a repeated attempt makes them again. */
  readonly changes: PartChanges | null;
  /** Whether it is within a guard, which no guards watch. */
  readonly isGuard: boolean;
}

/** A part within another. */
export interface InnerPart extends RunPart {
  readonly changes: PartChanges;
}

export const wholeRun: RunPart = { path: '', depth: 0, step: null, changes: null, isGuard: false };

/** `name` leads to the part within `outer`. A step of the run's own code keeps the depth. */
export function innerPart(
  outer: RunPart,
  step: number,
  name: string,
  depth = outer.depth + 1,
): InnerPart {
  const { path, changes, isGuard } = outer;
  return { path: `${path}/${name}`, depth, step, changes: new PartChanges(changes), isGuard };
}

/** The part that a guard is. */
export function guardPart(outer: RunPart, step: number, name: string): InnerPart {
  return { ...innerPart(outer, step, name), isGuard: true };
}
