/** Sends tasks to an agent, one at a time, and cancels the active one. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { type ChatTask, giveTask } from '../api/chat.ts';
import { cancelJob } from '../api/jobs.ts';
import { contentOf } from '../conversations/content.ts';
import type { Turn } from '../conversations/turns.ts';
import { useAct } from '../ui/useAct.ts';
import type { Given } from './useChat.ts';

export function useSending({
  running,
  onGiven,
  ...chat
}: Omit<ChatTask, 'task' | 'idempotencyKey'> & {
  /** The job that is going on. */
  running: string | undefined;
  onGiven: (given: Given) => void;
}) {
  const client = useQueryClient();
  const key = useRef({ request: '', value: '' });
  const give = useMutation({
    mutationFn: (task: string) => {
      const request = JSON.stringify([chat, task, running]);
      // A try whose answer was lost may have been accepted.
      if (key.current.request !== request) key.current = { request, value: crypto.randomUUID() };
      return giveTask({ ...chat, task, idempotencyKey: key.current.value });
    },
    onSuccess({ job_id: jobId, conversation_id: conversationId }, task) {
      key.current = { request: '', value: '' };
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
    send(text: string) {
      give.mutate(text.trim());
    },
    /** Gives the task of a turn again, in its conversation. */
    retry({ messages }: Turn) {
      const asked = messages.find(({ role }) => role === 'user');
      const content = asked && contentOf(asked);
      if (content?.kind === 'text') give.mutate(content.text);
    },
    stop() {
      if (running !== undefined) stop.mutate(running);
    },
    /** The task that is being sent. */
    task: give.isPending ? give.variables : undefined,
    state: give.isPending ? 'sending' : running === undefined ? 'ready' : answering,
    error: give.error,
  } as const;
}
