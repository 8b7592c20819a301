/** Two changes of a profile at once: line by line, none undoes the other. Pure. */

/** What a run makes of the profile of its user. */
export interface ProfileChange {
  readonly content: string;
  /** The profile that the run was made with: others may have changed it since. */
  readonly seen: string;
}

/** The same with the run. */
export interface ProfileOfRun extends ProfileChange {
  readonly jobId: string;
  readonly conversationId: string;
}

/**
 * What a run makes of a profile that is `present` now, of which it has seen an earlier state. Its lines come last. `rest` are
 * those of its lines for which there is no room.
 */
export function mergedProfile(
  { content, seen }: ProfileChange,
  present: string,
  maxBytes: number,
): { content: string; rest: string } {
  if (present === seen) return { content, rest: '' };
  const [before, own, now] = [linesOf(seen), linesOf(content), linesOf(present)];
  const removed = new Set(before.filter((line) => !own.includes(line)));
  const kept = now.filter((line) => !removed.has(line));
  const added = own.filter((line) => !before.includes(line) && !kept.includes(line));
  const lines = [...kept, ...added];
  const rest: string[] = [];
  while (lines.length > kept.length && Buffer.byteLength(lines.join('\n')) > maxBytes) {
    rest.unshift(lines.pop() as string);
  }
  return { content: lines.join('\n'), rest: rest.join('\n') };
}

const linesOf = (text: string) => (text === '' ? [] : text.split('\n'));
