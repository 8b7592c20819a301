/**
 * Documents the refusals of an operation: codes of the error table, each with its meaning and an example.
 * The statuses come from the table, so documentation and answers agree.
 */
import { type TSchema, Type } from 'typebox';
import { type ErrorCode, errorStatuses } from '../../kernel/errors.ts';
import { Words } from './schemas.ts';

/** The body of every refusal (specification: Errors). */
const ErrorBody = Type.Object(
  {
    error: Words(Object.keys(errorStatuses) as ErrorCode[]),
    message: Type.String({ description: 'For people; its wording may change.' }),
    details: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), issue: Type.String() }), {
        description: 'With validation_error: each fault with its field as a dotted path.',
      }),
    ),
    retry_after: Type.Optional(
      Type.Integer({ minimum: 1, description: 'With rate_limit_exceeded: whole seconds.' }),
    ),
  },
  { title: 'Error' },
);

const meanings: Record<ErrorCode, string> = {
  validation_error: 'The request is malformed or breaks a rule; details name the field.',
  authentication_required: 'No credentials were sent.',
  invalid_api_key: 'The key is unknown or revoked.',
  api_key_expired: 'The key has expired.',
  invalid_admin_secret: 'The admin secret is wrong.',
  invalid_signature: 'The signature is missing, wrong or too old.',
  insufficient_scope: 'The key lacks a scope that this requires.',
  not_found: 'These credentials give access to no such resource.',
  skill_not_found: 'No active skill has this category, version and name.',
  method_not_allowed: 'The path knows other methods; Allow names them.',
  conflict: 'It would conflict with the present state of a resource.',
  payload_too_large: 'The body is larger than the operation takes: mostly 1 MiB.',
  unsupported_media_type: 'The body is not application/json.',
  agent_paused: 'The agent is paused and takes no new work.',
  idempotency_key_reused: 'The Idempotency-Key was used for another request within 24 hours.',
  job_not_cancellable: 'The job has already ended.',
  job_not_retryable: 'The job has neither failed nor been cancelled.',
  rate_limit_exceeded: 'The key has used up its requests of this minute.',
  internal_error: 'An unexpected error occurred; the log has it under the x-request-id.',
  upstream_unavailable: 'A service that this needs could not be reached.',
  service_unavailable: 'It cannot be done right now; try again after Retry-After seconds.',
};

/** Additional fields of the example of a code. */
const exampleExtras: Partial<Record<ErrorCode, object>> = {
  validation_error: { details: [{ field: 'limit', issue: 'must be an integer from 1 to 200' }] },
  rate_limit_exceeded: { retry_after: 12 },
};

/** Every request may be malformed, meet an internal error, or come while the platform is unavailable. */
const always = ['validation_error', 'internal_error', 'service_unavailable'] as const;

/** The refusals of an operation with these codes, and of every operation, by their status. */
export function refusals(...codes: ErrorCode[]): Record<number, TSchema> {
  const byStatus = Map.groupBy(new Set([...always, ...codes]), (code) => errorStatuses[code]);
  return Object.fromEntries([...byStatus].map(([status, group]) => [status, refusal(group)]));
}

/** The refusals of an operation behind an API key. */
export const apiRefusals = (...codes: ErrorCode[]) =>
  refusals(
    'authentication_required',
    'invalid_api_key',
    'api_key_expired',
    'rate_limit_exceeded',
    ...codes,
  );

/** The refusals of an operation behind the admin secret. */
export const adminRefusals = (...codes: ErrorCode[]) =>
  refusals('authentication_required', 'invalid_admin_secret', ...codes);

/** The refusals of an operation with a body, in addition to validation_error. */
export const bodyRefusals = ['payload_too_large', 'unsupported_media_type'] as const;

/** The refusals of an operation with a body that names an agent and a skill. */
export const workRefusals = [
  'not_found',
  'skill_not_found',
  'insufficient_scope',
  ...bodyRefusals,
] as const;

function refusal(codes: readonly ErrorCode[]): TSchema {
  const examples = codes.map((code) => [code, { summary: meanings[code], value: example(code) }]);
  return {
    ...ErrorBody,
    description: codes.map((code) => `\`${code}\`: ${meanings[code]}`).join(' '),
    'x-examples': Object.fromEntries(examples),
  };
}

const example = (code: ErrorCode) => ({
  error: code,
  message: meanings[code],
  ...exampleExtras[code],
});
