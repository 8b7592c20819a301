/** How much is handled at a time, and which rows: what a consumer has room for. */

import { once } from './once.ts';

export interface Places {
  /** Resolves to true when a place was free and is reserved, to false when it was closed. */
  reserve(): Promise<boolean>;
  /** Reserves a place if one is free. */
  reserveNow(): boolean;
  /** Gives a reserved place back. */
  release(): void;
  /** Puts a row in a reserved place; false, and the place is given back, when it is in one already. */
  occupy(id: string): boolean;
  /** Frees the place of a row; whether the row was to be put in one again meanwhile. */
  leave(id: string): boolean;
  /** One place more until the returned function is called. */
  lend(): () => void;
  isFree(): boolean;
  /** Nobody gets a place any more. */
  close(): void;
}

export function createPlaces(count: number): Places {
  const rows = new Set<string>();
  /** Rows that came again while they were in a place. */
  const again = new Set<string>();
  let reserved = 0;
  let lent = 0;
  let isClosed = false;
  let freed = Promise.withResolvers<void>();

  const isFree = () => !isClosed && rows.size + reserved < count + lent;

  function tell(): void {
    freed.resolve();
    freed = Promise.withResolvers();
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
    lend() {
      lent++;
      tell();
      return once(() => {
        lent--;
      });
    },
    isFree,
    close() {
      isClosed = true;
      tell();
    },
  };
}
