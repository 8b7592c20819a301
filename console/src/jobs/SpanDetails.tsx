import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { JobEvent } from '../api/follow.ts';
import type { JobStep } from '../api/jobs.ts';
import { textLink } from '../ui/Links.tsx';
import { moneyText } from '../ui/Money.ts';
import { Facts } from '../ui/Page.tsx';
import { Status } from '../ui/Status.tsx';
import { countText, durationText } from '../ui/Time.tsx';
import { Labelled } from '../ui/Value.tsx';
import { ErrorWords } from './ErrorWords.tsx';
import { SentPrompt } from './SentPrompt.tsx';
import { isMoment } from './span-text.ts';
import type { Span } from './spans.ts';
import { eventText } from './waits.ts';

/** With milliseconds, which count here. */
const exact = (ms: number) => new Date(ms).toISOString().replace('T', ' ').replace('Z', ' UTC');

/** What a row of the timeline has no room for. */
export function SpanDetails({
  jobId,
  span,
  events,
}: {
  jobId: string;
  span: Span;
  events: readonly JobEvent[];
}) {
  const { from, to, dueAt, step, error, outcome } = span;
  const ofStep = (type: string) =>
    events.findLast((event) => event.type === type && event.data['step'] === step?.step)?.data;
  const call = step && ofStep('tool_call');
  const result = step && ofStep('tool_result');
  const text = step?.kind === 'model' ? textOfStep(events, step.step) : '';
  return (
    <div className="flex flex-col gap-3">
      {error && <ErrorWords error={error} />}
      <Facts
        facts={[
          isMoment(span) ? ['At', exact(from)] : ['From', exact(from)],
          !isMoment(span) && ['To', to === null ? 'still going on' : exact(to)],
          to !== null && !isMoment(span) && ['Duration', durationText(to - from)],
          dueAt !== undefined && ['Due', exact(dueAt)],
          outcome !== '' && ['Outcome', outcome],
          ...(step === undefined
            ? []
            : [...waitFacts(step), ...guardFacts(step), ...fileFacts(step)]),
          step !== undefined && ['Step', numberOf(step)],
          step?.parent_step_id != null && ['Asked for by', `step ${step.parent_step_id}`],
          (step?.kind === 'model' || step?.kind === 'summary') && ['Tokens', tokensText(step)],
          ...(step?.kind === 'model' || step?.kind === 'summary' ? costFacts(step) : []),
        ]}
      />
      {text !== '' && (
        <p className="max-h-64 overflow-y-auto rounded-md border bg-surface p-3 leading-relaxed break-words whitespace-pre-wrap">
          {text}
        </p>
      )}
      {step && <SentPrompt jobId={jobId} step={step} />}
      {call && <Labelled label="Called with" value={call['input']} />}
      {result?.['output'] !== undefined && <Labelled label="Came back" value={result['output']} />}
    </div>
  );
}

const numberOf = ({ step, kind, turn }: JobStep) =>
  kind === 'model' || kind === 'tool' ? `${step}, turn ${turn}` : `${step}`;

const tokensText = (counts: Pick<JobStep, 'prompt_tokens' | 'completion_tokens'>) =>
  `${countText(counts.prompt_tokens)} in, ${countText(counts.completion_tokens)} out`;

/** Parts of the tokens of a call, and what it cost. */
function costFacts(step: JobStep): [string, ReactNode][] {
  const {
    cache_read_tokens: read,
    cache_write_tokens: written,
    reasoning_tokens: reasoning,
  } = step;
  const parts = [
    read !== null && read > 0 && `${countText(read)} read from a cache`,
    written !== null && written > 0 && `${countText(written)} written to it`,
    reasoning !== null && reasoning > 0 && `${countText(reasoning)} of reasoning`,
  ].filter((part) => part !== false);
  const isPartial = step.prompt_tokens === null || step.completion_tokens === null;
  return [
    ...(parts.length === 0 ? [] : [['Of these', parts.join(', ')] as [string, ReactNode]]),
    ...(step.status === 'active'
      ? []
      : [['Cost', moneyText(step.cost_usd, isPartial)] as [string, ReactNode]]),
    ...(step.estimated_cost_usd === 0
      ? []
      : [['Charged as an estimate', moneyText(step.estimated_cost_usd)] as [string, ReactNode]]),
  ];
}

/** What a guard has judged, and how. */
function guardFacts({ guard }: JobStep): [string, ReactNode][] {
  if (guard === null) return [];
  const { on, tool, action, reason } = guard;
  return [
    ['Judged', tool === null ? judged[on] : `the result of ${tool}`],
    ['Verdict', action === null ? 'none: it failed' : verdicts[action]],
    ...(reason === null ? [] : [['Reason', reason] as [string, ReactNode]]),
  ];
}

const judged = { message: "the user's message", tool_result: 'a result', answer: 'the answer' };
const verdicts = { pass: 'passed', replace: 'replaced', refuse: 'refused' };

/** How the model was given files. */
function fileFacts({ files }: JobStep): [string, ReactNode][] {
  if (files === null) return [];
  const given = files.map(({ id, name, as, reason }) => (
    <div key={id ?? name}>{reason ?? `${name} ${as === 'text' ? 'as its text' : 'as it is'}`}</div>
  ));
  return [['Files', given]];
}

/** What a wait waits for, with a link. */
function waitFacts({ waits_for }: JobStep): [string, ReactNode][] {
  if (waits_for === null) return [];
  const { event, job_id: jobId, approval_id: approvalId } = waits_for;
  if (event !== undefined) return [['Event', eventText(waits_for)]];
  if (jobId !== undefined) {
    const { agent_id: agentId, total_token_stats: tokens } = waits_for;
    return [
      ['Job', <StartedJob key="job" {...waits_for} jobId={jobId} />],
      ...(agentId === undefined ? [] : [['Agent', agentId] as [string, ReactNode]]),
      ...(tokens === undefined || tokens.total_tokens === 0
        ? []
        : [['Its tokens', tokensText(tokens)] as [string, ReactNode]]),
    ];
  }
  if (approvalId === undefined) return [];
  return [
    [
      'Approval',
      <Link key="approval" to="/approvals/$approvalId" params={{ approvalId }} className={textLink}>
        {waits_for.status === 'pending' ? 'decide' : (waits_for.status ?? approvalId)}
      </Link>,
    ],
  ];
}

/** A job that a step started. */
export function StartedJob({
  jobId,
  skill,
  status,
}: {
  jobId: string;
  skill?: string;
  status?: string;
}) {
  return (
    <span className="inline-flex flex-wrap items-center gap-2">
      <Link to="/jobs/$jobId" params={{ jobId }} className={textLink}>
        {skill ?? jobId}
      </Link>
      {status !== undefined && <Status value={status} />}
    </span>
  );
}

/** The text of the model in a step: whole once it is recorded, before that in pieces. */
export function textOfStep(events: readonly JobEvent[], step: number): string {
  const own = events.filter(({ data }) => data['step'] === step);
  const whole = own.findLast(({ type }) => type === 'message');
  if (whole !== undefined) return String(whole.data['content']);
  return own
    .filter(({ type }) => type === 'token')
    .map(({ data }) => String(data['text']))
    .join('');
}
