/** Why a model gave no result: how the job of the run ends, unless its skill catches it. */
export type ThinkingErrorCode =
  | 'skill_execution_failed'
  | 'missing_credentials'
  | 'upstream_unavailable'
  | 'budget_exceeded';

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

/** The error of what was under way when its run was stopped. */
export function stopped(): ThinkingError {
  return new ThinkingError('skill_execution_failed', 'The run was stopped', true);
}
