import { ModelError } from '../../adapters/models/model.ts';
import type { PaceReason } from './pace-rule.ts';

/** A call was not made, because its provider is left alone for now. */
export class ProviderBusyError extends ModelError {
  readonly reason: PaceReason;
  /** Whether the call is expected when its wait ends; else many others may come at the same time. */
  readonly isExpected: boolean;

  constructor(message: string, reason: PaceReason, waitMs: number, isExpected: boolean) {
    super('unavailable', message, {
      retryAfterMs: waitMs,
      isRateLimited: reason === 'rate limit',
    });
    this.reason = reason;
    this.isExpected = isExpected;
  }
}
