import type { Database, Transaction } from '../../src/adapters/database/database.ts';
import { PlatformError } from '../../src/kernel/errors.ts';

/** What either database throws while it cannot be used. */
export function serviceUnavailable(): PlatformError {
  return new PlatformError('service_unavailable', 'The database cannot be used right now', {
    retryAfter: 5,
  });
}

/** The same database, which cannot be written to while `isAway` says so. */
export function whileThere(database: Database, isAway: () => boolean): Database {
  return {
    ...database,
    write: <T>(unit: (tx: Transaction) => Promise<T>) =>
      isAway() ? Promise.reject(serviceUnavailable()) : database.write(unit),
  };
}
