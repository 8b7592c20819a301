/**
 * A map for values that come and go all the time, such as the runs under way. Use it where a value refers
 * to much and stays for milliseconds.
 *
 * A `Map` moves to a new table whenever deleted entries fill its table. The old table keeps its values and refers to the
 * new one. Once a single table is old enough for V8's old generation, every later table and all values that were in
 * it when it was left stay in memory until V8 marks the whole heap, although nothing uses them. Here each value is
 * in a cell that its removal empties, so only cells and keys stay.
 */
export class ShortLivedMap<K, V extends object> {
  readonly #cells = new Map<K, { value: V | undefined }>();

  get size(): number {
    return this.#cells.size;
  }

  has(key: K): boolean {
    return this.#cells.has(key);
  }

  get(key: K): V | undefined {
    return this.#cells.get(key)?.value;
  }

  set(key: K, value: V): void {
    const cell = this.#cells.get(key);
    if (cell === undefined) this.#cells.set(key, { value });
    else cell.value = value;
  }

  /** False when there is no such key. */
  delete(key: K): boolean {
    const cell = this.#cells.get(key);
    if (cell === undefined) return false;
    cell.value = undefined;
    return this.#cells.delete(key);
  }

  keys(): K[] {
    return [...this.#cells.keys()];
  }

  /** In the order in which their keys were set. */
  values(): V[] {
    return Array.from(this.#cells.values(), ({ value }) => value as V);
  }
}
