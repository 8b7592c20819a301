/** A message that is to be said in place of another one, and of all that followed it. */
export interface Anew {
  /** The message that it replaces. */
  readonly messageId: string;
  /** Whether nothing was said before that. */
  readonly isFirst: boolean;
}

/** Sends tasks to an agent, also while it works and in place of earlier ones, and cancels the active one. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { type ChatTask, forkBefore, giveTask } from '../api/chat.ts';
import { cancelJob } from '../api/jobs.ts';
import { contentOf } from '../conversations/content.ts';
import type { Turn } from '../conversations/turns.ts';
import { useAct } from '../ui/useAct.ts';
import type { Given } from './useChat.ts';

export function useSending({
  running,
  onGiven,
  ...chat
}: Omit<ChatTask, 'task' | 'files' | 'mode' | 'idempotencyKey'> & {
  /** The job that is going on. */
  running: string | undefined;
  onGiven: (given: Given) => void;
}) {
  const client = useQueryClient();
  const key = useRef<{ request: string; value: string; conversationId: string | null }>(nothing);
  const give = useMutation({
    mutationFn: async ({
      task,
      files,
      mode,
      anew,
    }: Pick<ChatTask, 'task' | 'files' | 'mode'> & { anew?: Anew | undefined }) => {
      const request = JSON.stringify([chat, task, files, mode, running, anew]);
      // A try whose answer was lost may have been accepted.
      if (key.current.request !== request) {
        const conversationId = await conversationFor(chat.conversationId, anew);
        key.current = { request, value: crypto.randomUUID(), conversationId };
      }
      const { value: idempotencyKey, conversationId } = key.current;
      return giveTask({ ...chat, conversationId, task, files, mode, idempotencyKey });
    },
    onSuccess({ job_id: jobId, conversation_id: conversationId }, { task }) {
      key.current = nothing;
      onGiven({ conversationId, jobId, task });
      void client.invalidateQueries({ queryKey: ['conversations'] });
    },
  });
  const stop = useAct({
    act: cancelJob,
    failed: 'The answer was not stopped',
    changes: [['conversations'], ['jobs']],
  });
  const isStopping = running !== undefined && stop.variables === running && !stop.isError;
  const answering = isStopping ? 'stopping' : 'answering';
  return {
    /** The task waits for the active job, reaches its run, or stops it. */
    send(text: string, files: readonly string[], mode: ChatTask['mode'] = 'queue') {
      give.mutate({ task: text.trim(), files, mode });
    },
    /** Gives the task in place of an earlier one, in a conversation that begins with what was said before. */
    sendAnew(text: string, files: readonly string[], anew: Anew) {
      give.mutate({ task: text.trim(), files, mode: 'queue', anew });
    },
    /** Gives the task of a turn again, in its conversation. */
    retry({ messages }: Turn) {
      const asked = messages.find(({ role }) => role === 'user');
      const content = asked && contentOf(asked);
      if (content?.kind !== 'text') return;
      give.mutate({ task: content.text, files: content.files ?? [], mode: 'queue' });
    },
    stop() {
      if (running !== undefined) stop.mutate(running);
    },
    /** The task that is being sent. */
    task: give.isPending ? give.variables.task : undefined,
    state: give.isPending ? 'sending' : running === undefined ? 'ready' : answering,
    error: give.error,
  } as const;
}

const nothing = { request: '', value: '', conversationId: null };

/** The conversation of a task; null for a new one. */
async function conversationFor(id: string | null, anew: Anew | undefined): Promise<string | null> {
  if (id === null || anew === undefined) return id;
  return anew.isFirst ? null : (await forkBefore(id, anew.messageId)).id;
}
