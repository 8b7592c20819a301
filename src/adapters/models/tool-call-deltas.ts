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

export interface ToolCallDeltas {
  /** The deltas that can be forwarded now. Throws a RangeError when too much is held. */
  take(raw: Json | null): ToolCallDelta[];
  /** The calls that never had a name. */
  rest(): ToolCallDelta[];
}

/** The name of a call that has none. */
const noName = '_';
/** Bounds of what is held: characters of arguments, and calls. */
const heldMax = { characters: 1024 * 1024, calls: 1_000 };

export function createToolCallDeltas(): ToolCallDeltas {
  const indexOf = createCallIndexes();
  const named = new Set<number>();
  const held = new Map<number, ToolCallDelta>();
  let characters = 0;

  /** The delta, appended to what is held of its call. */
  function withHeld(delta: ToolCallDelta): ToolCallDelta {
    const before = held.get(delta.index);
    if (before === undefined) return delta;
    held.delete(delta.index);
    characters -= before.function.arguments.length;
    const input = before.function.arguments + delta.function.arguments;
    return { ...delta, ...before, function: { ...delta.function, arguments: input } };
  }

  function hold(delta: ToolCallDelta): void {
    held.set(delta.index, delta);
    characters += delta.function.arguments.length;
    if (characters > heldMax.characters || held.size > heldMax.calls) {
      throw new RangeError('calls of tools without a name');
    }
  }

  return {
    take(raw) {
      if (raw === null) return [];
      const delta = withHeld(parseDelta(raw, indexOf));
      if (delta.function.name !== undefined) named.add(delta.index);
      if (named.has(delta.index)) return [delta];
      hold(delta);
      return [];
    },
    rest() {
      const calls = [...held.values()].filter((call) => call.id || call.function.arguments);
      held.clear();
      return calls.map((call) => ({ ...call, function: { ...call.function, name: noName } }));
    },
  };
}

function parseDelta(raw: Json, indexOf: CallIndexes): ToolCallDelta {
  const { id: rawId, extra_content } = raw;
  const { name: rawName, arguments: input } = objectOf(raw['function']) ?? {};
  const id = typeof rawId === 'number' ? String(rawId) : nonBlank(rawId);
  const name = nonBlank(rawName);
  return {
    index: indexOf(raw['index'], id),
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

type CallIndexes = (index: unknown, id: string | undefined) => number;

/** Numbers calls by their ids. A delta without index and id belongs to the call before it. */
function createCallIndexes(): CallIndexes {
  const indexes = new Map<string, number>();
  let last = 0;
  let next = 0;
  return (index, id) => {
    if (typeof index === 'number') last = index;
    else if (id !== undefined) last = indexes.get(id) ?? next;
    if (id !== undefined) indexes.set(id, last);
    next = Math.max(next, last + 1);
    return last;
  };
}
