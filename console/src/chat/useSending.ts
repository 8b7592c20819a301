/** Sends tasks to an agent, also while it works, and cancels the active one. */
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
}: Omit<ChatTask, 'task' | 'mode' | 'idempotencyKey'> & {
  /** The job that is going on. */
  running: string | undefined;
  onGiven: (given: Given) => void;
}) {
  const client = useQueryClient();
  const key = useRef({ request: '', value: '' });
  const give = useMutation({
    mutationFn: ({ task, mode }: Pick<ChatTask, 'task' | 'mode'>) => {
      const request = JSON.stringify([chat, task, mode, running]);
      // A try whose answer was lost may have been accepted.
      if (key.current.request !== request) key.current = { request, value: crypto.randomUUID() };
      return giveTask({ ...chat, task, mode, idempotencyKey: key.current.value });
    },
    onSuccess({ job_id: jobId, conversation_id: conversationId }, { task }) {
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
    /** The task waits for the active job, or stops it. */
    send(text: string, mode: ChatTask['mode'] = 'queue') {
      give.mutate({ task: text.trim(), mode });
    },
    /** Gives the task of a turn again, in its conversation. */
    retry({ messages }: Turn) {
      const asked = messages.find(({ role }) => role === 'user');
      const content = asked && contentOf(asked);
      if (content?.kind === 'text') give.mutate({ task: content.text, mode: 'queue' });
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
