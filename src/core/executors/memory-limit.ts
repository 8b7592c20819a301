/**
 * How much memory a child may hold: its heap limit and an allowance for what the runtime needs
 * beside the heap. V8 holds the heap to its limit by itself; this is for everything else, Buffers
 * above all.
 */
import { canReadProc, privateBytes } from '../../kernel/proc.ts';

/**
 * MB beyond the heap limit that a child may hold before it is killed: the young generation, code,
 * threads and what sockets, TLS and compression need outside the heap. Pages of files do not count.
 */
export const memoryAllowanceMb = 128;
/** Where the parent cannot read a child's memory, the child's report includes pages of files. */
const filePagesMb = 64;
/** Share of the limit above which a child gets no more runs and is replaced once its runs have ended. */
const softShare = 0.75;
const bytesPerMb = 1_048_576;

/** MB that a child may hold in all. */
export function memoryLimitMb(heapMb: number): number {
  return heapMb + memoryAllowanceMb + (canReadProc ? 0 : filePagesMb);
}

/** `reportedBytes` is the memory that the child reported last. */
export function memoryLevel(
  child: { pid: number | undefined; reportedBytes: number },
  limitMb: number,
): 'fine' | 'much' | 'too much' {
  const { pid, reportedBytes } = child;
  const bytes = canReadProc ? privateBytes(pid) : reportedBytes;
  const share = (bytes ?? 0) / (limitMb * bytesPerMb);
  if (share > 1) return 'too much';
  return share > softShare ? 'much' : 'fine';
}
