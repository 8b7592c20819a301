import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { jobStepsQuery } from '../api/jobs.ts';
import { useJobEvents } from '../api/stream.ts';
import { textOfStep } from '../jobs/SpanDetails.tsx';
import { Said } from './Transcript.tsx';

const recorded = ['message', 'tool_result'];

/** What a running job's model is saying, piece by piece, until it is one of the messages. */
export function LiveAnswer({
  conversationId,
  jobId,
  known,
}: {
  conversationId: string;
  jobId: string;
  /** Ids of the messages that are shown. */
  known: ReadonlySet<string>;
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
  const last = steps.findLast(({ kind }) => kind === 'model');
  const tool = steps.findLast(({ kind, status }) => kind === 'tool' && status === 'active');
  if (last === undefined) return <Working tool={tool?.name} />;
  const isRecorded = last.message_id !== null && known.has(last.message_id);
  const text = isRecorded ? '' : textOfStep(events, last.step);
  if (text === '') return <Working tool={tool?.name} />;
  return (
    <Said by="assistant">
      <p className="leading-relaxed break-words whitespace-pre-wrap">
        {text}
        <span className="ml-0.5 inline-block h-4 w-1.5 animate-pulse bg-busy align-text-bottom" />
      </p>
    </Said>
  );
}

function Working({ tool }: { tool?: string | undefined }) {
  return (
    <Said by="assistant">
      <p className="animate-pulse text-muted">{tool ? `Running ${tool}…` : 'At work…'}</p>
    </Said>
  );
}
