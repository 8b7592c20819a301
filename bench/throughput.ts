/** As many jobs as 32 connections can ask for: what is done a second, and what each costs. */
import { setTimeout as pause } from 'node:timers/promises';
import { round } from './figures.ts';
import { flood, type Request } from './load.ts';

/** V8 compiles what jobs need for 6 to 8 seconds under load, which takes a fifth of the processor time until then. */
const warmUpSeconds = 10;
const drainDeadlineMs = 60_000;

/** What is put under load: one server, or a cluster with its stores. */
export interface UnderLoad {
  readonly url: string;
  /** Headers that a request of the load carries. */
  readonly headers: Readonly<Record<string, string>>;
  /** Jobs that have completed since the start. */
  completed(): Promise<number>;
  /** Processor time that its processes have used so far, by what they are. */
  cpuMs(): Readonly<Record<string, number>>;
  /** Resident memory of all its processes. */
  residentMiB(): number;
}

export interface Turn {
  /** Accepted and completed, from the first request to the last completion. */
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
  readonly peakMiB: number;
}

/** The request that the ceilings know too. */
export function echo(
  { url, headers }: Pick<UnderLoad, 'url' | 'headers'>,
  more: Readonly<Record<string, string>> = {},
): Request {
  return {
    method: 'POST',
    url: `${url}/api/util/v1.0/echo`,
    headers: { ...headers, ...more },
    body: JSON.stringify({ text: 'The quick brown fox jumps over the lazy dog.' }),
  };
}

/** Lets V8 compile what a job needs; how many jobs that took. */
export async function warmUp(
  server: Parameters<typeof echo>[0] & Pick<UnderLoad, 'completed'>,
): Promise<number> {
  const { accepted } = await flood(echo(server), warmUpSeconds);
  return await drained(server, accepted);
}

/** One turn of `name`, after a warm-up; prints what came of it. */
export async function measureTurn(name: string, server: UnderLoad, seconds: number): Promise<Turn> {
  const before = await warmUp(server);
  const cpuBefore = server.cpuMs();
  const begun = performance.now();
  let peakMiB = 0;
  const watch = setInterval(() => {
    peakMiB = Math.max(peakMiB, server.residentMiB());
  }, 250);
  const load = await flood(echo(server), seconds);
  // The generator may hang up on the last answers, whose jobs are nevertheless done.
  const jobs = (await drained(server, before + load.accepted)) - before;
  clearInterval(watch);
  const perSecond = jobs / ((performance.now() - begun) / 1000);
  const cpu = Object.entries(server.cpuMs()).map(
    ([part, ms]) => [part, ((ms - (cpuBefore[part] ?? 0)) * 1000) / jobs] as const,
  );
  const cpuMicroseconds = cpu.reduce((sum, [, each]) => sum + each, 0);
  const parts = cpu.map(([part, each]) => `${part} ${round(each)}`).join(', ');
  console.log(
    `${name.padEnd(8)} ${round(perSecond)} jobs/s  ${round(cpuMicroseconds)} µs CPU a job` +
      `${cpu.length > 1 ? ` (${parts})` : ''}  ` +
      `${round(peakMiB)} MiB  (${load.generator}: ${load.accepted} accepted, ${load.refused} refused)`,
  );
  return { perSecond, cpuMicroseconds, peakMiB };
}

/** Waits until at least `count` jobs have completed and no more do; how many they are. */
export async function drained(
  server: Pick<UnderLoad, 'completed'>,
  count: number,
): Promise<number> {
  const end = performance.now() + drainDeadlineMs;
  let last = -1;
  for (;;) {
    const completed = await server.completed();
    if (completed >= count && completed === last) return completed;
    if (performance.now() > end) {
      throw new Error(`Of ${count} accepted jobs ${completed} completed in time.`);
    }
    last = completed;
    await pause(20);
  }
}
