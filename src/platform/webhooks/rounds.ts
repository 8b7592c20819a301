/** Rounds: entries by owner. Owners take turns, and the entries of one owner come in the order in which they were added. */
export class Rounds<Owner, Entry> {
  /** The owner whose turn is next comes first. */
  readonly #entries = new Map<Owner, Set<Entry>>();
  #size = 0;

  /** The number of entries. */
  get size(): number {
    return this.#size;
  }

  /** The owners of entries, in the order of their turns. */
  owners(): MapIterator<Owner> {
    return this.#entries.keys();
  }

  has(owner: Owner, entry: Entry): boolean {
    return this.#entries.get(owner)?.has(entry) === true;
  }

  hasEntriesOf(owner: Owner): boolean {
    return this.#entries.has(owner);
  }

  /** Adds an entry; a new owner has its turn after all others. */
  add(owner: Owner, entry: Entry): void {
    if (this.has(owner, entry)) return;
    const own = this.#entries.get(owner);
    if (own === undefined) this.#entries.set(owner, new Set([entry]));
    else own.add(entry);
    this.#size++;
  }

  delete(owner: Owner, entry: Entry): void {
    const own = this.#entries.get(owner);
    if (own?.delete(entry) !== true) return;
    this.#size--;
    if (own.size === 0) this.#entries.delete(owner);
  }

  /** Removes and returns the owner's first entry; the owner has its next turn after all others. */
  take(owner: Owner): Entry | undefined {
    const own = this.#entries.get(owner);
    if (own === undefined) return undefined;
    const [entry] = own as Iterable<Entry>;
    this.#entries.delete(owner);
    own.delete(entry as Entry);
    if (own.size > 0) this.#entries.set(owner, own);
    this.#size--;
    return entry;
  }

  clear(): void {
    this.#entries.clear();
    this.#size = 0;
  }
}
