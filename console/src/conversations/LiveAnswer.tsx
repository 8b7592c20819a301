import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { jobStepsQuery } from '../api/jobs.ts';
import { useJobEvents } from '../api/stream.ts';
import { textOfStep } from '../jobs/SpanDetails.tsx';
import { Said } from './Transcript.tsx';

const recorded = ['message', 'tool_result'];

/**
 * What a running job's models are saying, piece by piece, until it is among the messages: several answers
 * where the job asked several at once.
 */
export function LiveAnswer({
  conversationId,
  jobId,
  known,
  since,
}: {
  conversationId: string;
  jobId: string;
  /** Ids of the messages that are shown. */
  known: ReadonlySet<string>;
  /** When the last of them was said; answers of before it may be on an earlier page. */
  since: string;
}) {
  const client = useQueryClient();
  const events = useJobEvents(jobId);
  const steps = useQuery({ ...jobStepsQuery(jobId), refetchInterval: 1_000 }).data?.data ?? [];
  const messages = events.filter(({ type }) => recorded.includes(type)).length;
  // The stream knows first that there is one more to read.
  useEffect(() => {
    if (messages === 0) return;
    void client.invalidateQueries({ queryKey: ['conversations', conversationId] });
    void client.invalidateQueries({ queryKey: jobStepsQuery(jobId).queryKey });
  }, [client, conversationId, jobId, messages]);
  const unread = steps.filter(
    ({ kind, status, message_id, finished_at }) =>
      kind === 'model' &&
      (status === 'active' ||
        (message_id !== null && !known.has(message_id) && (finished_at ?? '') >= since)),
  );
  const said = unread.map(({ step }) => ({ step, text: textOfStep(events, step) }));
  const texts = said.filter(({ text }) => text !== '');
  if (texts.length === 0) {
    const tools = steps.filter(({ kind, status }) => kind !== 'model' && status === 'active');
    const waits = steps.filter(({ status }) => status === 'waiting');
    return <Working tools={tools.map(({ name }) => name)} isWaiting={waits.length > 0} />;
  }
  return texts.map(({ step, text }) => (
    <Said key={step} by="assistant">
      <p className="leading-relaxed break-words whitespace-pre-wrap">
        {text}
        <span className="ml-0.5 inline-block h-4 w-1.5 animate-pulse bg-busy align-text-bottom" />
      </p>
    </Said>
  ));
}

function Working({ tools, isWaiting }: { tools: readonly string[]; isWaiting: boolean }) {
  const words = isWaiting ? 'Waiting…' : 'At work…';
  return (
    <Said by="assistant">
      <p className="animate-pulse text-muted">
        {tools.length > 0 ? `Running ${tools.join(', ')}…` : words}
      </p>
    </Said>
  );
}
