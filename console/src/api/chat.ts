/** Sends the tasks of a chat to an agent. */
import { post, type Schema } from './client.ts';
import { headerText } from './header-text.ts';

/** The overrides of the agent's saved fields in a chat. */
export type Overrides = Schema<'AgentOverrides'>;

export interface ChatTask {
  readonly agentId: string;
  readonly task: string;
  /** Ids of files that it is about. */
  readonly files: readonly string[];
  /** Null for a new conversation. */
  readonly conversationId: string | null;
  /** What it does while another job of the conversation has not ended. */
  readonly mode: 'queue' | 'steer' | 'interrupt';
  /** The user of the task; empty for none. */
  readonly user: string;
  readonly overrides: Overrides | null;
  /** The same in each try, so that a try with a lost response does not create a second job. */
  readonly idempotencyKey: string;
}

/** Begins a conversation with the messages of another one that come before one of them. */
export function forkBefore(id: string, before: string) {
  return post('/api/conversations/{id}/fork', { path: { id }, body: { before } });
}

/** Accepts the task, and answers with its job at once. */
export function giveTask(given: ChatTask) {
  const { agentId, task, files, conversationId, mode, user, overrides, idempotencyKey } = given;
  const header = {
    'idempotency-key': idempotencyKey,
    ...(conversationId !== null && {
      'x-conversation-id': conversationId,
      'x-conversation-mode': mode,
    }),
    ...(user !== '' && { 'x-user-id': headerText(user) }),
  };
  const input = { task, ...(files.length > 0 && { files: [...files] }) };
  if (overrides !== null) {
    return post('/api/agents/{agentId}/trials', {
      path: { agentId },
      header,
      body: { agent: overrides, input },
    });
  }
  const path = { category: 'agent', version: 'v1.0', skillName: 'run-task' };
  return post('/api/{category}/{version}/{skillName}', {
    path,
    header: { ...header, 'x-agent-id': agentId },
    body: input,
  });
}
