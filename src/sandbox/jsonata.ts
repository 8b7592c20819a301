/** JSONata expressions, each in a realm of its own. For a sandboxed process (sandbox.ts). */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type JsonataOrder, realmSource } from './jsonata-realm.ts';
import { createRealms } from './realms.ts';

/** A value's JSON text, null when there is none, or the end of a sentence about the expression. */
export type JsonataAnswer = { readonly json: string | null } | { readonly fault: string };

export interface BoundedOrder extends JsonataOrder {
  /** Bytes of the value as JSON. */
  readonly valueBytesMax: number;
}

const library = createRequire(import.meta.url).resolve('jsonata');
const inRealm = createRealms({ source: realmSource(readFileSync(library, 'utf8')) });

/** Reads the expression, and evaluates it where there is a context. */
export function evaluate({ valueBytesMax, ...order }: BoundedOrder): JsonataAnswer {
  const answer = inRealm(JSON.stringify(order));
  if ('error' in answer) return { fault: answer.error };
  const json = answer.value;
  if (json !== null && Buffer.byteLength(json) > valueBytesMax) {
    return { fault: `gives more than ${shown(valueBytesMax)} of JSON` };
  }
  return { json };
}

function shown(bytes: number): string {
  return bytes === 1_048_576 ? '1 MiB' : `${bytes} bytes`;
}
