/** Parses the body of a call of a trigger: JSON, a form, a text, or none (docs/decisions/triggers.md). */
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { parseJsonBody } from '../../adapters/http/body.ts';
import { invalid, PlatformError } from '../../kernel/errors.ts';
import { isCleanText } from '../../kernel/text.ts';

/**
 * The parsed body: the JSON value, an object of the form's fields, the text as a string, or `{}` without
 * a body. Throws `400` for a malformed body and `415` for another media type.
 */
export function payloadOf(headers: IncomingHttpHeaders, bytes: Buffer): unknown {
  if (bytes.length === 0) return {};
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (encoding !== 'identity') {
    throw new PlatformError('unsupported_media_type', 'Send the body without a content-encoding');
  }
  switch (headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()) {
    case 'application/json':
      return parseJsonBody(bytes);
    case 'application/x-www-form-urlencoded':
      return formOf(textOf(bytes));
    case 'text/plain':
      return textOf(bytes);
    default:
      throw unreadableType();
  }
}

/** `415` for a body of another media type. */
export function unreadableType(): PlatformError {
  return new PlatformError(
    'unsupported_media_type',
    'Send the body with content-type: application/json, application/x-www-form-urlencoded or text/plain',
  );
}

function textOf(bytes: Buffer): string {
  const text = isUtf8(bytes) ? bytes.toString('utf8') : null;
  if (text === null) throw invalid('body', 'is not valid UTF-8');
  refuseMark(text);
  if (!isCleanText(text)) throw invalid('body', 'contains a NUL character');
  return text;
}

/** A field's text, or its texts when it occurs more than once. */
type Form = Record<string, string | string[]>;

function formOf(text: string): unknown {
  const fields = new Map<string, string | string[]>();
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.includes('=') ? pair.indexOf('=') : pair.length;
    const name = unescaped(pair.slice(0, equals));
    const value = unescaped(pair.slice(equals + 1));
    if (name === '__proto__') throw invalid('body', 'has a field that is not allowed: __proto__');
    const earlier = fields.get(name);
    if (earlier === undefined) fields.set(name, value);
    else if (typeof earlier === 'string') fields.set(name, [earlier, value]);
    else earlier.push(value);
  }
  const payload = fields.size === 1 ? fields.get('payload') : undefined;
  const form: Form = Object.fromEntries(fields);
  return typeof payload === 'string' ? wrapped(payload, form) : form;
}

/** Some senders, for example GitHub, send JSON in a form whose only field is `payload`. */
function wrapped(payload: string, form: Form): unknown {
  let isJson = true;
  try {
    JSON.parse(payload);
  } catch {
    isJson = false;
  }
  return isJson ? parseJsonBody(Buffer.from(payload)) : form;
}

/** Unescapes a part of a form. The whole text was checked, so only an escape can add a NUL. */
function unescaped(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  const plain = spaced.includes('%') ? decoded(spaced) : spaced;
  refuseMark(plain);
  return plain;
}

function decoded(escaped: string): string {
  let plain: string | null = null;
  try {
    plain = decodeURIComponent(escaped);
  } catch {
    // Reported below.
  }
  if (plain === null || !isCleanText(plain)) {
    throw invalid('body', 'must be percent-encoded UTF-8 without NUL');
  }
  return plain;
}

/** Refuses a byte order mark: some systems write one before a text, but it is not part of the text. */
function refuseMark(text: string): void {
  if (text.startsWith('\ufeff')) throw invalid('body', 'must not begin with a byte order mark');
}
