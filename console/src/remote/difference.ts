/** A difference of two versions, as two columns of lines. */

export interface DifferentLines {
  /** `gap` where lines that are equal were left out, `cut` where the rest of the difference was. */
  readonly kind: 'same' | 'changed' | 'gap' | 'cut';
  readonly before: string | null;
  readonly after: string | null;
}

/** The lines of a unified difference side by side; what was removed stands beside what was added for it. */
export function sideBySide(patch: string): DifferentLines[] {
  const rows: DifferentLines[] = [];
  let removed: string[] = [];
  let added: string[] = [];
  let isInside = false;
  const flush = () => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++) {
      rows.push({ kind: 'changed', before: removed[i] ?? null, after: added[i] ?? null });
    }
    removed = [];
    added = [];
  };
  for (const line of patch.split('\n')) {
    if (line.startsWith('@@')) {
      flush();
      if (isInside) rows.push({ kind: 'gap', before: null, after: null });
      isInside = true;
    } else if (!isInside || line.startsWith('\\')) {
      // The names of the two, and the note about the end of a file.
    } else if (line.startsWith('…')) {
      flush();
      rows.push({ kind: 'cut', before: null, after: null });
    } else if (line.startsWith('-')) {
      if (added.length > 0) flush();
      removed.push(line.slice(1));
    } else if (line.startsWith('+')) added.push(line.slice(1));
    else if (line.startsWith(' ')) {
      flush();
      rows.push({ kind: 'same', before: line.slice(1), after: line.slice(1) });
    }
  }
  flush();
  return rows;
}
