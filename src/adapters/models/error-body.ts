/** Reads the message and status of an error body, in the forms that are common. Pure. */
import { type Json, objectOf } from '../../kernel/json.ts';

/** Characters of what a gateway quotes of its provider. */
const rawMax = 2_000;

/** The message of an error, with what a gateway quotes of its provider; of a list of errors, the message of the first. */
export function messageIn(error: unknown): string {
  if (typeof error === 'string') return error;
  const body = objectOf(Array.isArray(error) ? error[0] : error);
  const raw = objectOf(body?.['metadata'])?.['raw'];
  const cause = typeof raw === 'string' && raw !== '' ? `: ${raw.slice(0, rawMax)}` : '';
  for (const name of ['message', 'error', 'detail', 'type']) {
    const value = body?.[name];
    if (typeof value === 'string' && value !== '') return value + cause;
    if (objectOf(value) !== null) return messageIn(value);
  }
  return 'an error without a message';
}

/** The status of each kind of error, from the providers' documentation. */
const statusOfKind: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['invalid_prompt', 400],
  ['context_length_exceeded', 400],
  ['authentication_error', 401],
  ['invalid_api_key', 401],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['model_not_found', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['insufficient_quota', 429],
  ['slow_down', 503],
  ['server_is_overloaded', 503],
  ['service_unavailable_error', 503],
  ['engine_overloaded_error', 503],
  ['api_error', 500],
  ['server_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
  ['validationException', 400],
  ['throttlingException', 429],
  ['internalServerException', 500],
  ['modelStreamErrorException', 500],
  ['modelErrorException', 424],
  ['modelTimeoutException', 408],
  ['serviceUnavailableException', 503],
]);

/** What an error body says of the error beside its message: its code, type, parameter and reasons; empty without any. */
export function kindIn(error: unknown): string {
  const body = objectOf(Array.isArray(error) ? error[0] : error);
  const inner = body === null ? null : (errorIn(body) ?? body);
  const kinds = ['code', 'type', 'param', 'status'].map((name) => inner?.[name]);
  const details = Array.isArray(inner?.['details']) ? inner['details'].slice(0, detailsMax) : [];
  const reasons = details.map((detail) => objectOf(detail)?.['reason']);
  return [...kinds, ...reasons].filter((kind) => typeof kind === 'string').join(' ');
}

/** OpenAI: "Please try again in 2.5s." */
const tryAgain = /\btry again in ((?:\d{1,9}(?:\.\d{1,9})?(?:ms|[hms]))+)/i;

/** The delay of Google's `RetryInfo` among the details of an error, or of its message, such as `7s`; empty without any. */
export function retryDelayIn(error: unknown): string {
  const body = objectOf(Array.isArray(error) ? error[0] : error);
  const inner = body === null ? null : errorIn(body);
  const details = inner?.['details'];
  for (const detail of Array.isArray(details) ? details.slice(0, detailsMax) : []) {
    const { '@type': type, retryDelay } = objectOf(detail) ?? {};
    const isRetryInfo = typeof type === 'string' && type.endsWith('google.rpc.RetryInfo');
    if (isRetryInfo && typeof retryDelay === 'string') return retryDelay;
  }
  return tryAgain.exec(String(inner?.['message']))?.[1] ?? '';
}

/** Details of an error that are looked at. */
const detailsMax = 20;

/** The HTTP status that an error names, or that its kind stands for; null without one. */
export function statusIn(document: Json): number | null {
  const error = errorIn(document) ?? document;
  for (const value of [error['status'], error['code'], error['type']]) {
    const status = statusOfKind.get(value) ?? statusOfName(value);
    if (Number.isInteger(status) && status >= 400 && status <= 599) return status;
  }
  return null;
}

/** What asking again does not mend, by the names that providers give to such errors. */
const badRequest =
  /^(invalid|unsupported|empty|image|failed_to_download)_|_(not_found|too_large|too_small|too_long)$/;

/** The status that a kind has or is, where its name says one: of pictures OpenAI has a dozen kinds. */
const statusOfName = (kind: unknown): number =>
  badRequest.test(String(kind)) ? 400 : Number(kind);

/** The error of a document, or of the response that an event has; null without one. */
function errorIn(document: Json): Json | null {
  return objectOf(document['error']) ?? objectOf(objectOf(document['response'])?.['error']);
}
