/**
 * The two formats of webhook signatures: HMAC-SHA256 over the raw body in hex (specification: Delivery
 * headers; GitHub's X-Hub-Signature-256), and the Standard Webhooks specification, which also signs
 * the id and the time, so that a receiver can refuse replays. Comparisons take constant time.
 */
import { createHmac } from 'node:crypto';
import { isSame } from './timing-safe.ts';

const standardPrefix = 'whsec_';
/** How far the time of a Standard Webhooks message may lie from ours. */
const toleranceSeconds = 300;

/** Hex HMAC-SHA256 of the body, keyed with the secret's UTF-8 bytes as they are. */
export function bodySignature(secret: string, body: string | Uint8Array): string {
  return createHmac('sha256', secret).update(body).digest('hex');
}

/** Whether `given` is the body's signature, in hex. */
export function isBodySignature(given: string, secret: string, body: string | Uint8Array): boolean {
  return isSame(given.toLowerCase(), bodySignature(secret, body));
}

/** The signed parts of a Standard Webhooks message. */
export interface SignedMessage {
  readonly id: string;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly body: string | Uint8Array;
}

/** The value of `webhook-signature`: `v1,` and base64. */
export function standardSignature(secret: string, { id, timestamp, body }: SignedMessage): string {
  const hmac = createHmac('sha256', standardKey(secret)).update(`${id}.${timestamp}.`).update(body);
  return `v1,${hmac.digest('base64')}`;
}

/** Whether a `webhook-signature` header has a right signature and the time is within the tolerance. */
export function isStandardSignature(
  given: string,
  secret: string,
  message: SignedMessage,
  nowMs: number,
): boolean {
  if (!(Math.abs(nowMs / 1000 - message.timestamp) <= toleranceSeconds)) return false;
  const expected = standardSignature(secret, message);
  return given.split(' ').some((one) => isSame(one, expected));
}

/** Why a secret cannot be used, as the end of a sentence, or null. After `whsec_` it must be base64. */
export function secretFault(secret: string): string | null {
  if (!secret.startsWith(standardPrefix)) return null;
  const isBase64 = /^[\w+/-]{2,}={0,2}$/.test(secret.slice(standardPrefix.length));
  return isBase64 ? null : `must have base64 after ${standardPrefix}`;
}

/** The bytes of the base64 after `whsec_`, or of a secret without that prefix. */
function standardKey(secret: string): Buffer {
  return secret.startsWith(standardPrefix)
    ? Buffer.from(secret.slice(standardPrefix.length), 'base64')
    : Buffer.from(secret);
}
