/**
 * Gives a child's runs their answers. Recorded steps and waits come in one line when a run is
 * repeated; its code gets them in the order in which they were recorded, and has reacted to each before the
 * next, as it did when they were executed. So `Promise.race` has the same winner again.
 */
import type { ParentMessage } from './protocol.ts';

export type Answer = Extract<ParentMessage, ['answer' | 'refuse', ...unknown[]]>;

export function isAnswer(message: ParentMessage): message is Answer {
  return message[0] === 'answer' || message[0] === 'refuse';
}

/** Takes the answers of each line; all are delivered before the event loop goes on. */
export function createAnswerOrder(
  deliver: (answer: Answer) => void,
): (answers: readonly Answer[]) => void {
  const queue: Answer[] = [];
  let isDelivering = false;
  const deliverNext = (): void => {
    const answer = queue.shift();
    isDelivering = answer !== undefined;
    if (answer === undefined) return;
    // A tick that is scheduled by a microtask comes after all microtasks of this answer.
    queueMicrotask(() => process.nextTick(deliverNext));
    deliver(answer);
  };
  return (answers) => {
    if (answers.length > 1) queue.push(...answers.toSorted(compare));
    else queue.push(...answers);
    if (!isDelivering) deliverNext();
  };
}

/** When the answer was recorded; that which is new comes last. */
function timeOf(answer: Answer): number {
  const said: unknown = answer[3];
  if (said === null || typeof said !== 'object') return Number.POSITIVE_INFINITY;
  const { at } = said as { readonly at?: unknown };
  return typeof at === 'number' ? at : Number.POSITIVE_INFINITY;
}

function compare(one: Answer, other: Answer): number {
  const [a, b] = [timeOf(one), timeOf(other)];
  return a === b ? 0 : a - b;
}
