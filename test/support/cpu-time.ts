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
