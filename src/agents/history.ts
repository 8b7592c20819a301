/** The messages of a conversation's earlier jobs, as a model is sent them before the task of this one. */
import type { DialogueMessage } from '../models/model.ts';
import { log, type ThinkingAttempt } from './attempt.ts';
import { asHistory } from './dialogue.ts';

/** The newest messages that are read; those that do not fit are left out later. */
const bounds = { limit: 400, bytesMax: 4 * 1024 * 1024 };

/** Oldest first, without unanswered messages at the end that equal the task, as of a repeated job. */
export async function historyBefore(
  attempt: ThinkingAttempt,
  task: string,
): Promise<DialogueMessage[]> {
  const { conversation_id, id } = attempt.run.job;
  const { conversations } = attempt.deps;
  const { messages, isCut } = await conversations.dialogue(conversation_id, id, bounds);
  if (isCut) {
    const message = `Earlier messages of the conversation were left out: only the newest ${messages.length} are looked at`;
    log(attempt, message);
  }
  const history = asHistory(
    messages.map(({ content, data, task_field }) =>
      data === null
        ? { role: 'user' as const, text: taskOf(content, task_field) }
        : (JSON.parse(data) as DialogueMessage),
    ),
  );
  const end = history.findLastIndex(({ role, text }) => role !== 'user' || text !== task);
  return history.slice(0, end + 1);
}

/** The task of an earlier run: the field of its input that its skill names, else the whole input. */
function taskOf(input: string, field: string | null): string {
  if (field === null) return input;
  try {
    const task = (JSON.parse(input) as Record<string, unknown>)[field];
    return typeof task === 'string' ? task : input;
  } catch {
    return input;
  }
}
