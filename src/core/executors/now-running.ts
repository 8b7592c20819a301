/**
 * Which run an executor has begun last, visible from outside while its event loop is blocked. The
 * child writes it into its process title (0.6 µs a run), the parent reads it from /proc: so a skill
 * that never gives control back is found at once, and `ps` shows an operator what blocks. It covers
 * the code up to the run's first pause; later code cannot be assigned to a run. Linux only.
 */
import { readFileSync } from 'node:fs';

const isKnown = process.platform === 'linux';
const idle = 'skill executor';

/** The child's side: says what the code that follows belongs to. */
export class RunningMark {
  #begun: number | undefined;

  /** Says that no run has begun. */
  constructor() {
    if (isKnown) process.title = `${idle} after #0 `;
  }

  begin(run: number, skill: string): void {
    if (!isKnown) return;
    this.#begun = run;
    // The number first: a long title is cut.
    process.title = `${idle} #${run} ${skill}`;
  }

  rest(): void {
    if (this.#begun === undefined) return;
    process.title = `${idle} after #${this.#begun} `;
    this.#begun = undefined;
  }
}

/** The last run that a child has begun, 0 before the first, and whether its first code still executes. */
export interface BegunRun {
  readonly id: number;
  readonly isBeginning: boolean;
}

/** The parent's side; undefined when it is not known. */
export function readMark(pid: number | undefined): BegunRun | undefined {
  if (!isKnown || pid === undefined) return undefined;
  try {
    return parseMark(readFileSync(`/proc/${pid}/cmdline`, 'latin1'));
  } catch {
    return undefined;
  }
}

/** Undefined for a title that is not the mark's: a skill may have set its own, and a dead process has none. */
export function parseMark(title: string): BegunRun | undefined {
  const [, after, id] = /^skill executor (after )?#(\d+) /.exec(title) ?? [];
  return id === undefined ? undefined : { id: Number(id), isBeginning: after === undefined };
}
