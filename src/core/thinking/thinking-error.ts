import type { StepFailure } from '../journal/journal-steps.ts';

/** Why a model has no result. The job ends with this code, unless the skill catches the error. */
export type ThinkingErrorCode =
  | 'skill_execution_failed'
  | 'missing_credentials'
  | 'upstream_unavailable'
  | 'budget_exceeded'
  | 'model_refused'
  | 'guard_refused'
  | 'guard_failed';

/** Reaches the skill with its message, `code` and `retryable`. */
export class ThinkingError extends Error {
  override readonly name = 'ThinkingError';
  readonly code: ThinkingErrorCode;
  readonly retryable: boolean;

  constructor(code: ThinkingErrorCode, message: string, retryable = false) {
    super(message);
    this.code = code;
    this.retryable = retryable;
  }
}

/** The error of a request that failed before. */
export function thinkingErrorOf({ code, message, retryable }: StepFailure): ThinkingError {
  return new ThinkingError(code as ThinkingErrorCode, message, retryable);
}

/** The error of a call or tool whose run was stopped. */
export function stopped(): ThinkingError {
  return new ThinkingError('skill_execution_failed', 'The run was stopped', true);
}
