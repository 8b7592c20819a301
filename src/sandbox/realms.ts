/**
 * For modules of a sandboxed process: runs a library and a stranger's program in a realm of their
 * own, a new one for each order, so that no program meets what another has changed. Only texts go in
 * and come out, and the host calls nothing of the realm with a value of its own, so no object of the
 * host can be reached from inside, and with it neither `process` nor `require`.
 */
import { constants, createContext, Script } from 'node:vm';

/** JSON text of the value (null when there is none), or why there is no value: the end of a sentence. */
export type RealmAnswer = { readonly value: string | null } | { readonly error: string };

export interface RealmCode {
  /**
   * JavaScript that leaves a function `main(input: string): Promise<string | null>` in the realm. What
   * that rejects with is a string, the end of a sentence.
   */
  readonly source: string;
  /** Whether the library makes code of strings. It runs in the realm, which has no more to offer. */
  readonly codeGeneration?: boolean;
}

/** Calls `main` and keeps what becomes of it. */
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
      // What is left to be done in microtasks is done before `begin` returns.
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

/** Like Node.js it takes both alphabets, passes by what is in neither, and ends at `=`. */
function atob(text: string): string {
  const plain = text
    .replace(/=.*$/s, '')
    .replace(/-/g, '+')
    .replace(/_/g, '/')
    .replace(/[^A-Za-z0-9+/]/g, '');
  // A character that is left alone is less than a byte.
  const whole = plain.length % 4 === 1 ? plain.slice(0, -1) : plain;
  const letters: string[] = [];
  for (const byte of Uint8Array.fromBase64(whole)) letters.push(String.fromCharCode(byte));
  return letters.join('');
}
