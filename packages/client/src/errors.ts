/** What the platform refused, or what became of a job, as errors with a code for programs. */
import type { components } from './generated/schema.ts';

/** A code of the platform, or one of the client's own. */
export type ErrorCode =
  | components['schemas']['Error']['error']
  /** No answer: the platform is not started, the network fails, or CORS_ORIGINS does not name the origin of this page. */
  | 'unreachable'
  /** The deadline of the call, or the time for one request, has passed. */
  | 'timeout'
  /** An answer that is not one of the platform, such as a proxy's. */
  | 'unexpected_answer';

/** Why a job ended without an output. */
export type JobErrorCode = NonNullable<components['schemas']['Job']['error']>['code'];

/** A newer platform may have codes that this client does not know. */
type OrNewer<Code extends string> = Code | (string & {});

/** A fault in a request: a dotted path, and what is wrong there. */
export interface Issue {
  readonly field: string;
  readonly issue: string;
}

export interface ErrorFacts {
  readonly code: OrNewer<ErrorCode>;
  readonly status: number;
  readonly requestId?: string | null;
  readonly retryAfterMs?: number | null;
  readonly details?: readonly Issue[];
  readonly cause?: unknown;
}

/** A request that the platform refused or did not answer. */
export class SkillwrightError extends Error {
  /** Branch on this, never on the message. */
  readonly code: OrNewer<ErrorCode>;
  /** The HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** Finds the request in the log of the platform. */
  readonly requestId: string | null;
  /** Milliseconds after which the platform may accept the request; null when it does not say. */
  readonly retryAfterMs: number | null;
  /** The faults of a `validation_error`; else empty. */
  readonly details: readonly Issue[];

  constructor(message: string, facts: ErrorFacts) {
    super(message, { cause: facts.cause });
    this.name = 'SkillwrightError';
    this.code = facts.code;
    this.status = facts.status;
    this.requestId = facts.requestId ?? null;
    this.retryAfterMs = facts.retryAfterMs ?? null;
    this.details = facts.details ?? [];
  }
}

/** A job that ended without an output. */
export class JobFailedError extends Error {
  /** The job's `error.code`, for example `skill_timeout` or `cancelled`. */
  readonly code: OrNewer<JobErrorCode>;
  readonly jobId: string;

  constructor(jobId: string, error: { readonly code: string; readonly message: string }) {
    super(error.message);
    this.name = 'JobFailedError';
    this.code = error.code;
    this.jobId = jobId;
  }
}
