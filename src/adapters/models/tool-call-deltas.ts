/**
 * The deltas in which a chat streams tool calls, repaired for the SDK. Some servers send no index, some
 * repeat a blank id and name with every delta, some send the name after the id. The SDK rejects a delta
 * whose call has no name yet, so deltas are held until the name arrives. A call that never gets a name
 * is passed on under the name `_`, and the agent tells the model that there is no such tool.
 */
import { type Json, objectOf } from '../../kernel/json.ts';

/** A delta as the SDK accepts it. */
export interface ToolCallDelta {
  readonly index: number;
  readonly id?: string;
  /** Gemini requires it in later requests. */
  readonly extra_content?: unknown;
  readonly function: { readonly name?: string; readonly arguments: string };
}

/** The name of a call that has none. */
const noName = '_';
/** Bounds of what is held: characters of arguments, and calls. */
const heldMax = { characters: 1024 * 1024, calls: 1_000 };

/** Numbers calls by their ids. A delta without index and id belongs to the call before it. */
class CallIndexes {
  readonly #indexes = new Map<string, number>();
  #last = 0;
  #next = 0;

  indexOf(index: unknown, id: string | undefined): number {
    if (typeof index === 'number') this.#last = index;
    else if (id !== undefined) this.#last = this.#indexes.get(id) ?? this.#next;
    if (id !== undefined) this.#indexes.set(id, this.#last);
    this.#next = Math.max(this.#next, this.#last + 1);
    return this.#last;
  }
}

export class ToolCallDeltas {
  readonly #indexes = new CallIndexes();
  readonly #named = new Set<number>();
  readonly #held = new Map<number, ToolCallDelta>();
  #characters = 0;

  /** The deltas that can be forwarded now. Throws a RangeError when too much is held. */
  take(raw: Json | null): ToolCallDelta[] {
    if (raw === null) return [];
    const delta = this.#withHeld(parseDelta(raw, this.#indexes));
    if (delta.function.name !== undefined) this.#named.add(delta.index);
    if (this.#named.has(delta.index)) return [delta];
    this.#hold(delta);
    return [];
  }

  /** The calls that never had a name. */
  rest(): ToolCallDelta[] {
    const calls = [...this.#held.values()].filter((call) => call.id || call.function.arguments);
    this.#held.clear();
    return calls.map((call) => ({ ...call, function: { ...call.function, name: noName } }));
  }

  /** The delta, appended to what is held of its call. */
  #withHeld(delta: ToolCallDelta): ToolCallDelta {
    const before = this.#held.get(delta.index);
    if (before === undefined) return delta;
    this.#held.delete(delta.index);
    this.#characters -= before.function.arguments.length;
    const input = before.function.arguments + delta.function.arguments;
    return { ...delta, ...before, function: { ...delta.function, arguments: input } };
  }

  #hold(delta: ToolCallDelta): void {
    this.#held.set(delta.index, delta);
    this.#characters += delta.function.arguments.length;
    if (this.#characters > heldMax.characters || this.#held.size > heldMax.calls) {
      throw new RangeError('calls of tools without a name');
    }
  }
}

function parseDelta(raw: Json, indexes: CallIndexes): ToolCallDelta {
  const { id: rawId, extra_content } = raw;
  const { name: rawName, arguments: input } = objectOf(raw['function']) ?? {};
  const id = typeof rawId === 'number' ? String(rawId) : nonBlank(rawId);
  const name = nonBlank(rawName);
  return {
    index: indexes.indexOf(raw['index'], id),
    ...(id === undefined ? {} : { id }),
    ...(extra_content == null ? {} : { extra_content }),
    function: {
      ...(name === undefined ? {} : { name }),
      arguments: typeof input === 'string' ? input : input == null ? '' : JSON.stringify(input),
    },
  };
}

function nonBlank(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}
