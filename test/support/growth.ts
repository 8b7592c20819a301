/**
 * How the time of a function grows with the length of its input. One text is compared with several texts that have as many
 * characters together: reading either makes as much garbage, so what else the machine and the process do affects both
 * alike. Measured is processor time, in pairs, of which the best counts: only what grows faster is slower in each.
 */

/** Texts that have as many characters together as the one that they are compared with. */
const parts = 64;
const lengthMin = 16_384;
/** From one length to the next. */
const factor = 4;
const lengthMax = 262_144;
/** A text that takes less needs no comparison: it is read at 25 MB a second, however its time grows. */
const measurableUs = 10_000;
const pairsMax = 15;

/**
 * Between the growth of linear time, which is 1, or a few times that where a text needs more memory than a cache has, and
 * that of quadratic time, which is as many as there are parts.
 */
export const linearGrowthMax = 16;

type Read = (input: string) => unknown;

/**
 * How many times as long `read` takes for one text as for texts that have as many characters together. The length grows until the
 * time can be measured; 1 where the longest takes too little.
 */
export async function growthOf(inputOf: (length: number) => string, read: Read): Promise<number> {
  for (let length = lengthMin; length <= lengthMax; length *= factor) {
    const whole = inputOf(length);
    if ((await timeOf([whole], read)) < measurableUs) continue;
    const growth = await growthOfPairs(whole, inputOf(length / parts), read);
    if (growth !== null) return growth;
  }
  return 1;
}

/** Null where the text takes too little after all. */
async function growthOfPairs(whole: string, part: string, read: Read): Promise<number | null> {
  const texts = Array.from({ length: parts }, () => part);
  let [ofWhole, ofParts] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let pair = 0; pair < pairsMax; pair++) {
    ofParts = Math.min(ofParts, await timeOf(texts, read));
    ofWhole = Math.min(ofWhole, await timeOf([whole], read));
    if (ofWhole < measurableUs) return null;
    if (ofWhole < ofParts * linearGrowthMax) break;
  }
  return ofWhole / ofParts;
}

/** Microseconds of the processor, at least one. Those of the thread alone are known to some milliseconds only. */
async function timeOf(texts: readonly string[], read: Read): Promise<number> {
  const before = process.cpuUsage();
  for (const text of texts) {
    try {
      await read(text);
    } catch {
      // A refusal takes its time as well.
    }
  }
  const { user, system } = process.cpuUsage(before);
  return Math.max(1, user + system);
}
