import { describe, expect, test } from 'vitest';
import {
  type ErrorCode,
  errorStatuses,
  invalid,
  notFound,
  PlatformError,
  runErrorCodes,
} from './errors.ts';

/** Specification, Errors: Error codes. */
const specified = [
  [400, 'validation_error'],
  [401, 'authentication_required'],
  [401, 'invalid_api_key'],
  [401, 'api_key_expired'],
  [401, 'invalid_admin_secret'],
  [403, 'insufficient_scope'],
  [404, 'not_found'],
  [404, 'skill_not_found'],
  [409, 'conflict'],
  [429, 'rate_limit_exceeded'],
] as const;

/** docs/decisions/json-and-lists.md, docs/decisions/triggers.md: what the specification leaves open. */
const decided = [
  [401, 'invalid_signature'],
  [405, 'method_not_allowed'],
  [413, 'payload_too_large'],
  [415, 'unsupported_media_type'],
  [422, 'agent_paused'],
  [422, 'idempotency_key_reused'],
  [422, 'job_not_cancellable'],
  [422, 'job_not_retryable'],
  [500, 'internal_error'],
  [502, 'upstream_unavailable'],
  [503, 'service_unavailable'],
] as const;

describe('the table of error codes', () => {
  test.each([...specified, ...decided])('answers %i for %s', (status, code) => {
    expect(new PlatformError(code as ErrorCode, 'why').status).toBe(status);
  });

  test('has no code that neither document names', () => {
    const named = [...specified, ...decided].map(([, code]) => code);

    expect(Object.keys(errorStatuses).sort()).toEqual([...named].sort());
  });

  test('a run fails with one of the codes of docs/decisions/jobs.md', () => {
    expect([...runErrorCodes].sort()).toEqual([
      'budget_exceeded',
      'cancelled',
      'expired',
      'guard_failed',
      'guard_refused',
      'missing_credentials',
      'model_refused',
      'output_invalid',
      'replaced',
      'replay_diverged',
      'skill_execution_failed',
      'skill_timeout',
      'upstream_unavailable',
      'worker_lost',
    ]);
  });
});

describe('a refusal', () => {
  test('about a field names it in its message and in its details', () => {
    const refusal = invalid('limit', 'must be an integer from 1 to 200');

    expect(refusal).toBeInstanceOf(Error);
    expect(refusal.code).toBe('validation_error');
    expect(refusal.message).toBe('limit must be an integer from 1 to 200');
    expect(refusal.extras.details).toEqual([
      { field: 'limit', issue: 'must be an integer from 1 to 200' },
    ]);
  });

  test('of what does not exist has the same words whatever the reason', () => {
    expect(notFound('Job')).toMatchObject({ code: 'not_found', message: 'Job not found' });
  });

  test('keeps its cause from the client and for the log', () => {
    const cause = new Error('select * from secrets');

    const refusal = new PlatformError('internal_error', 'An unexpected error', { cause });

    expect(refusal.cause).toBe(cause);
    expect(refusal.message).not.toContain('select');
    expect('cause' in new PlatformError('not_found', 'no')).toBe(false);
  });
});
