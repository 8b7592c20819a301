/**
 * Limits on the memory changes of one attempt. One transaction records all of them, on SQLite in the process that
 * answers requests, so it must be short.
 */
import { permanentError } from '../../kernel/permanent-error.ts';

/** Memories that an attempt may remember, including those that it forgets again. */
const rememberedMax = 200;
/** Calls of remember and forget together. */
const changesMax = 400;
/** UTF-8 bytes of all remembered memories. */
const bytesMax = 2 * 1024 * 1024;
/** Words of all remembered memories, and of all forgotten ones: each is added to the index or removed. */
const wordsMax = 20_000;

/** The limits of one attempt. A change beyond a limit throws a permanent error and is not counted. */
export class MemoryBounds {
  #remembered = 0;
  #changes = 0;
  #bytes = 0;
  #wordsIn = 0;
  #wordsOut = 0;

  /** Counts a memory of `size` bytes, before its words are computed; it counts even if they are too many. */
  countRemembered(size: number): void {
    if (this.#remembered >= rememberedMax)
      throw permanentError(`a run may remember ${rememberedMax} memories`);
    if (this.#bytes + size > bytesMax) throw permanentError('a run may remember 2 MiB');
    this.#countChange();
    this.#remembered += 1;
    this.#bytes += size;
  }

  countWords(words: number): void {
    if (this.#wordsIn + words > wordsMax)
      throw permanentError(`a run may remember ${wordsMax} words`);
    this.#wordsIn += words;
  }

  /** Counts a forgotten memory; `words` are those to remove from the index, 0 for an unrecorded memory. */
  countForgotten(words: number): void {
    if (this.#wordsOut + words > wordsMax) {
      throw permanentError(`a run may forget memories of ${wordsMax} words`);
    }
    this.#countChange();
    this.#wordsOut += words;
  }

  /** The share of one transaction that recording the changes takes. */
  share(): number {
    const words = this.#wordsIn + this.#wordsOut;
    return Math.max(words / (2 * wordsMax), this.#changes / changesMax, this.#bytes / bytesMax);
  }

  #countChange(): void {
    if (this.#changes >= changesMax)
      throw permanentError(`a run may remember and forget ${changesMax} times`);
    this.#changes += 1;
  }
}
