/**
 * Signatures of webhooks, both ways: HMAC-SHA256 over the raw body in hex (specification: Delivery
 * headers; GitHub's X-Hub-Signature-256), and the Standard Webhooks specification, which signs id
 * and time as well, so that a receiver can refuse replays. Comparisons take constant time.
 */
import { createHmac } from 'node:crypto';
import { isSame } from './same.ts';

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

/** What a Standard Webhooks message is signed by: its id, its time, its body. */
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

/** Whether one of the signatures of a `webhook-signature` header fits, and the time is not far off. */
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

/** Why a secret cannot sign, as the end of a sentence, or null: what is no base64 would be no key. */
export function secretFault(secret: string): string | null {
  if (!secret.startsWith(standardPrefix)) return null;
  const isBase64 = /^[\w+/-]{2,}={0,2}$/.test(secret.slice(standardPrefix.length));
  return isBase64 ? null : `must have base64 after ${standardPrefix}`;
}

/** The bytes behind `whsec_`, or those of a secret without that prefix. */
function standardKey(secret: string): Buffer {
  return secret.startsWith(standardPrefix)
    ? Buffer.from(secret.slice(standardPrefix.length), 'base64')
    : Buffer.from(secret);
}
