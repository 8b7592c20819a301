/** Reads /proc of another process. Undefined on other systems and for a process that is gone. */
import { readFileSync } from 'node:fs';

/** Whether a process can measure another one. */
export const canReadProc = process.platform === 'linux';

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

/**
 * Bytes of memory that a process has to itself, swapped ones too, without the pages of files (the
 * runtime's own code is 37 MB of those).
 */
export function privateBytes(pid: number | undefined): number | undefined {
  const status = read(pid, 'status');
  if (status === undefined) return undefined;
  const anonymous = kibibytes(status, 'RssAnon') ?? kibibytes(status, 'VmRSS');
  if (anonymous === undefined) return undefined;
  const rest = (kibibytes(status, 'RssShmem') ?? 0) + (kibibytes(status, 'VmSwap') ?? 0);
  return (anonymous + rest) * bytesPerKib;
}

function kibibytes(status: string, field: string): number | undefined {
  const at = status.indexOf(`\n${field}:`);
  return at === -1 ? undefined : Number.parseInt(status.slice(at + field.length + 2), 10);
}

function read(pid: number | undefined, file: string): string | undefined {
  if (pid === undefined || !canReadProc) return undefined;
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return undefined;
  }
}
