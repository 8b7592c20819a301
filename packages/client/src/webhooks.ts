/**
 * Verifies what webhooks are sent: that the sender knows the secret, and that it was sent just now. The
 * signature is that of Standard Webhooks, over the id of the delivery, the time and the body.
 */
import type { WebhookEvent } from './generated/operations.ts';

/** Why a delivery is not believed. */
export type WebhookFault =
  | 'missing_header'
  | 'invalid_secret'
  | 'timestamp_out_of_range'
  | 'invalid_signature'
  | 'invalid_body';

/** A request that does not come from the platform, or is an old one. Answer it with 401. */
export class WebhookVerificationError extends Error {
  readonly code: WebhookFault;

  constructor(code: WebhookFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'WebhookVerificationError';
    this.code = code;
  }
}

export type WebhookHeaders =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** How far the time of sending may be from now; 300 when left out. */
  readonly toleranceSeconds?: number;
  /** Milliseconds since 1970, for tests. */
  readonly now?: number;
}

/** An event, and the id by which a repeated delivery is recognized. */
export type VerifiedEvent = WebhookEvent & { readonly deliveryId: string };

const toleranceSecondsDefault = 300;
const prefix = 'whsec_';
/** Signatures in one header; the platform sends one. */
const signaturesMax = 10;

/** The body of a request as it came, as text or as bytes. */
export type RawBody = string | ArrayBufferView | ArrayBuffer;

/**
 * The event of a delivery. `raw` is the body as it came, before it is parsed; several secrets are tried while
 * one is being replaced. Rejects with WebhookVerificationError, and with TypeError where the call itself is wrong: a
 * body that was parsed already, or no secret.
 */
export async function verifyWebhook(
  raw: RawBody,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { toleranceSeconds = toleranceSecondsDefault, now = Date.now() }: VerifyOptions = {},
): Promise<VerifiedEvent> {
  const body = bytesOf(raw);
  const secrets = typeof secret === 'string' ? [secret] : secret;
  if (typeof headers !== 'object' || headers === null) {
    throw new TypeError(`verifyWebhook needs the headers of the request, and got ${headers}`);
  }
  if (!Array.isArray(secrets) || !secrets.every((one) => typeof one === 'string')) {
    const message = 'verifyWebhook needs the secret of the webhook: a text, or a list of texts';
    throw new TypeError(`${message}. Is its environment variable set?`);
  }
  const deliveryId = header(headers, 'webhook-id');
  const timestamp = header(headers, 'webhook-timestamp');
  const signatures = header(headers, 'webhook-signature').split(' ').slice(0, signaturesMax);
  const seconds = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) : Number.NaN;
  if (!(Math.abs(now / 1000 - seconds) <= toleranceSeconds)) {
    const message = `The delivery was sent at ${timestamp}, more than ${toleranceSeconds} s from now`;
    throw new WebhookVerificationError('timestamp_out_of_range', message);
  }
  const signed = joined(new TextEncoder().encode(`${deliveryId}.${timestamp}.`), body);
  if (!(await isSigned(signed, signatures, secrets))) {
    const message = 'The signature does not fit the secret and the body';
    throw new WebhookVerificationError('invalid_signature', message);
  }
  return { ...eventOf(body), deliveryId };
}

/** Views and buffers may come from another realm, as in tests with a DOM, so no class is compared. */
function bytesOf(raw: unknown): Uint8Array {
  if (typeof raw === 'string') return new TextEncoder().encode(raw);
  if (ArrayBuffer.isView(raw)) return new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength);
  if (isArrayBuffer(raw)) return new Uint8Array(raw);
  const given = typeof raw === 'object' && raw !== null ? 'an object, parsed already' : String(raw);
  throw new TypeError(
    `verifyWebhook needs the body as it came, a text or bytes, because these are signed, and got ${given}. ` +
      'Pass `await request.text()` of a Request; in Express, `request.body` behind ' +
      "`express.raw({ type: 'application/json' })`, without `express.json()` before it",
  );
}

function isArrayBuffer(value: unknown): value is ArrayBuffer {
  return Object.prototype.toString.call(value) === '[object ArrayBuffer]';
}

function header(headers: WebhookHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof value === 'string' && value !== '') return value;
  throw new WebhookVerificationError('missing_header', `The request has no header ${name}`);
}

async function isSigned(
  signed: Uint8Array<ArrayBuffer>,
  signatures: readonly string[],
  secrets: readonly string[],
): Promise<boolean> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  for (const secret of secrets) {
    const bytes = secretBytes(secret);
    const key = await crypto.subtle.importKey('raw', bytes, algorithm, false, ['verify']);
    for (const signature of signatures) {
      const given = signature.startsWith('v1,') ? fromBase64(signature.slice('v1,'.length)) : null;
      // Compares in constant time.
      if (given !== null && (await crypto.subtle.verify('HMAC', key, given, signed))) return true;
    }
  }
  return false;
}

/** After the prefix a secret is base64; without it, its own bytes. */
function secretBytes(secret: string): Uint8Array<ArrayBuffer> {
  const bytes = secret.startsWith(prefix)
    ? fromBase64(secret.slice(prefix.length))
    : new Uint8Array(new TextEncoder().encode(secret));
  if (bytes !== null && bytes.length > 0) return bytes;
  throw new WebhookVerificationError('invalid_secret', 'The secret is empty, or not base64');
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(head.length + tail.length);
  bytes.set(head);
  bytes.set(tail, head.length);
  return bytes;
}

function eventOf(body: Uint8Array): WebhookEvent {
  try {
    return JSON.parse(new TextDecoder().decode(body)) as WebhookEvent;
  } catch (cause) {
    throw new WebhookVerificationError('invalid_body', 'The body is not JSON', { cause });
  }
}
