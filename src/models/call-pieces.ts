/**
 * The pieces that calls of tools come in, in a chat. Some servers number no calls, some repeat a
 * blank id and a blank name with every piece, some say the name after the id; and the SDK takes no
 * piece of a call whose name it has not seen. So pieces wait for the name of their call, and one that
 * never gets a name is told to the model by whoever judges names.
 */
import { type Json, objectOf } from './json.ts';

/** A piece as the SDK takes it. */
export interface CallPiece {
  readonly index: number;
  readonly id?: string;
  /** What Gemini wants to see again. */
  readonly extra_content?: unknown;
  readonly function: { readonly name?: string; readonly arguments: string };
}

export interface CallPieces {
  /** The pieces that can go on with this one. Throws a RangeError when too much waits. */
  take(said: Json | null): CallPiece[];
  /** The calls that never had a name. */
  rest(): CallPiece[];
}

/** Stands for the name of a call that has none. */
const noName = '_';
/** Characters of arguments that wait for the names of their calls, and calls that wait. */
const waitingMax = { characters: 1024 * 1024, calls: 1_000 };

export function createCallPieces(): CallPieces {
  const indexOf = createCallIndexes();
  const named = new Set<number>();
  const waiting = new Map<number, CallPiece>();
  let characters = 0;

  /** What has waited of the call of this piece, with it. */
  function joined(piece: CallPiece): CallPiece {
    const before = waiting.get(piece.index);
    if (before === undefined) return piece;
    waiting.delete(piece.index);
    characters -= before.function.arguments.length;
    const input = before.function.arguments + piece.function.arguments;
    return { ...piece, ...before, function: { ...piece.function, arguments: input } };
  }

  function wait(piece: CallPiece): void {
    waiting.set(piece.index, piece);
    characters += piece.function.arguments.length;
    if (characters > waitingMax.characters || waiting.size > waitingMax.calls) {
      throw new RangeError('calls of tools without a name');
    }
  }

  return {
    take(said) {
      if (said === null) return [];
      const piece = joined(pieceOf(said, indexOf));
      if (piece.function.name !== undefined) named.add(piece.index);
      if (named.has(piece.index)) return [piece];
      wait(piece);
      return [];
    },
    rest() {
      const calls = [...waiting.values()].filter((call) => call.id || call.function.arguments);
      waiting.clear();
      return calls.map((call) => ({ ...call, function: { ...call.function, name: noName } }));
    },
  };
}

function pieceOf(said: Json, indexOf: CallIndexes): CallPiece {
  const { id: saidId, extra_content } = said;
  const { name, arguments: input } = objectOf(said['function']) ?? {};
  const id = typeof saidId === 'number' ? String(saidId) : nonBlank(saidId);
  const called = nonBlank(name);
  return {
    index: indexOf(said['index'], id),
    ...(id === undefined ? {} : { id }),
    ...(extra_content == null ? {} : { extra_content }),
    function: {
      ...(called === undefined ? {} : { name: called }),
      arguments: typeof input === 'string' ? input : input == null ? '' : JSON.stringify(input),
    },
  };
}

function nonBlank(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

type CallIndexes = (index: unknown, id: string | undefined) => number;

/** Numbers calls by their ids; a piece that says nothing belongs to the call before it. */
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
