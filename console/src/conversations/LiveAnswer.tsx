import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { Message } from '../api/conversations.ts';
import type { JobEvent } from '../api/follow.ts';
import { type JobStep, jobStepsQuery } from '../api/jobs.ts';
import { useJobEvents } from '../api/stream.ts';
import { JobApprovals } from '../approvals/JobApprovals.tsx';
import { StartedJob, textOfStep } from '../jobs/SpanDetails.tsx';
import { mayAsk } from '../jobs/waits.ts';
import { GrowingMarkdown } from '../markdown/Markdown.tsx';
import { Status } from '../ui/Status.tsx';
import { durationText, useNow } from '../ui/Time.tsx';
import { Labelled } from '../ui/Value.tsx';
import { ToolCard } from './ToolCall.tsx';
import { Said } from './Transcript.tsx';

const recorded = ['message', 'tool_result', 'status'];

/**
 * The streamed part of a running job that is not among the messages yet: text of models, tool calls and approvals.
 * Shows several answers if the job called several models concurrently.
 */
export function LiveAnswer({
  conversationId,
  jobId,
  shown,
}: {
  conversationId: string;
  jobId: string;
  /** The messages that are shown. */
  shown: readonly Message[];
}) {
  const client = useQueryClient();
  const events = useJobEvents(jobId);
  const steps = useQuery({ ...jobStepsQuery(jobId), refetchInterval: 1_000 }).data?.data ?? [];
  const messages = events.filter(({ type }) => recorded.includes(type)).length;
  // The stream reports a new message before the list has it.
  useEffect(() => {
    if (messages === 0) return;
    void client.invalidateQueries({ queryKey: ['conversations', conversationId] });
    void client.invalidateQueries({ queryKey: jobStepsQuery(jobId).queryKey });
  }, [client, conversationId, jobId, messages]);
  const known = new Set(shown.map(({ id }) => id));
  // Answers of before the last one may be on an earlier page.
  const since = shown.at(-1)?.created_at ?? '';
  const isUnread = ({ message_id, finished_at }: JobStep) =>
    message_id !== null && !known.has(message_id) && (finished_at ?? '') >= since;
  const texts = steps
    .filter((step) => step.kind === 'model' && (step.status === 'active' || isUnread(step)))
    .map(({ step }) => ({ step, text: textOfStep(events, step) }))
    .filter(({ step, text }) => text !== '' && !isAmong(shown, events, step, text));
  const tools = steps.filter(({ kind, status }) => kind === 'tool' && isOpen(status));
  const waits = steps.filter(({ kind, status }) => kind !== 'tool' && status === 'waiting');
  return (
    <>
      {texts.map(({ step, text }) => (
        <Said key={step} by="assistant">
          <GrowingMarkdown text={text}>
            <span
              aria-hidden
              className="-mt-3 inline-block h-4 w-1.5 animate-pulse bg-busy align-text-bottom"
            />
          </GrowingMarkdown>
        </Said>
      ))}
      {tools.length > 0 && (
        <Said by="assistant">
          <ol aria-label="Tools under way" className="flex flex-col gap-1.5">
            {tools.map((step) => (
              <li key={step.step}>
                <LiveTool step={step} steps={steps} events={events} />
              </li>
            ))}
          </ol>
        </Said>
      )}
      {waits.some(mayAsk) && (
        <li className="pt-5">
          <JobApprovals jobId={jobId} />
        </li>
      )}
      {texts.length === 0 && tools.length === 0 && <Working isWaiting={waits.length > 0} />}
    </>
  );
}

/** Messages at the end among which one is looked for. */
const lookedAt = 20;

/** Whether the text of a step is among the messages already, before the step is read again. */
function isAmong(
  shown: readonly Message[],
  events: readonly JobEvent[],
  step: number,
  text: string,
): boolean {
  const isWhole = events.some(({ type, data }) => type === 'message' && data['step'] === step);
  return isWhole && shown.slice(-lookedAt).some(({ content }) => content === text);
}

const isOpen = (status: JobStep['status']) => status === 'active' || status === 'waiting';

/** A tool call without a result yet. */
function LiveTool({
  step,
  steps,
  events,
}: {
  step: JobStep;
  steps: readonly JobStep[];
  events: readonly JobEvent[];
}) {
  const now = useNow();
  const call = events.findLast(
    ({ type, data }) => type === 'tool_call' && data['step'] === step.step,
  );
  const input = call?.data['input'];
  const isWaiting = steps.some(
    ({ parent_step_id, status }) => parent_step_id === step.step && status === 'waiting',
  );
  const job = steps.find(({ parent_step_id }) => parent_step_id === step.step)?.waits_for;
  return (
    <ToolCard
      tool={step.name}
      glimpse={input === undefined ? undefined : JSON.stringify(input)}
      aside={
        <>
          <Status value={isWaiting ? 'waiting' : step.status} />
          <span>{durationText(Math.max(0, now - Date.parse(step.started_at)))}</span>
        </>
      }
    >
      {input !== undefined && <Labelled label="Called with" value={input} />}
      {job?.job_id !== undefined && (
        <p className="text-[13px]">
          <StartedJob {...job} jobId={job.job_id} />
        </p>
      )}
    </ToolCard>
  );
}

function Working({ isWaiting }: { isWaiting: boolean }) {
  return (
    <Said by="assistant">
      <p className="animate-pulse text-muted">{isWaiting ? 'Waiting…' : 'At work…'}</p>
    </Said>
  );
}
