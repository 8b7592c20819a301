import type { MemoryChange } from './run-memory.ts';

/** The memory changes of a part of a run, which the parts around it note as well. */
export class NotedChanges {
  readonly list: MemoryChange[] = [];
  readonly #outer: NotedChanges | null;

  constructor(outer: NotedChanges | null) {
    this.#outer = outer;
  }

  note(...changes: readonly MemoryChange[]): void {
    this.list.push(...changes);
    this.#outer?.note(...changes);
  }
}
