/** Rows in order of arrival, each at most once. */
export interface Line {
  readonly size: number;
  add(id: string): void;
  /** Removes and returns the row that has waited longest. */
  shift(): string | undefined;
}

/** Rows that have left are forgotten after so many. */
const forgetEvery = 20_000;

/** Not a plain Set: finding its first element passes over every element deleted before. */
export function createLine(): Line {
  const members = new Set<string>();
  let ids: string[] = [];
  let head = 0;
  return {
    get size() {
      return members.size;
    },
    add(id) {
      if (members.has(id)) return;
      members.add(id);
      ids.push(id);
    },
    shift() {
      const id = ids[head];
      if (id === undefined) return undefined;
      head++;
      members.delete(id);
      if (head === ids.length) {
        ids = [];
        head = 0;
      } else if (head === forgetEvery) {
        ids.splice(0, head);
        head = 0;
      }
      return id;
    },
  };
}
