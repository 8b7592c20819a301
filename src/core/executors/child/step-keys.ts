/**
 * Identifiers that are the same in each attempt at a job, each replay and each job that goes on from it, and different for
 * all other jobs, parts, steps and calls: made of where in the job they are asked for.
 */
import { createHash } from '../../../kernel/create-hash.ts';
import type { Part } from './part.ts';
import { scopeOf } from './step-scope.ts';

/** What a step gives to the systems that it changes, so that they recognize a repetition. */
export function idempotencyKeyOf(part: Part, name: string, nth: number): string {
  const place = JSON.stringify([recordOf(part), part.path, name, nth]);
  return createHash('sha256').update(place).digest('base64url');
}

/** The first job of the record. */
function recordOf({ run: { context } }: Part): string {
  return context[7] ?? context[0];
}

/** The namespace of our ids of version 5 (RFC 9562), a random UUID. */
const namespace = Buffer.from('4b1c8f0e6d2a4c37a9e5d7f3b0816c52', 'hex');

/** The next `ctx.uuid()`. A step counts its own, because a recorded step makes none. */
export function makeUuid(part: Part): string {
  const scope = scopeOf(part);
  const counter = scope ?? part;
  counter.uuids += 1;
  const place = [recordOf(part), part.path, scope?.idempotencyKey ?? null, counter.uuids];
  const digest = createHash('sha1').update(namespace).update(JSON.stringify(place)).digest();
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x50, 6);
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = digest.toString('hex', 0, 16);
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
