/**
 * The order in which a repeated run gets what is on record: that in which it was recorded. A run asks for
 * parallel steps and waits at once, and the database answers them in any order. So an answer from the record
 * waits until each question that came with it is known to be on record or not; then the executor gets all
 * of them together, in their order, and a race has the same winner again.
 */

/** One question for a step or a wait. */
export interface ReplayTurn {
  /** It is answered from the record of this moment. Resolves when the answer may be given. */
  recorded(at: number): Promise<void>;
  /** It is not answered from the record. Does nothing after `recorded`. */
  notRecorded(): void;
}

export interface ReplayOrder {
  enter(): ReplayTurn;
}

export function createReplayOrder(): ReplayOrder {
  let undecided = 0;
  let held: { readonly at: number; readonly give: () => void }[] = [];
  const decide = (): void => {
    undecided -= 1;
    if (undecided > 0) return;
    const ordered = held.sort((a, b) => a.at - b.at);
    held = [];
    for (const { give } of ordered) give();
  };
  return {
    enter() {
      let isDecided = false;
      undecided += 1;
      return {
        recorded(at) {
          const { promise, resolve } = Promise.withResolvers<void>();
          isDecided = true;
          held.push({ at, give: resolve });
          decide();
          return promise;
        },
        notRecorded() {
          if (isDecided) return;
          isDecided = true;
          decide();
        },
      };
    },
  };
}
