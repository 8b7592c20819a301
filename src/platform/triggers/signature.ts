/** Checks the signature of a call of a trigger, in either of two formats (docs/decisions/triggers.md). */
import type { IncomingHttpHeaders } from 'node:http';
import { PlatformError } from '../../kernel/errors.ts';
import { isBodySignature, isStandardSignature } from '../../kernel/webhook-signature.ts';

/**
 * Throws `401 invalid_signature` unless `bytes` are signed: by `x-hub-signature-256`, by the headers
 * of Standard Webhooks, or both. Every signature that is present must be right. `isIdSigned` tells
 * whether the signature covers `webhook-id`.
 */
export function requireSignature(
  headers: IncomingHttpHeaders,
  secret: string,
  bytes: Uint8Array,
  nowMs: number,
): { isIdSigned: boolean } {
  const hub = headers['x-hub-signature-256'];
  const standard = headers['webhook-signature'];
  const isSigned = hub !== undefined || standard !== undefined;
  const isHubRight = hub === undefined || isHubSignature(String(hub), secret, bytes);
  const isStandardRight = standard === undefined || isStandard(headers, secret, bytes, nowMs);
  if (isSigned && isHubRight && isStandardRight) return { isIdSigned: standard !== undefined };
  throw new PlatformError(
    'invalid_signature',
    isSigned
      ? 'The signature of the request is wrong or too old'
      : 'This trigger takes signed requests only: sign with x-hub-signature-256 or webhook-signature',
  );
}

function isHubSignature(given: string, secret: string, bytes: Uint8Array): boolean {
  const hex = /^sha256=([0-9a-f]{64})$/i.exec(given)?.[1];
  return hex !== undefined && isBodySignature(hex, secret, bytes);
}

function isStandard(
  headers: IncomingHttpHeaders,
  secret: string,
  bytes: Uint8Array,
  nowMs: number,
): boolean {
  const id = headers['webhook-id'];
  const seconds = headers['webhook-timestamp'];
  if (typeof id !== 'string' || id === '') return false;
  if (typeof seconds !== 'string' || !/^\d{1,12}$/.test(seconds)) return false;
  const message = { id, timestamp: Number(seconds), body: bytes };
  return isStandardSignature(String(headers['webhook-signature']), secret, message, nowMs);
}
