/**
 * How many milliseconds of a processor this thread spends on `work`, which awaits nothing from outside.
 * Unlike the time on the wall it does not grow with what else the machine does.
 */
export async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

const repetitionsMax = 5;

/**
 * As `cpuMsOf`, of several repetitions the least; none follows one that took less than `enoughMs`. A single one may also
 * collect the garbage of other tests in the process, as large as their heap.
 */
export async function leastCpuMsOf(work: () => unknown, enoughMs: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < repetitionsMax && least >= enoughMs; i++) {
    least = Math.min(least, await cpuMsOf(work));
  }
  return least;
}
