/** The slots of a consumer: how many rows it handles at a time, and which ones. */

import { once } from './once.ts';

export class Slots {
  readonly #count: number;
  readonly #rows = new Set<string>();
  /** Rows that were hinted at again while they were in a slot. */
  readonly #again = new Set<string>();
  #reserved = 0;
  #yielded = 0;
  #isClosed = false;
  /** Of those that wait for a slot; made by the first one, because mostly none waits. */
  #freed: PromiseWithResolvers<void> | undefined;

  constructor(count: number) {
    this.#count = count;
  }

  isFree(): boolean {
    return !this.#isClosed && this.#rows.size + this.#reserved < this.#count + this.#yielded;
  }

  /** Waits for a free slot and reserves it; resolves to false when the slots were closed. */
  async reserve(): Promise<boolean> {
    while (!this.#isClosed) {
      if (this.reserveNow()) return true;
      this.#freed ??= Promise.withResolvers();
      await this.#freed.promise;
    }
    return false;
  }

  /** Reserves a slot if one is free. */
  reserveNow(): boolean {
    if (!this.isFree()) return false;
    this.#reserved++;
    return true;
  }

  /** Gives a reserved slot back. */
  release(): void {
    this.#reserved--;
    this.#wakeWaiting();
  }

  /** Puts a row in a reserved slot; false, and the slot is released, when the row has one already. */
  occupy(id: string): boolean {
    this.#reserved--;
    const isNew = !this.#rows.has(id);
    if (isNew) this.#rows.add(id);
    else {
      this.#again.add(id);
      this.#wakeWaiting();
    }
    return isNew;
  }

  /** Frees the slot of a row; true when `occupy` was called for that row meanwhile. */
  leave(id: string): boolean {
    this.#rows.delete(id);
    this.#wakeWaiting();
    return this.#again.delete(id);
  }

  /** One slot more until the returned function (resume) is called. */
  yieldOne(): () => void {
    this.#yielded++;
    this.#wakeWaiting();
    return once(() => {
      this.#yielded--;
    });
  }

  /** Refuses every further reservation, the waiting ones too. */
  close(): void {
    this.#isClosed = true;
    this.#wakeWaiting();
  }

  #wakeWaiting(): void {
    this.#freed?.resolve();
    this.#freed = undefined;
  }
}
