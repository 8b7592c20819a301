import type { MemoryChange } from './run-memory.ts';

/** The memory changes of a part of a run, which the parts around it have as well. */
export class PartChanges {
  readonly list: MemoryChange[] = [];
  readonly #outer: PartChanges | null;

  constructor(outer: PartChanges | null) {
    this.#outer = outer;
  }

  add(...changes: readonly MemoryChange[]): void {
    this.list.push(...changes);
    this.#outer?.add(...changes);
  }
}
