/**
 * What holds a job that waits for its turn in a conversation. It looks like a gate, but has no places: the end of the job before it
 * lets the next one go (`next-in-conversation.ts`). Pure.
 */
import { behindPrefix, deliveredPrefix, namesOfModes } from './conversation-jobs.store.ts';

/** What a request does while another job of the conversation has not ended. */
export const conversationModes = ['queue', 'steer', 'interrupt', 'reject'] as const;
export type ConversationMode = (typeof conversationModes)[number];

/** Jobs that wait in one conversation, and the bytes of their inputs. */
export const waitingMax = 20;
export const waitingBytesMax = 4 * 1024 * 1024;
/** Bytes of the messages that a run takes between two turns; the others come between later ones, and a longer one never. */
export const steeredBytesMax = 64 * 1024;

export const isOfConversation = (gate: string) => gate.startsWith(behindPrefix);

const behindMany = 'the jobs before them in their conversations';
const namesOfMany: readonly (readonly [name: string, words: string])[] = [
  [namesOfModes.queue, behindMany],
  [namesOfModes.steer, `${behindMany}, which they steer`],
  [namesOfModes.interrupt, `${behindMany}, which they interrupt`],
  [deliveredPrefix, `${behindMany}, which have their messages`],
];

/** What several jobs wait for, by the words that are shown of one. */
export const behindInPlural = (limit: string) =>
  namesOfMany.find(([name]) => name.startsWith(`${limit} =`))?.[1] ?? limit;
