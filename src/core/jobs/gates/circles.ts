/**
 * Circles: runs that each have a place and call a skill at whose gate the others have theirs, so that none would go on before its
 * time limit. Pure: which of their calls are to fail, so that the others go on.
 */

/** A call that waits at a gate. */
export interface WaitingCall {
  readonly job_id: string;
  readonly n: number;
  readonly gate: string;
}

/** A place of a job, or of its call with the number `n`. */
export interface TakenPlace {
  readonly gate: string;
  readonly job_id: string;
  readonly n: number;
}

/**
 * The calls to fail: of each circle the latest. `waiting` is in the order in which the calls began to wait, and `places` are all
 * at these gates. A place of a call may become free while another call of its run waits, so only those of the runs themselves
 * make a circle.
 */
export function callsToFail(
  waiting: readonly WaitingCall[],
  places: readonly TakenPlace[],
  limitOf: (gate: string) => number,
): WaitingCall[] {
  const failed: WaitingCall[] = [];
  const ended = new Set<string>();
  for (;;) {
    const left = waiting.filter(({ job_id }) => !ended.has(job_id));
    const taken = places.filter(({ job_id }) => !ended.has(job_id));
    const blocked = runsOfCircles(
      left,
      Map.groupBy(taken, ({ gate }) => gate),
      limitOf,
    );
    if (blocked.size === 0) return failed;
    const wanted = new Set(left.flatMap((one) => (blocked.has(one.job_id) ? [one.gate] : [])));
    const holders = new Set(taken.flatMap((one) => (wanted.has(one.gate) ? [one.job_id] : [])));
    const last = left.findLast(({ job_id }) => blocked.has(job_id) && holders.has(job_id));
    if (last === undefined) return failed;
    failed.push(last);
    ended.add(last.job_id);
  }
}

/** The runs that do not go on, because each waits for places of runs that do not. */
function runsOfCircles(
  waiting: readonly WaitingCall[],
  places: ReadonlyMap<string, readonly TakenPlace[]>,
  limitOf: (gate: string) => number,
): ReadonlySet<string> {
  const blocked = new Set(waiting.map(({ job_id }) => job_id));
  const moves = (gate: string) => {
    const taken = places.get(gate) ?? [];
    // What a pause holds goes on when it ends.
    if (taken.length === 0 || taken.length < limitOf(gate)) return true;
    return taken.some(({ job_id, n }) => n > 0 || !blocked.has(job_id));
  };
  const byRun = Map.groupBy(waiting, ({ job_id }) => job_id);
  for (let size = -1; size !== blocked.size; ) {
    size = blocked.size;
    for (const [id, calls] of byRun) if (calls.every(({ gate }) => moves(gate))) blocked.delete(id);
  }
  return blocked;
}
