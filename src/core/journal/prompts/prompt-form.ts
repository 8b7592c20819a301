/**
 * How kept prompts are written, so that a dialogue of many turns costs what is new in each: a value or an element of a list
 * that an earlier prompt of the job has is named by its place there, and a list that begins as the one of the turn before
 * says so. Read again, a prompt is what was sent, byte for byte. Pure.
 */
import { hash } from 'node:crypto';
import type { Json } from '../../../kernel/json.ts';

/** Where a value is stored: the step of the prompt that was the first to have it, and its number among that one's own. */
type Place = readonly [n: number, slot: number];
/** Values that lie one after another. */
type Range = readonly [n: number, slot: number, count: number];

interface OwnValue {
  readonly v: unknown;
}

/** A list, which begins with as many elements of the same list of the prompt before as `same` says. */
interface WrittenList {
  readonly same?: number;
  readonly list: readonly (Range | OwnValue)[];
}

type WrittenField = OwnValue | { readonly at: Place } | WrittenList;

/** A prompt as it is stored. */
export interface WrittenPrompt {
  /** The prompt that its lists go on from; absent for none. */
  readonly base?: number;
  readonly fields: readonly (readonly [name: string, field: WrittenField])[];
}

/** Prompts that go on from one another; then one stands alone, so that few are read for one. */
const chainMax = 32;
/** JSON of so few characters is not looked for in earlier prompts. */
const shortMax = 32;

/** The prompt before, as the next one of its dialogue may go on from it. */
interface LastPrompt {
  readonly n: number;
  readonly from: number;
  readonly length: number;
  readonly lists: ReadonlyMap<string, readonly Place[]>;
}

/** What a claim knows of the kept prompts of its job. */
export class KnownPrompts {
  /** The places of values, by digest. */
  readonly places = new Map<string, Place>();
  /** By dialogue. */
  readonly last = new Map<string, LastPrompt>();
}

/** A prompt that is to be stored. */
export interface PromptToKeep {
  readonly n: number;
  /** UTF-8 bytes of what is sent. */
  readonly bytes: number;
  /** The first one of those that its lists go on from. */
  readonly from: number;
  readonly text: string;
  readonly dialogue: string;
  readonly last: LastPrompt;
  /** The places of its own values, by digest. */
  readonly added: ReadonlyMap<string, Place>;
}

/** Has later prompts refer to one that is stored. */
export function rememberPrompt(known: KnownPrompts, prompt: PromptToKeep): void {
  for (const [digest, place] of prompt.added) known.places.set(digest, place);
  known.last.set(prompt.dialogue, prompt.last);
}

/** Writes the prompt of a step, for a dialogue whose prompts begin alike. */
export function writePrompt(
  known: KnownPrompts,
  dialogue: string,
  n: number,
  body: Json,
): PromptToKeep {
  const last = known.last.get(dialogue);
  const base = last !== undefined && last.length < chainMax ? last : undefined;
  const writer = new PromptWriter(known, n);
  const lists = new Map<string, readonly Place[]>();
  const fields: string[] = [];
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined) continue;
    writer.bytes += Buffer.byteLength(JSON.stringify(name)) + 2;
    if (Array.isArray(value)) {
      const places = value.map((one) => writer.placeOf(one));
      writer.bytes += Math.max(2, value.length + 1);
      fields.push(field(name, writer.listOf(places, base?.lists.get(name) ?? [])));
      lists.set(name, places);
    } else fields.push(field(name, writer.valueOf(value)));
  }
  const before = base === undefined ? '' : `"base":${base.n},`;
  const from = base?.from ?? n;
  return {
    n,
    bytes: fields.length === 0 ? 2 : writer.bytes + 1,
    from,
    text: `{${before}"fields":[${fields.join(',')}]}`,
    dialogue,
    last: { n, from, length: base === undefined ? 1 : base.length + 1, lists },
    added: writer.added,
  };
}

const field = (name: string, json: string) => `[${JSON.stringify(name)},${json}]`;

/** Writes the values of one prompt, each once. */
class PromptWriter {
  readonly #known: KnownPrompts;
  readonly #n: number;
  /** The JSON of its own values, by their slots, until they are written. */
  readonly #own: string[] = [];
  /** The number of those that are written: a reader counts them in the order of the text. */
  #written = 0;
  readonly added = new Map<string, Place>();
  bytes = 0;

  constructor(known: KnownPrompts, n: number) {
    this.#known = known;
    this.#n = n;
  }

  /** The place of an element, which is its own where no earlier prompt has it. */
  placeOf(value: unknown): Place {
    // As in a list of JSON.stringify.
    const json = JSON.stringify(value) ?? 'null';
    this.bytes += Buffer.byteLength(json);
    return this.#find(json) ?? this.#add(json);
  }

  valueOf(value: unknown): string {
    const json = JSON.stringify(value);
    this.bytes += Buffer.byteLength(json);
    const place = json.length <= shortMax ? undefined : this.#find(json);
    if (place !== undefined) return `{"at":[${place.join()}]}`;
    this.#add(json);
    return this.#ownNext();
  }

  /** A list: what it has in common with the one before, then ranges of known values and its own. */
  listOf(places: readonly Place[], before: readonly Place[]): string {
    let same = 0;
    while (same < places.length && isSame(places[same], before[same])) same += 1;
    const parts: string[] = [];
    for (let i = same; i < places.length; ) {
      const [n, slot] = places[i] as Place;
      if (n === this.#n && slot === this.#written) {
        parts.push(this.#ownNext());
        i += 1;
        continue;
      }
      let count = 1;
      while (isSame(places[i + count], [n, slot + count]) && !this.#isUnwritten(slot + count, n)) {
        count += 1;
      }
      parts.push(`[${n},${slot},${count}]`);
      i += count;
    }
    const shared = same === 0 ? '' : `"same":${same},`;
    return `{${shared}"list":[${parts.join(',')}]}`;
  }

  #isUnwritten = (slot: number, n: number) => n === this.#n && slot >= this.#written;

  #ownNext(): string {
    const json = this.#own[this.#written];
    this.#written += 1;
    return `{"v":${json}}`;
  }

  #find(json: string): Place | undefined {
    const digest = digestOf(json);
    return this.#known.places.get(digest) ?? this.added.get(digest);
  }

  #add(json: string): Place {
    const place: Place = [this.#n, this.#own.length];
    this.#own.push(json);
    this.added.set(digestOf(json), place);
    return place;
  }
}

const digestOf = (json: string) => hash('sha256', json, 'base64');
const isSame = (a: Place | undefined, b: Place | undefined) =>
  a !== undefined && b !== undefined && a[0] === b[0] && a[1] === b[1];

/** The steps whose prompts a stored one refers to, itself left out. */
export function promptsNamed({ base, fields }: WrittenPrompt, n: number): number[] {
  const named = new Set<number>(base === undefined ? [] : [base]);
  for (const [, field] of fields) {
    if ('at' in field) named.add(field.at[0]);
    if (!('list' in field)) continue;
    for (const part of field.list) if (isRange(part)) named.add(part[0]);
  }
  named.delete(n);
  return [...named];
}

const isRange = (part: Range | OwnValue): part is Range => Array.isArray(part);

/** The own values of a stored prompt, by their slots. */
function ownValues({ fields }: WrittenPrompt): unknown[] {
  return fields.flatMap(([, field]) => {
    if ('v' in field) return [field.v];
    return 'list' in field ? field.list.flatMap((part) => (isRange(part) ? [] : [part.v])) : [];
  });
}

/** Reads prompts of a job, of which it has all that the requested ones refer to. */
export class PromptReader {
  readonly #written: ReadonlyMap<number, WrittenPrompt>;
  readonly #values = new Map<number, readonly unknown[]>();

  constructor(written: ReadonlyMap<number, WrittenPrompt>) {
    this.#written = written;
  }

  /** The body that was sent; null where a prompt that it refers to is gone. */
  bodyOf(n: number): Json | null {
    const written = this.#written.get(n);
    if (written === undefined) return null;
    const body: Json = {};
    for (const [name, field] of written.fields) {
      if ('v' in field) body[name] = field.v;
      else if ('at' in field) body[name] = this.#valueAt(field.at);
      else body[name] = this.placesOf(n, name)?.map((place) => this.#valueAt(place));
      if (body[name] === undefined || hasGap(body[name])) return null;
    }
    return body;
  }

  /** The places of the elements of a list; null where it is not whole. */
  placesOf(n: number, name: string): Place[] | null {
    const written = this.#written.get(n);
    const field = written?.fields.find(([one]) => one === name)?.[1];
    if (written === undefined || field === undefined || !('list' in field)) return null;
    const { same = 0, list } = field;
    const before = same === 0 ? [] : this.placesOf(written.base ?? 0, name);
    if (before === null || before.length < same) return null;
    let slot = this.#slotsBefore(written, name);
    const own = list.flatMap((part): Place[] => {
      if (!isRange(part)) return [[n, slot++]];
      const [of, first, count] = part;
      return Array.from({ length: count }, (_, i): Place => [of, first + i]);
    });
    return [...before.slice(0, same), ...own];
  }

  /** The places of the fields that are no lists. */
  singlesOf(n: number): [name: string, place: Place][] {
    const written = this.#written.get(n);
    if (written === undefined) return [];
    return written.fields.flatMap(([name, field]): [string, Place][] => {
      if ('at' in field) return [[name, field.at]];
      return 'v' in field ? [[name, [n, this.#slotsBefore(written, name)]]] : [];
    });
  }

  #slotsBefore(written: WrittenPrompt, name: string): number {
    const at = written.fields.findIndex(([one]) => one === name);
    return ownValues({ fields: written.fields.slice(0, at) }).length;
  }

  #valueAt([n, slot]: Place): unknown {
    let values = this.#values.get(n);
    if (values === undefined) {
      const written = this.#written.get(n);
      values = written === undefined ? [] : ownValues(written);
      this.#values.set(n, values);
    }
    return values[slot];
  }
}

const hasGap = (value: unknown) => Array.isArray(value) && value.includes(undefined);

/** Has the next prompts of a dialogue go on from one that an earlier claim has stored. */
export function recallPrompt(
  known: KnownPrompts,
  dialogue: string,
  { n, from, chain }: { readonly n: number; readonly from: number; readonly chain: number },
  reader: PromptReader,
): void {
  const body = reader.bodyOf(n);
  if (body === null) return;
  const lists = new Map<string, readonly Place[]>();
  for (const [name, value] of Object.entries(body)) {
    const places = Array.isArray(value) ? reader.placesOf(n, name) : null;
    if (places === null) continue;
    lists.set(name, places);
    places.forEach((place, i) => {
      known.places.set(digestOf(JSON.stringify((value as unknown[])[i])), place);
    });
  }
  for (const [name, place] of reader.singlesOf(n)) {
    known.places.set(digestOf(JSON.stringify(body[name])), place);
  }
  known.last.set(dialogue, { n, from, length: chain, lists });
}
