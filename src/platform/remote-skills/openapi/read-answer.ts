/** What an answer means: the output of the run, or why it failed. */
import type { EgressResponse } from '../../../adapters/egress/guarded-fetch.ts';
import { retryAfterOf } from '../../../adapters/egress/retry-after.ts';
import { isJsonType } from './operation-input.ts';

/** Characters of an answer's body in the message of a failure. */
const excerptCharsMax = 2_000;

const shownHeaders = [
  ...['content-type', 'content-language', 'etag', 'last-modified', 'link', 'location'],
  ...['retry-after', 'x-request-id', 'x-total-count', 'x-next-page', 'x-ratelimit-remaining'],
] as const;
const headerCharsMax = 2_000;

export interface AnswerOutput {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Why an answer is no output. */
export interface AnswerFault {
  readonly message: string;
  readonly reason: 'refused' | 'credentials' | 'too many requests' | 'unavailable';
  readonly retryAfterMs: number | null;
}

export type ReadAnswer =
  | { readonly kind: 'output'; readonly output: AnswerOutput; readonly note: string | null }
  | { readonly kind: 'fault'; readonly fault: AnswerFault };

export function readAnswer(tool: string, answer: EgressResponse, now: number): ReadAnswer {
  const { status } = answer;
  if (status >= 200 && status < 300) {
    const { body, note } = bodyOf(answer);
    return { kind: 'output', output: { status, headers: headersOf(answer), body }, note };
  }
  const excerpt = excerptOf(answer);
  const message = `${tool} was answered with ${status}${excerpt === '' ? '' : `: ${excerpt}`}`;
  const retryAfterMs = retryAfterOf(answer, now);
  return { kind: 'fault', fault: { message, reason: reasonOf(status), retryAfterMs } };
}

function reasonOf(status: number): AnswerFault['reason'] {
  if (status === 401) return 'credentials';
  if (status === 429) return 'too many requests';
  return status >= 500 || status === 408 || status === 425 ? 'unavailable' : 'refused';
}

function headerOf({ headers }: EgressResponse, name: string): string | null {
  const value = headers[name];
  if (value === undefined) return null;
  return typeof value === 'string' ? value : value.join(', ');
}

function headersOf(answer: EgressResponse): Record<string, string> {
  const entries = shownHeaders.flatMap((name) => {
    const value = headerOf(answer, name);
    return value === null ? [] : [[name, value.slice(0, headerCharsMax)]];
  });
  return Object.fromEntries(entries) as Record<string, string>;
}

/** JSON parsed, text as text, anything else as base64. An empty body is null. */
function bodyOf(answer: EgressResponse): { body: unknown; note: string | null } {
  const { body } = answer;
  if (body.length === 0) return { body: null, note: null };
  const type = headerOf(answer, 'content-type') ?? '';
  if (isJsonType(type)) {
    try {
      return { body: JSON.parse(body.toString('utf8')), note: null };
    } catch {
      const note = 'The answer calls itself JSON and is not; it is passed on as text.';
      return { body: textOf(body), note };
    }
  }
  if (isTextType(type)) return { body: textOf(body), note: null };
  return { body: { base64: body.toString('base64'), content_type: type }, note: null };
}

function isTextType(type: string): boolean {
  return type === '' || /^text\/|[/+]xml|[/+]ya?ml|x-www-form-urlencoded|javascript/i.test(type);
}

function textOf(body: Buffer): string {
  return body.toString('utf8').replaceAll('\0', '\u{FFFD}');
}

function excerptOf(answer: EgressResponse): string {
  const type = headerOf(answer, 'content-type') ?? '';
  if (!isJsonType(type) && !isTextType(type)) return '';
  return answer.body
    .subarray(0, 4 * excerptCharsMax)
    .toString('utf8')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, excerptCharsMax);
}
