/**
 * A cache of the codes of owners, for SQLite only. SQLite cannot count bits, and reading 100,000 codes takes a hundred
 * times as long as comparing them. Each search first reads the codes recorded since the last one. Codes of deleted
 * vectors stay until the owner's entry is reloaded; the search ignores a match whose memory is gone.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Handle } from '../../adapters/database/database.ts';
import { compare, nearestOf, wordsOf } from './codes.ts';
import type { OwnerRow } from './owners.store.ts';
import { codeBefore, listCodes } from './vectors.store.ts';

/** Bytes of all owners together; the least recently used owner is evicted first. */
const cacheBytesMax = 64 * 1024 * 1024;
/** Codes of one owner, which may also take half of the bytes at most; only the newest ones are searched. */
const codesMax = 250_000;
/** Bytes of a memory's number, and of a 32-bit word of its code. */
const seqBytes = Float64Array.BYTES_PER_ELEMENT;
const wordBytes = Uint32Array.BYTES_PER_ELEMENT;
/** Codes read and compared in one turn of the event loop. */
const readMax = 2_000;
const comparedMax = 8_000;
/** An entry is reloaded when it has more codes than the owner's memories times `excess` plus `excessMin`. */
const excess = 1.25;
const excessMin = 256;

interface CachedCodes {
  readonly key: string;
  readonly words: number;
  /** The capacity in codes; a full entry overwrites its oldest code. */
  readonly most: number;
  /** The number of the last row that was read. */
  read: number;
  length: number;
  /** Where the next code is written once the entry is full. */
  next: number;
  seqs: Float64Array;
  codes: Uint32Array;
  /** The last read under way; reads are chained so that no row is read twice. */
  reading: Promise<unknown>;
}

/** The codes of an owner's memories by a model. */
interface OwnerCodes {
  readonly owner: OwnerRow;
  readonly model: number;
  readonly dimensions: number;
}

export class CodeCache {
  readonly #bytesMax: number;
  /** Least recently used first. */
  readonly #entries = new Map<string, CachedCodes>();

  /** `bytesMax` must hold two owners, because a search compares the agent's own codes and those of its users. */
  constructor(bytesMax = cacheBytesMax) {
    this.#bytesMax = bytesMax;
  }

  /** The numbers of the owner's `most` memories whose codes differ least from `code`. */
  async nearest(
    db: Handle,
    searched: OwnerCodes,
    code: Uint8Array,
    most: number,
    mayBe: ((seq: number) => boolean) | null,
  ): Promise<number[]> {
    const entry = this.#entryOf(searched);
    entry.reading = entry.reading.catch(() => {}).then(() => readOn(db, entry, searched));
    await entry.reading;
    this.#makeRoom();
    const { length, seqs, codes } = entry;
    const distances = new Uint16Array(length);
    for (let from = 0; from < length; from += comparedMax) {
      if (from > 0) await turn();
      const to = Math.min(length, from + comparedMax);
      compare(codes, wordsIn(code), distances, { from, to });
    }
    return nearestOf(seqs, distances, most, mayBe);
  }

  /** Drops all codes, for example when a user is erased. */
  clear(): void {
    this.#entries.clear();
  }

  #entryOf({ owner: { id, count }, model, dimensions }: OwnerCodes): CachedCodes {
    const key = `${id}/${model}`;
    const known = this.#entries.get(key);
    this.#entries.delete(key);
    const isFit = known !== undefined && known.length <= count * excess + excessMin;
    const entry = isFit ? known : emptyEntry(key, wordsOf(dimensions), this.#bytesMax / 2);
    this.#entries.set(key, entry);
    return entry;
  }

  #makeRoom(): void {
    let bytes = [...this.#entries.values()].reduce((sum, one) => sum + sizeOf(one), 0);
    for (const [key, entry] of this.#entries) {
      if (bytes <= this.#bytesMax) break;
      this.#entries.delete(key);
      bytes -= sizeOf(entry);
    }
  }
}

function emptyEntry(key: string, words: number, bytes: number): CachedCodes {
  const most = Math.min(codesMax, Math.floor(bytes / (seqBytes + words * wordBytes)));
  const none = { seqs: new Float64Array(0), codes: new Uint32Array(0) };
  return { key, words, most, read: 0, length: 0, next: 0, ...none, reading: Promise.resolve() };
}

const sizeOf = ({ seqs, codes }: CachedCodes) => seqs.byteLength + codes.byteLength;

async function readOn(db: Handle, entry: CachedCodes, { owner, model }: OwnerCodes): Promise<void> {
  for (;;) {
    if (entry.read === 0 && owner.count > entry.most) {
      entry.read = await codeBefore(db, owner, model, entry.most);
    }
    const rows = await listCodes(db, owner, { model, n: entry.read, max: readMax });
    for (const { n, seq, code } of rows) {
      entry.read = n;
      if (code.length === entry.words * 4) add(entry, seq, code);
    }
    if (rows.length < readMax) return;
    await turn();
  }
}

function add(entry: CachedCodes, seq: number, code: Uint8Array): void {
  const { words, most, length, next } = entry;
  const isFull = length === most;
  const place = isFull ? next : length;
  if (place === entry.seqs.length) {
    const room = Math.min(most, Math.max(64, Math.ceil(length * 1.5)));
    const { seqs, codes } = entry;
    entry.seqs = new Float64Array(room);
    entry.seqs.set(seqs);
    entry.codes = new Uint32Array(room * words);
    entry.codes.set(codes);
  }
  entry.seqs[place] = seq;
  entry.codes.set(wordsIn(code), place * words);
  if (isFull) entry.next = (place + 1) % most;
  else entry.length += 1;
}

const wordsIn = (code: Uint8Array) => new Uint32Array(Uint8Array.from(code).buffer);
