/**
 * How much one attempt may do to its agent's memories. All of it is recorded in one transaction, on
 * SQLite by the process that answers requests, so it must be short enough not to delay requests.
 */
import { permanentError } from '../kernel/permanent-error.ts';

/** What an attempt remembers, also what it forgets again. */
const rememberedMax = 200;
/** What it remembers and forgets, counted together. */
const changesMax = 400;
/** UTF-8 bytes of all that it remembers. */
const bytesMax = 2 * 1024 * 1024;
/** Words of all that it remembers, and of all that it forgets: each enters or leaves the index. */
const wordsMax = 20_000;

export type RunBounds = ReturnType<typeof createRunBounds>;

/** The bounds of one attempt. What would pass one throws a refusal and is not counted. */
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
    /** A memory of this size, before the work that it makes: it counts even if its words are too many. */
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

    /** A recorded memory of so many words; one of the attempt's own has none to take out. */
    countForgotten(words: number): void {
      if (wordsOut + words > wordsMax) {
        throw permanentError(`a run may forget memories of ${wordsMax} words`);
      }
      countChange();
      wordsOut += words;
    },

    /** What part of one write it takes to record all that was counted. */
    share: () =>
      Math.max((wordsIn + wordsOut) / (2 * wordsMax), changes / changesMax, bytes / bytesMax),
  };
}
