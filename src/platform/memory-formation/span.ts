/** What was said in a part of a conversation, as the job that forms memories gets it. Pure. */
import { taskIn } from '../../core/jobs/message-text.ts';
import { cutToUnits } from '../../kernel/cut-text.ts';
import type { FormedMessage } from './formations.store.ts';

/** Characters of one message and of all messages of a job. */
const messageMax = 4_000;
const spanMax = 48_000;

export interface Span {
  readonly messages: readonly {
    readonly id: string;
    readonly role: 'user' | 'assistant';
    readonly content: string;
  }[];
  /** The last message that it covers. */
  readonly through: string;
  /** Whether it has all that was given. */
  readonly isWhole: boolean;
  /** The user for whom it was said; null without one. */
  readonly userId: string | null;
  /** The name in place of a user: of the key, where there is none. */
  readonly userName: string;
  /** The key of the last job, in whose name the memories are formed. */
  readonly apiKeyId: string;
}

/** As many messages as fit, of those of one user; none where the user has said nothing among them. Null without any. */
export function spanOf(given: readonly FormedMessage[], isNewestFirst: boolean): Span | null {
  const ordered = isNewestFirst ? given.toReversed() : given;
  const last = ordered.at(-1);
  if (last === undefined) return null;
  const user = ordered.findLast(({ for_user }) => for_user === 1)?.user_id ?? null;
  const messages: { id: string; role: 'user' | 'assistant'; content: string }[] = [];
  let characters = 0;
  let through = '';
  for (const row of ordered) {
    const content = textOf(row);
    characters += content.length;
    if (characters > spanMax) break;
    through = row.id;
    // A conversation is one user's; what is another's would be left out.
    if (row.for_user === 1 && row.user_id !== user) continue;
    if (content === '') continue;
    const role = row.role === 'user' ? 'user' : 'assistant';
    messages.push({ id: row.id, role, content });
  }
  const hasUserMessage = messages.some(({ role }) => role === 'user');
  const { user_id: userName, api_key_id: apiKeyId } = last;
  const isWhole = through === last.id;
  const formed = hasUserMessage ? messages : [];
  return { messages: formed, through, isWhole, userId: user, userName, apiKeyId };
}

function textOf({ content, data, role, task_field }: FormedMessage): string {
  if (role !== 'user') return cutToUnits(content.trim(), messageMax);
  // One that has steered a run is a message, not the input of a job.
  const text =
    data === null ? taskIn(content, task_field) : (JSON.parse(data) as { text: string }).text;
  return cutToUnits(text.trim(), messageMax);
}
