/** The error of a failed call: its kind, a sentence for the operator, and its usage. */
import type { Clock } from '../../kernel/clock.ts';
import {
  ModelError,
  type ModelFault,
  nothingReported,
  nothingSpent,
  type RefusedPart,
  type Usage,
} from './model.ts';
import { type Access, howToSetKey } from './providers.ts';
import { retryAfterOf } from './retry-after.ts';
import type { WireFault } from './wire.ts';

const messageMax = 500;

/** What the error tells about the call. */
export interface FailedCall {
  readonly access: Access;
  /** The provider's own name of the model. */
  readonly name: string;
  /** The text that had arrived. */
  readonly text: string;
  /** The usage that had been reported. */
  readonly usage: Usage;
  /** UTF-8 bytes of all that the model had written. */
  readonly seenBytes: number;
}

/** The error of a call that ended in this fault. */
export function failureOf(fault: WireFault, call: FailedCall, clock: Clock): ModelError {
  const { access, text, usage, seenBytes } = call;
  const { provider } = access;
  const detail = 'detail' in fault ? safe(fault.detail, access) : '';
  const failed = (
    kind: ModelFault,
    message: string,
    more: { usage?: Usage; wasSilent?: true; isDown?: boolean; wasLost?: true } = {},
  ) => new ModelError(kind, message, { text, usage, seenBytes, ...more });
  switch (fault.kind) {
    case 'aborted':
      return failed('aborted', `The call of ${provider} was aborted`);
    case 'silent': {
      const silence = `it sent nothing for ${fault.ms / 1000} s`;
      const message = `The provider ${provider} fell silent: ${silence}`;
      return failed('unavailable', message, { wasSilent: true });
    }
    case 'stalled': {
      const message = `The provider ${provider} sent nothing of its answer for ${fault.ms / 1000} s, only keep-alives`;
      return failed('unavailable', message, { wasSilent: true });
    }
    case 'late': {
      const message = `The provider ${provider} took longer than ${fault.ms / 1000} s for its answer`;
      return failed('unavailable', message, { wasSilent: true });
    }
    case 'lost': {
      const message = `The connection to the provider ${provider} failed: ${detail}`;
      const charged = fault.isSent ? { isDown: seenBytes === 0 } : { usage: nothingSpent };
      return failed('unavailable', message, { ...charged, wasLost: true });
    }
    case 'malformed':
      return failed(
        'unavailable',
        `The answer of the provider ${provider} makes no sense: ${detail}`,
      );
    case 'impossible': {
      const message = `The request cannot be made to the provider ${provider}: ${detail}`;
      return new ModelError('refused', message);
    }
    case 'failed': {
      const message = `The provider ${provider} failed while it answered: ${safe(fault.message, access)}`;
      return failed('unavailable', message);
    }
    case 'excessive':
      return failed('refused', `The answer of the provider ${provider} goes beyond ${detail}`);
    case 'status':
      return failureOfStatus(fault, call, clock);
  }
}

/** Statuses of timeouts: the provider may have worked, and charged, for such a call. */
const lateStatuses: ReadonlySet<number> = new Set([408, 504]);

/** In the messages of providers that refuse a setting of the request, such as an effort beside tools or the schema of a tool. */
const unsupported =
  /\bunsupported\b|\bnot support|\binvalid_function_parameters\b|\binvalid schema for function\b|\binput_schema\b/i;
/** In the errors of providers that refuse a request for its length, as OpenAI, Anthropic, Google and servers word it. */
const tooLong =
  /context_length_exceeded|exceed_context_size|string_above_max_length|\bmaximum (context|prompt) length\b|\bcontext (window|length|size|limit)\b|\b(prompt|inputs?|request|messages?)\b.{0,20} too (long|large)\b|\btoo many (input |prompt )?tokens\b|\btoken count\b.{0,40}\bexceed|\bpayload( size)?\b.{0,40}\bexceeds the (limit|maximum)\b|\breduce the length\b|\binputs?` tokens\b|\bmodel token limit\b|\bexceeds max length\b|\bmax tokens allowed\b|\brange of input length\b|\binput tokens exceeded\b|\bmaximum model length\b/i;
/** In those about reasoning that was sent back, which its provider has signed or encrypted with a key that it no longer has. */
const unverified =
  /\binvalid_encrypted_content\b|\bencrypted content\b.*\bcould not be\b|\b(invalid|corrupted) `?(thought[ _])?signature\b|\bthought[ _]signature is (not valid|invalid)\b|\bredacted_thinking\b.*\bcannot be modified\b/i;
/** In those about the model itself: it is unknown, retired or not for this account. */
const aboutModel = /\bmodels?\b|\bmodel_/i;

/** In those that mean the key, of providers that answer 400 for it. */
const aboutKey =
  /\bapi_key_invalid\b|\binvalid_api_key\b|\b(incorrect|invalid) api key\b|\bapi key (not valid|expired)\b/i;
/** In those of a filter of the prompt or the answer, as Azure's, and of moderation. */
const filtered =
  /\bcontent_filter\b|\b(?:image_)?content_policy_violation\b|\bcontent (management|filtering) policy\b|\binvalid_prompt\b|\bflagged as potentially violating\b|\binput was flagged\b/i;
/** In those of a server whose model wrote a call, or an answer, that it cannot read: the next one may be right. */
const unreadable = /\btool_use_failed\b|\boutput_parse_failed\b|\bjson_validate_failed\b/;
/** In those of accounts without money, which no waiting mends. */
const unpaid = /\binsufficient_quota\b|\bbilling_hard_limit|\bcredit balance is too low\b/i;
/** A 429 for one request that asks for more than the account may in a minute. */
const beyondRate = /\brequest too large\b/i;

/** Statuses after which a retry may succeed; 424 is Bedrock's for a failure of the model. */
export const passingStatuses: ReadonlySet<number> = new Set([408, 409, 424, 425, 429]);

/**
 * Usage is zero where none was reported, and the status says that the provider did no work: some tell the tokens of the prompt
 * before they begin. Within an answer it is what was reported.
 */
function failureOfStatus(
  { status, headers, message, errorKind, retryDelay }: Extract<WireFault, { kind: 'status' }>,
  { access, name, text, seenBytes, usage: reported }: FailedCall,
  clock: Clock,
): ModelError {
  const { provider } = access;
  const says = message.trim() === '' ? '' : `: ${safe(message, access)}`;
  const model = JSON.stringify(name.slice(0, 200));
  const error = `${errorKind} ${message}`;
  const refuses = refusedPart(status, error, name);
  const isReported = reported.completion !== null || seenBytes > 0;
  const usage = isReported ? reported : nothingSpent;
  const seen = { text, seenBytes, usage };
  const isDeclined = (status === 400 || status === 403) && filtered.test(error);
  const refused = (sentence: string) =>
    new ModelError('refused', `The provider ${provider} ${sentence}`, {
      refuses: isDeclined ? null : refuses,
      isDeclined,
      ...seen,
    });
  const isForbidden = status === 403 && !isDeclined;
  if (status === 401 || isForbidden || (status === 400 && aboutKey.test(error))) {
    // The provider's message may quote part of the key.
    const quoted = isForbidden ? withoutKeyParts(says, access) : '';
    return new ModelError(
      'credentials',
      `The provider ${provider} does not accept the credentials (${status}); ${howToSetKey(access)}${quoted}`,
      { refuses: 'model', ...seen },
    );
  }
  if (status < 400) {
    return refused(`redirects elsewhere (${status}): set its base url to where it is`);
  }
  if (status === 404) {
    return refused(`knows no model ${model}, or its base url is wrong (404)${says}`);
  }
  const answered = `The provider ${provider} answered ${status}${says}`;
  if (unreadable.test(errorKind)) {
    return new ModelError('unavailable', answered, {
      ...seen,
      usage: isReported ? reported : nothingReported,
    });
  }
  if (status >= 500 || (passingStatuses.has(status) && refuses === null)) {
    return new ModelError('unavailable', answered, {
      retryAfterMs: retryAfterOf(headers, clock.now(), retryDelay),
      usage: lateStatuses.has(status) && !isReported ? nothingReported : usage,
      isDown: lateStatuses.has(status),
      isRateLimited: status === 429,
    });
  }
  return refused(`refuses the request (${status})${says}`);
}

/** What a status, with the error's own words, says that the provider refuses. */
function refusedPart(status: number, error: string, model: string): RefusedPart | null {
  switch (status) {
    case 413:
      return 'length';
    case 401:
    case 402:
    case 403:
    case 404:
      return 'model';
    case 429:
      if (beyondRate.test(error)) return 'length';
      return unpaid.test(error) ? 'model' : null;
    case 400:
    case 422:
      if (unpaid.test(error)) return 'model';
      if (tooLong.test(error)) return 'length';
      if (unverified.test(error)) return 'reasoning';
      if (unsupported.test(error)) return 'setting';
      return aboutModel.test(error) || error.includes(model) ? 'model' : null;
    default:
      return null;
  }
}

/** A provider's text on one line, bounded, and without the API key. */
function safe(text: string, { apiKey }: Access): string {
  const plain = formsOf(apiKey).reduce((rest, form) => rest.replaceAll(form, '…'), text);
  const line = plain.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim();
  return line.length > messageMax ? `${line.slice(0, messageMax)}…` : line;
}

/** Characters at either end of a key by which a quoted part of it is known; shorter keys are no secrets. */
const keyPartLength = 4;
const keyLengthMin = 12;

/** A text without the words that have an end of the key, as providers abbreviate it. */
function withoutKeyParts(text: string, { apiKey }: Access): string {
  if (apiKey === null || apiKey.length < keyLengthMin) return text;
  const ends = [apiKey.slice(0, keyPartLength), apiKey.slice(-keyPartLength)];
  const words = text.split(' ');
  return words.map((word) => (ends.some((end) => word.includes(end)) ? '…' : word)).join(' ');
}

/** The key, and its encodings in headers and addresses. */
function formsOf(key: string | null): string[] {
  if (key === null) return [];
  const bytes = Buffer.from(key);
  const base64 = bytes.toString('base64');
  const unpadded = base64.replace(/=+$/, '');
  return [key, encodeURIComponent(key), base64, unpadded, bytes.toString('base64url')];
}
