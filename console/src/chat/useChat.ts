/** A conversation as a chat shows it: its last messages, its active job and the job that ended last. */
import { useQueries, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import {
  conversationQuery,
  messagesPageSize,
  messagesQuery,
  tokenUsageQuery,
  turnJobsQuery,
} from '../api/conversations.ts';
import { hasEnded, type JobListItem, runningAmong } from '../api/jobs.ts';
import { live } from '../api/queries.ts';
import { type Turn, turnsOf } from '../conversations/turns.ts';

/** A task that this page gave. */
export interface Given {
  readonly conversationId: string;
  readonly jobId: string;
  readonly task: string;
}

export function useChat(conversationId: string, given: Given | undefined) {
  const [earlier, setEarlier] = useState(0);
  const conversation = useQuery({
    ...conversationQuery(conversationId),
    refetchInterval: live,
  });
  const { status, updated_at: updatedAt = '' } = conversation.data ?? {};
  const isActive = status === 'active';
  const shared = { enabled: conversation.data !== undefined, refetchInterval: isActive && live };
  const first = useQuery({ ...messagesQuery(conversationId, 1, updatedAt), ...shared });
  const total = first.data?.total ?? 0;
  const last = Math.max(1, Math.ceil(total / messagesPageSize));
  const from = Math.max(1, last - earlier);
  const pages = useQueries({
    queries: Array.from({ length: last - from + 1 }, (_, i) => ({
      ...messagesQuery(conversationId, from + i, updatedAt),
      ...shared,
      enabled: first.data !== undefined,
    })),
  });
  const jobs = useQuery({ ...turnJobsQuery(conversationId, updatedAt), ...shared });
  const usage = useQuery({ ...tokenUsageQuery(conversationId, updatedAt), ...shared });

  const messages = pages.flatMap(({ data }) => data?.data ?? []);
  // A fork has messages of jobs of another conversation.
  const own = jobs.data?.data.filter((job) => job.conversation_id === conversationId);
  // The job that runs, before those that wait for it.
  const newest = runningAmong(own ?? []);
  // Ids grow: the list may have been read before the last task was given.
  const isAhead = given !== undefined && given.jobId > (own?.[0]?.job_id ?? '');
  // One that waits for the end of the run that has its message is said already.
  const isHeld = ({ status, job_id }: JobListItem) =>
    job_id === given?.jobId && status === 'queued' && job_id !== newest?.job_id;
  const isWaiting = !isAhead && own?.some(isHeld);
  const isBusy = newest !== undefined && !hasEnded(newest);
  const isRead =
    !isAhead && newest !== undefined && hasEnded(newest) && !pages.at(-1)?.isPlaceholderData;
  // The streamed text stays until it is among the stored messages.
  const running =
    isAhead && !isBusy ? given.jobId : isRead && !isActive ? undefined : newest?.job_id;
  const turns = turnsOf(messages, jobs.data?.data ?? [], true);
  return {
    conversation,
    error: first.error ?? jobs.error ?? pages.find(({ error }) => error !== null)?.error ?? null,
    isReady: pages.length > 0 && [...pages, jobs, first].every(({ data }) => data !== undefined),
    turns,
    usage: usage.data,
    messages,
    running,
    /** The task that is not among the messages yet. */
    unread: isAhead || isWaiting ? given?.task : undefined,
    earlierCount: (from - 1) * messagesPageSize,
    showEarlier: () => setEarlier((before) => before + 1),
    said: useAnnouncement(running, turns),
  };
}

/** Characters of an answer that are read out. */
const saidMax = 4_000;

/** The announcement for screen readers when an answer is complete. */
function useAnnouncement(running: string | undefined, turns: readonly Turn[]): string {
  const [heard, setHeard] = useState<string | undefined>();
  const [said, setSaid] = useState('');
  useEffect(() => {
    if (running !== undefined) {
      setHeard(running);
      setSaid('');
      return;
    }
    const turn = turns.at(-1);
    if (heard === undefined || turn?.job?.job_id !== heard) return;
    setHeard(undefined);
    const answer = turn.messages.findLast(({ role }) => role === 'assistant')?.content;
    const error = turn.job.error?.message ?? `The run was ${turn.job.status}`;
    const isDone = turn.job.status === 'completed' && answer;
    setSaid(isDone ? `Answer: ${answer.slice(0, saidMax)}` : error);
  }, [running, heard, turns]);
  return said;
}
