/**
 * Joins the deltas in which a chat streams tool calls. Some servers send no index, some repeat a blank id and name with
 * every delta, some send the name after the arguments. A call that never gets a name is passed on under the name `_`,
 * and the agent tells the model that there is no such tool.
 */
import { randomUUID } from 'node:crypto';
import { type Json, objectOf, parsed } from '../../../kernel/json.ts';
import type { AnswerSoFar } from '../answer.ts';

/** The name of a call that has none. */
const noName = '_';

interface OpenCall {
  readonly index: number;
  id: string | undefined;
  name: string | undefined;
  readonly input: string[];
  /** Whether its first piece is all of its arguments. */
  isWhole: boolean;
  /** What Gemini requires in later requests. */
  signature: string | undefined;
}

export class ChatCalls {
  readonly #answer: AnswerSoFar;
  /** In the order in which they began. */
  readonly #calls: OpenCall[] = [];
  /** The latest of each index. */
  readonly #open = new Map<number, OpenCall>();
  /** The indexes of calls by their ids. */
  readonly #indexes = new Map<string, number>();
  #last = 0;
  #next = 0;

  constructor(answer: AnswerSoFar) {
    this.#answer = answer;
  }

  /** Throws an ExcessError. */
  take(delta: Json): void {
    const id = typeof delta['id'] === 'number' ? String(delta['id']) : nonBlank(delta['id']);
    const { name, arguments: input } = objectOf(delta['function']) ?? {};
    const call = this.#callAt(this.#indexOf(delta['index'], id), id, nonBlank(name));
    call.id ??= id;
    call.name ??= nonBlank(name);
    call.signature ??= signatureIn(delta['extra_content']);
    if (input === undefined || input === null || input === '') return;
    const text = typeof input === 'string' ? input : JSON.stringify(input);
    this.#answer.spendToolInput(text);
    call.isWhole =
      call.input.length === 0 && call.id === undefined && objectOf(parsed(text)) !== null;
    call.input.push(text);
  }

  /** Hands the calls to the answer. Throws an ExcessError. */
  end(): void {
    for (const { id, name, input, signature } of this.#calls.splice(0)) {
      if (name === undefined && id === undefined && input.length === 0) continue;
      this.#answer.takeCall({
        // Some servers send no ids; ids of different turns must differ, too, and OpenAI takes 40 characters.
        id: id ?? `call_${randomUUID().slice(0, 18)}`,
        name: name ?? noName,
        input: input.join(''),
        signed: signature === undefined ? undefined : { google: { thoughtSignature: signature } },
      });
    }
    this.#open.clear();
  }

  /**
   * Some servers give all calls the index 0, or none: there another id and a name begin another call, and without ids a name after a
   * call that is whole.
   */
  #callAt(index: number, id: string | undefined, name: string | undefined): OpenCall {
    const known = this.#open.get(index);
    const isAnother = id !== undefined && known?.id !== undefined && known.id !== id;
    const isNext = id === undefined && name !== undefined && known?.isWhole === true;
    if (known !== undefined && !isAnother && !isNext) return known;
    const earlier = isNext
      ? this.#begin(index)
      : this.#calls.find((one) => one.index === index && one.id === id);
    const found = earlier ?? (name === undefined ? known : undefined) ?? this.#begin(index);
    this.#open.set(index, found);
    return found;
  }

  #begin(index: number): OpenCall {
    this.#answer.beginCall();
    const call: OpenCall = {
      index,
      id: undefined,
      name: undefined,
      input: [],
      isWhole: false,
      signature: undefined,
    };
    this.#calls.push(call);
    return call;
  }

  /** Deltas without an index are numbered by their id; without both they belong to the call before. */
  #indexOf(index: unknown, id: string | undefined): number {
    if (typeof index === 'number') this.#last = index;
    else if (id !== undefined) this.#last = this.#indexes.get(id) ?? this.#next;
    if (id !== undefined) this.#indexes.set(id, this.#last);
    this.#next = Math.max(this.#next, this.#last + 1);
    return this.#last;
  }
}

function nonBlank(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

function signatureIn(extra: unknown): string | undefined {
  return nonBlank(objectOf(objectOf(extra)?.['google'])?.['thought_signature']);
}
