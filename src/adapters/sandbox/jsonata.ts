/** Evaluates JSONata expressions, each in its own realm. Runs in a sandboxed process (sandbox.ts). */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type JsonataRequest, realmSource } from './jsonata-realm.ts';
import { createRealms } from './realms.ts';

/** JSON text of the value (null without a value), or the fault as the end of a sentence. */
export type JsonataAnswer = { readonly json: string | null } | { readonly fault: string };

export interface EvaluationRequest extends JsonataRequest {
  /** Bytes of the value as JSON. */
  readonly valueBytesMax: number;
}

const library = createRequire(import.meta.url).resolve('jsonata');
const inRealm = createRealms({ source: realmSource(readFileSync(library, 'utf8')) });

/** Parses the expression, and evaluates it when there is a context. */
export function evaluate({ valueBytesMax, ...request }: EvaluationRequest): JsonataAnswer {
  const answer = inRealm(JSON.stringify(request));
  if ('error' in answer) return { fault: answer.error };
  const json = answer.value;
  if (json !== null && Buffer.byteLength(json) > valueBytesMax) {
    return { fault: `gives more than ${sizeText(valueBytesMax)} of JSON` };
  }
  return { json };
}

function sizeText(bytes: number): string {
  return bytes === 1_048_576 ? '1 MiB' : `${bytes} bytes`;
}
