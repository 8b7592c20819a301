/**
 * Gives a child's runs the answers of one line. Recorded steps and waits are answered together when a run is
 * repeated; its code gets them in the order in which they were recorded, and has reacted to each before the
 * next, as it did when they were executed. So `Promise.race` has the same winner again.
 */
import type { ParentMessage } from './protocol.ts';

export type Answer = Extract<ParentMessage, ['answer' | 'refuse', ...unknown[]]>;

export function isAnswer(message: ParentMessage): message is Answer {
  return message[0] === 'answer' || message[0] === 'refuse';
}

/** Delivers all before the event loop goes on. */
export function deliverAnswers(
  answers: readonly Answer[],
  deliver: (answer: Answer) => void,
): void {
  const inOrder =
    answers.length > 1 ? answers.toSorted((a, b) => compare(timeOf(a), timeOf(b))) : answers;
  let next = 0;
  const deliverNext = (): void => {
    const answer = inOrder[next++];
    if (answer === undefined) return;
    deliver(answer);
    // A tick that is scheduled by a microtask comes after all microtasks of this answer.
    if (next < inOrder.length) queueMicrotask(() => process.nextTick(deliverNext));
  };
  deliverNext();
}

/** When the answer was recorded; that which is new comes last. */
function timeOf(answer: Answer): number {
  const said: unknown = answer[3];
  if (said === null || typeof said !== 'object') return Number.POSITIVE_INFINITY;
  const { at } = said as { readonly at?: unknown };
  return typeof at === 'number' ? at : Number.POSITIVE_INFINITY;
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a - b;
}
