/** Reads /proc of another process. Undefined on other systems and for a process that is gone. */
import { readFileSync } from 'node:fs';

/** Linux counts processor time in hundredths of a second on every machine. */
const msPerTick = 10;
const bytesPerKib = 1_024;

/** Milliseconds of processor time since its start. */
export function cpuMs(pid: number | undefined): number | undefined {
  const stat = read(pid, 'stat');
  if (stat === undefined) return undefined;
  // The name, the second field, may hold spaces and parentheses; utime and stime are 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * msPerTick;
}

/** Bytes of private memory. */
export function ownBytes(pid: number | undefined): number | undefined {
  const kib = /^RssAnon:\s*(\d+)/m.exec(read(pid, 'status') ?? '')?.[1];
  return kib === undefined ? undefined : Number(kib) * bytesPerKib;
}

function read(pid: number | undefined, file: string): string | undefined {
  if (pid === undefined || process.platform !== 'linux') return undefined;
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return undefined;
  }
}
