/**
 * Which run an executor has just begun, visible from outside while its event loop is blocked. The
 * child writes it into its process title (0.6 µs a run), the parent reads it from /proc: so a skill
 * that never gives control back is found at once, and `ps` shows an operator what blocks. It covers
 * the code up to the run's first pause; later code cannot be assigned to a run. Linux only.
 */
import { readFileSync } from 'node:fs';

const isKnown = process.platform === 'linux';
const idle = 'skill executor';

/** The child's side: says what the code that follows belongs to. */
export class RunningMark {
  #isSet = false;

  begin(run: number, skill: string): void {
    if (!isKnown) return;
    this.#isSet = true;
    // The number first: a long title is cut.
    process.title = `${idle} #${run} ${skill}`;
  }

  rest(): void {
    if (!this.#isSet) return;
    this.#isSet = false;
    process.title = idle;
  }
}

/** The parent's side: the run that the child is beginning; undefined when it is not known. */
export function readMark(pid: number | undefined): number | undefined {
  if (!isKnown || pid === undefined) return undefined;
  try {
    const title = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
    const [, run] = /^skill executor #(\d+) /.exec(title) ?? [];
    return run === undefined ? undefined : Number(run);
  } catch {
    return undefined;
  }
}
