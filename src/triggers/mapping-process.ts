/**
 * The process in which mappings are evaluated, one at a time, each the program of a stranger. It
 * may read its own code and nothing else: no other file, network, environment or program, and no
 * code from strings. mapping-runner.ts starts it, asks, and kills it when an answer is late. Each
 * order has a realm of its own (mapping-realm.ts), so that none meets what another has changed.
 */
import { readFileSync } from 'node:fs';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import { constants, createContext, Script } from 'node:vm';
import { type Realm, realmCode } from './mapping-realm.ts';

/** What is to be done with an expression: to read it, or to evaluate it. */
export interface MappingOrder {
  readonly expression: string;
  /** JSON text of what the expression sees; null when it is only to be read. */
  readonly context: string | null;
}

/** JSON text of the value (null when there is none), or why there is no value: the end of a sentence. */
export type MappingAnswer = { readonly value: string | null } | { readonly error: string };

/** Bytes of a value as JSON text: as much as a request may bring. */
const valueBytesMax = 1_048_576;

/** JSONata and what is beside it, compiled once; the first argument is the file of the library. */
const script = new Script(`${readFileSync(process.argv[2] as string, 'utf8')};\n${realmCode}`);
/** Whether the order under way has left a promise to fail that nobody awaits. */
let hasStrayed = false;

process.on('unhandledRejection', () => {
  hasStrayed = true;
});
process.on('message', (order: MappingOrder) => {
  answerTo(order).then(
    (answer) => process.send?.(answer),
    () => process.exit(1),
  );
});
process.on('disconnect', () => process.exit());
process.send?.('ready');

async function answerTo(order: MappingOrder): Promise<MappingAnswer> {
  hasStrayed = false;
  const answer = await evaluated(newRealm(), order);
  // What an expression leaves to be done is microtasks, JSONata having no timers. They are done
  // before this turn is, so they count as this order's time and not as the next one's.
  await turnOfLoop();
  return hasStrayed ? { error: 'leaves work behind that fails' } : answer;
}

/** Its global object is one of its own, behind which lies none of ours. */
function newRealm(): Realm {
  const realm = createContext(constants.DONT_CONTEXTIFY, {
    codeGeneration: { strings: false, wasm: false },
  });
  script.runInContext(realm);
  return realm as unknown as Realm;
}

async function evaluated(
  realm: Realm,
  { expression, context }: MappingOrder,
): Promise<MappingAnswer> {
  try {
    const value = await realm.evaluate(expression, context);
    const isTooLarge = value !== null && Buffer.byteLength(value) > valueBytesMax;
    return isTooLarge ? { error: 'gives more than 1 MiB of JSON' } : { value };
  } catch (reason) {
    return { error: String(reason) };
  }
}
