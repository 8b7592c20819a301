/** What the platform refused, or what became of a job, as errors with a code for programs. */

/** A request that the platform refused or did not answer. */
export class SkillwrightError extends Error {
  /** The platform's code, for example `validation_error`; `unreachable` when there was no answer. */
  readonly code: string;
  /** The HTTP status; 0 when there was no answer. */
  readonly status: number;
  readonly requestId: string | null;
  /** Milliseconds after which the platform may accept the request; null when it does not say. */
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    facts: {
      code: string;
      status: number;
      requestId?: string | null;
      retryAfterMs?: number | null;
      cause?: unknown;
    },
  ) {
    super(message, { cause: facts.cause });
    this.name = 'SkillwrightError';
    this.code = facts.code;
    this.status = facts.status;
    this.requestId = facts.requestId ?? null;
    this.retryAfterMs = facts.retryAfterMs ?? null;
  }
}

/** A job that ended without an output. */
export class JobFailedError extends Error {
  /** The job's `error.code`, for example `skill_timeout` or `cancelled`. */
  readonly code: string;
  readonly jobId: string;

  constructor(jobId: string, error: { readonly code: string; readonly message: string }) {
    super(error.message);
    this.name = 'JobFailedError';
    this.code = error.code;
    this.jobId = jobId;
  }
}
