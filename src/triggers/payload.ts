/** What a trigger is sent, as a value: JSON, a form, a text, or nothing (docs/decisions/triggers.md). */
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { parseJsonBody } from '../http/body.ts';
import { invalid, PlatformError } from '../kernel/errors.ts';
import { isCleanText } from '../kernel/text.ts';

/**
 * The body of a request: the value of JSON, an object of a form's fields, a text as a string; `{}`
 * when there is none. Throws `400` for one that breaks the rules of its kind, `415` for other kinds.
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

/** `415` for a body of another kind. */
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

/** A field's text, or its texts where it comes more than once. */
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

/** Some senders, GitHub for one, put JSON into a form of the one field `payload`. */
function wrapped(payload: string, form: Form): unknown {
  let isJson = true;
  try {
    JSON.parse(payload);
  } catch {
    isJson = false;
  }
  return isJson ? parseJsonBody(Buffer.from(payload)) : form;
}

/** A part of a text that is clean: only an escape can bring what is not. */
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
    // Told below.
  }
  if (plain === null || !isCleanText(plain)) {
    throw invalid('body', 'must be percent-encoded UTF-8 without NUL');
  }
  return plain;
}

/** Some systems write it before a text; as a part of the text nobody means it. */
function refuseMark(text: string): void {
  if (text.startsWith('\ufeff')) throw invalid('body', 'must not begin with a byte order mark');
}
