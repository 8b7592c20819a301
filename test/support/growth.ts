/**
 * How the time of a function grows with the length of its input. It compares times of the same
 * thread with one another, so neither a slow nor a busy machine changes the result.
 */

/** From one length to the next; a function of linear time takes this many times as long. */
const factor = 16;
const lengthMin = 1_024;
const lengthMax = 65_536;
/** Below this a time is too short to be compared. */
const measurableUs = 1_000;
const repeats = 3;

/**
 * How many times as long `read` takes for `inputOf(16 n)` as for `inputOf(n)`: about 16 where its time is
 * linear, about 256 where it is quadratic. `n` doubles until the time can be measured; 1 where 64 Ki characters
 * take too little time to be compared.
 */
export function growthOf(
  inputOf: (length: number) => string,
  read: (input: string) => void,
): number {
  for (let length = lengthMin; length <= lengthMax; length *= 2) {
    const time = shortestTime(inputOf(length), read);
    if (time < measurableUs) continue;
    // Repeated only where the first time is too long: the shortest counts.
    return shortestTime(inputOf(length * factor), read, time * linearGrowthMax) / time;
  }
  return 1;
}

/** Between linear growth and quadratic growth. */
export const linearGrowthMax = factor * Math.sqrt(factor);

/** Microseconds of the processor: the shortest of some times, or the first that is below `enoughUs`. */
function shortestTime(input: string, read: (input: string) => void, enoughUs = 0): number {
  let shortest = Number.POSITIVE_INFINITY;
  for (let i = 0; i < repeats && shortest >= enoughUs; i++) {
    const before = process.threadCpuUsage();
    try {
      read(input);
    } catch {
      // A refusal takes its time as well.
    }
    const { user, system } = process.threadCpuUsage(before);
    shortest = Math.min(shortest, user + system);
  }
  return shortest;
}
