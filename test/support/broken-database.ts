import { PlatformError } from '../../src/kernel/errors.ts';

/** What either database throws while it cannot be used. */
export function serviceUnavailable(): PlatformError {
  return new PlatformError('service_unavailable', 'The database cannot be used right now', {
    retryAfter: 5,
  });
}
