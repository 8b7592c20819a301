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

export type RunBounds = ReturnType<typeof createRunBounds>;

/** The limits of one attempt. A change beyond a limit throws a permanent error and is not counted. */
export function createRunBounds() {
  let remembered = 0;
  let changes = 0;
  let bytes = 0;
  let wordsIn = 0;
  let wordsOut = 0;

  function countChange(): void {
    if (changes >= changesMax)
      throw permanentError(`a run may remember and forget ${changesMax} times`);
    changes += 1;
  }

  return {
    /** Counts a memory of `size` bytes, before its words are computed; it counts even if they are too many. */
    countRemembered(size: number): void {
      if (remembered >= rememberedMax)
        throw permanentError(`a run may remember ${rememberedMax} memories`);
      if (bytes + size > bytesMax) throw permanentError('a run may remember 2 MiB');
      countChange();
      remembered += 1;
      bytes += size;
    },

    countWords(words: number): void {
      if (wordsIn + words > wordsMax) throw permanentError(`a run may remember ${wordsMax} words`);
      wordsIn += words;
    },

    /** Counts a forgotten memory; `words` are those to remove from the index, 0 for an unrecorded memory. */
    countForgotten(words: number): void {
      if (wordsOut + words > wordsMax) {
        throw permanentError(`a run may forget memories of ${wordsMax} words`);
      }
      countChange();
      wordsOut += words;
    },

    /** The share of one transaction that recording the changes takes. */
    share: () =>
      Math.max((wordsIn + wordsOut) / (2 * wordsMax), changes / changesMax, bytes / bytesMax),
  };
}
