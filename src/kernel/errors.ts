/**
 * The one table of error codes (specification: Errors; docs/decisions/json-and-lists.md). Code that refuses
 * a request throws a `PlatformError` with a code of this table, which alone decides the status.
 */

export const errorStatuses = {
  validation_error: 400,
  authentication_required: 401,
  invalid_api_key: 401,
  api_key_expired: 401,
  invalid_admin_secret: 401,
  invalid_signature: 401,
  insufficient_scope: 403,
  not_found: 404,
  skill_not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  agent_paused: 422,
  idempotency_key_reused: 422,
  job_not_cancellable: 422,
  job_not_retryable: 422,
  rate_limit_exceeded: 429,
  internal_error: 500,
  upstream_unavailable: 502,
  service_unavailable: 503,
} as const;

export type ErrorCode = keyof typeof errorStatuses;

/** Why a run failed: the values of a job's `error.code` (docs/decisions/jobs.md). */
export const runErrorCodes = [
  'skill_execution_failed',
  'skill_timeout',
  'output_invalid',
  'missing_credentials',
  'upstream_unavailable',
  'budget_exceeded',
  'model_refused',
  'guard_refused',
  'guard_failed',
  'replay_diverged',
  'worker_lost',
  'cancelled',
  'expired',
  'replaced',
] as const;

export type RunErrorCode = (typeof runErrorCodes)[number];

/** One fault in a request: a dotted path and its problem. */
export interface Issue {
  readonly field: string;
  readonly issue: string;
}

interface ErrorExtras {
  /** For validation_error: the faults. */
  details?: readonly Issue[];
  /** For rate_limit_exceeded and service_unavailable: whole seconds, at least 1. */
  retryAfter?: number;
  /** For method_not_allowed: the methods that the path allows. */
  allow?: string;
  cause?: unknown;
}

/** A refusal with a code of the table; its message is shown to the client. */
export class PlatformError extends Error {
  readonly code: ErrorCode;
  readonly extras: ErrorExtras;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.name = 'PlatformError';
    this.code = code;
    this.extras = extras;
  }

  get status(): number {
    return errorStatuses[this.code];
  }
}

/** Whether an error only means that the database was unavailable. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof PlatformError && error.code === 'service_unavailable';
}

/** `400 validation_error` about one field. */
export function invalid(field: string, issue: string): PlatformError {
  return new PlatformError('validation_error', `${field} ${issue}`, {
    details: [{ field, issue }],
  });
}

/** `400 validation_error` about several faults; the message names the first. */
export function invalidIn(details: readonly Issue[]): PlatformError {
  const [first] = details;
  const message = first === undefined ? 'The request is invalid' : `${first.field} ${first.issue}`;
  return new PlatformError('validation_error', message, { details });
}

/** `404 not_found`, with the same message for every reason, so that tenants learn nothing of others. */
export function notFound(what: string): PlatformError {
  return new PlatformError('not_found', `${what} not found`);
}
