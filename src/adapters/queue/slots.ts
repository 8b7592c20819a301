/** The slots of a consumer: how many rows it handles at a time, and which ones. */

import { once } from './once.ts';

export interface Slots {
  /** Waits for a free slot and reserves it; resolves to false when the slots were closed. */
  reserve(): Promise<boolean>;
  /** Reserves a slot if one is free. */
  reserveNow(): boolean;
  /** Gives a reserved slot back. */
  release(): void;
  /** Puts a row in a reserved slot; false, and the slot is released, when the row has one already. */
  occupy(id: string): boolean;
  /** Frees the slot of a row; true when `occupy` was called for that row meanwhile. */
  leave(id: string): boolean;
  /** One slot more until the returned function (resume) is called. */
  yieldOne(): () => void;
  isFree(): boolean;
  /** Refuses every further reservation, the waiting ones too. */
  close(): void;
}

export function createSlots(count: number): Slots {
  const rows = new Set<string>();
  /** Rows that were hinted at again while they were in a slot. */
  const again = new Set<string>();
  let reserved = 0;
  let yielded = 0;
  let isClosed = false;
  /** Of those that wait for a slot; made by the first one, because mostly none waits. */
  let freed: PromiseWithResolvers<void> | undefined;

  const isFree = () => !isClosed && rows.size + reserved < count + yielded;

  function tell(): void {
    freed?.resolve();
    freed = undefined;
  }

  function reserveNow(): boolean {
    if (!isFree()) return false;
    reserved++;
    return true;
  }

  return {
    async reserve() {
      while (!isClosed) {
        if (reserveNow()) return true;
        freed ??= Promise.withResolvers();
        await freed.promise;
      }
      return false;
    },
    reserveNow,
    release() {
      reserved--;
      tell();
    },
    occupy(id) {
      reserved--;
      const isNew = !rows.has(id);
      if (isNew) rows.add(id);
      else {
        again.add(id);
        tell();
      }
      return isNew;
    },
    leave(id) {
      rows.delete(id);
      tell();
      return again.delete(id);
    },
    yieldOne() {
      yielded++;
      tell();
      return once(() => {
        yielded--;
      });
    },
    isFree,
    close() {
      isClosed = true;
      tell();
    },
  };
}
