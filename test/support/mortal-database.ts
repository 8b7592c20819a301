/** A database as a process has it that dies between two writes. */
import type { Database } from '../../src/adapters/database/database.ts';

export function mortal(database: Database) {
  let left = Number.POSITIVE_INFINITY;
  return {
    database: {
      ...database,
      write: (unit) => {
        left -= 1;
        return left < 0 ? Promise.reject(new Error('The process has died.')) : database.write(unit);
      },
    } satisfies Database,
    /** From now on so many writes are made, and no further one; another process begins with as many as it wants. */
    dieAfter(writes: number) {
      left = writes;
    },
  };
}
