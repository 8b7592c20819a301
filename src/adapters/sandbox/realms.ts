/**
 * For modules of a sandboxed process: runs a library and an untrusted program in a realm. Each call gets
 * a new realm, so no program sees changes of an earlier one. Only strings go in and come out, and the
 * host passes none of its objects to the realm's functions. A program can therefore reach no object of
 * the host, and so neither `process` nor `require`.
 */
import { constants, createContext, Script } from 'node:vm';

/** JSON text of the value (null when there is none), or why there is no value: the end of a sentence. */
export type RealmAnswer = { readonly value: string | null } | { readonly error: string };

export interface RealmCode {
  /**
   * JavaScript that defines `main(input: string): Promise<string | null>` in the realm. `main` rejects
   * with a string, the end of a sentence.
   */
  readonly source: string;
  /** Whether the library may compile strings. The compiled code stays inside the realm. */
  readonly codeGeneration?: boolean;
}

/** Calls `main` and keeps its outcome. */
const harness = `
  globalThis.begin = () => {
    main(globalThis.realmInput).then(
      (value) => { globalThis.outcome = JSON.stringify({ value }); },
      (reason) => {
        const error = typeof reason === 'string' ? reason : 'cannot be evaluated';
        globalThis.outcome = JSON.stringify({ error });
      },
    );
  };`;
const begin = new Script('begin(); undefined');
const look = new Script('globalThis.outcome');

/** A function that evaluates one input in a new realm. */
export function createRealms({ source, codeGeneration = false }: RealmCode) {
  // Compiled once for all realms.
  const library = new Script(`${source}\n;${harness}`);
  return (input: string): RealmAnswer => {
    const realm = createContext(constants.DONT_CONTEXTIFY, {
      codeGeneration: { strings: codeGeneration, wasm: false },
      // Pending microtasks run before `begin` returns.
      microtaskMode: 'afterEvaluate',
    });
    library.runInContext(realm);
    (realm as { realmInput?: string }).realmInput = input;
    try {
      begin.runInContext(realm);
      return answerOf(look.runInContext(realm));
    } catch {
      return { error: 'cannot be evaluated' };
    }
  };
}

function answerOf(outcome: unknown): RealmAnswer {
  if (typeof outcome !== 'string') return { error: 'never comes to an end' };
  const { value, error }: { value?: unknown; error?: unknown } = JSON.parse(outcome);
  if (typeof error === 'string') return { error };
  return { value: typeof value === 'string' ? value : null };
}

/** Functions that libraries expect in a browser or in Node.js, as text for a realm. */
export const browserCode = [btoa, atob].map(String).join('\n');

/** Bytes as Latin-1 in base64. */
function btoa(text: string): string {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes.toBase64();
}

/** Like Node.js it accepts both alphabets, skips other characters, and ends at `=`. */
function atob(text: string): string {
  const plain = text
    .replace(/=.*$/s, '')
    .replace(/-/g, '+')
    .replace(/_/g, '/')
    .replace(/[^A-Za-z0-9+/]/g, '');
  // A single last character is less than a byte.
  const whole = plain.length % 4 === 1 ? plain.slice(0, -1) : plain;
  const letters: string[] = [];
  for (const byte of Uint8Array.fromBase64(whole)) letters.push(String.fromCharCode(byte));
  return letters.join('');
}
