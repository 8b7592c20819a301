/**
 * Gives a child's runs their answers in the order in which the parent has sent them. A run's code has reacted
 * to each before it gets the next, also where many come in one line: so `Promise.race` has the same winner
 * when recorded steps and waits are answered again.
 */
import type { ParentMessage } from '../protocol.ts';

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
    queue.push(...answers);
    if (!isDelivering) deliverNext();
  };
}
