/** What an idle platform holds and uses, and how long its first job takes. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Figure, lessIsBetter } from './figures.ts';
import { median, pace } from './load.ts';
import { cpuMs, residentMiB, withCommand, withServer } from './server.ts';
import { echo } from './throughput.ts';

/** After the start: by then its garbage is collected and its executor has ended. */
const settleMs = 8_000;
const cpuSeconds = 20;
const firstJobs = 9;

export async function measureIdle(): Promise<Figure[]> {
  const figures: Figure[] = [];
  const owed = { floor: 180, goal: 130, unit: 'MiB' };
  for (const command of [['npm', 'start'], ['./skillwright']] as const) {
    await withCommand(command, async (pid) => {
      await pause(settleMs);
      const memory = residentMiB(pid);
      figures.push(lessIsBetter(`resident memory, idle, ${command.join(' ')}`, memory, owed));
      if (command[0] === 'npm') return;
      const before = cpuMs(pid);
      await pause(cpuSeconds * 1000);
      const share = (cpuMs(pid) - before) / (10 * cpuSeconds);
      const bounds = { floor: 1, goal: 0.2, unit: '%' };
      figures.push(lessIsBetter('idle CPU, of a core', share, bounds));
    });
  }
  const [kept, ended] = [await firstJobMs('0'), await firstJobMs('1')];
  const bounds = { floor: 150, goal: 100, unit: 'ms' };
  figures.push(
    lessIsBetter('first job after idle time, p50, for its executor', ended - kept, bounds),
  );
  return figures;
}

/** The median of jobs that come two seconds apart, where executors end after `idleSeconds`. */
function firstJobMs(idleSeconds: string): Promise<number> {
  const measure = async (server: Parameters<typeof echo>[0]) => {
    const target = echo(server, { prefer: 'wait=10' });
    await pace(target, { perSecond: 50, seconds: 2, status: 200 });
    const samples: number[] = [];
    for (let i = 0; i < firstJobs; i += 1) {
      await pause(2_000);
      samples.push(...(await pace(target, { perSecond: 1, seconds: 1, status: 200 })));
    }
    return median(samples);
  };
  return withServer('ours', measure, { EXECUTORS_IDLE_SECONDS: idleSeconds });
}
