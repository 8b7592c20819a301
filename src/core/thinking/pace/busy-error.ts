import { ModelError } from '../../../adapters/models/model.ts';
import type { PaceReason } from './pace-rule.ts';

/** A call was not made, because its provider is left alone for now. */
export class ProviderBusyError extends ModelError {
  readonly reason: PaceReason;
  /** Whether the moment at which the wait ends is this call's alone. */
  readonly isReserved: boolean;

  constructor(message: string, reason: PaceReason, waitMs: number, isReserved: boolean) {
    super('unavailable', message, {
      retryAfterMs: waitMs,
      isRateLimited: reason === 'rate limit',
    });
    this.reason = reason;
    this.isReserved = isReserved;
  }
}
