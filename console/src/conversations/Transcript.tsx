import { useQueries } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Bot, FoldVertical, type LucideIcon, Settings2, User } from 'lucide-react';
import { Fragment, type ReactNode } from 'react';
import type { Message, TokenUsage } from '../api/conversations.ts';
import { hasEnded, type JobListItem, jobStepsQuery } from '../api/jobs.ts';
import { liveMs } from '../api/queries.ts';
import { ErrorWords } from '../jobs/ErrorWords.tsx';
import { Json } from '../ui/Code.tsx';
import { classes } from '../ui/classes.ts';
import { textLink } from '../ui/Links.tsx';
import { countText, Time } from '../ui/Time.tsx';
import { contentOf } from './content.ts';
import { Folded } from './Folded.tsx';
import { ToolCall } from './ToolCall.tsx';
import { type Entry, entriesOf, isBroken, needsSteps, type Turn } from './turns.ts';

type Tokens = TokenUsage['breakdown'][number];

const speakers: Record<string, { name: string; icon: LucideIcon; look: string }> = {
  user: { name: 'User', icon: User, look: 'bg-accent-soft text-accent-text' },
  assistant: { name: 'Assistant', icon: Bot, look: 'bg-good-soft text-good-text' },
  summary: { name: 'Summary of what was before', icon: FoldVertical, look: 'bg-sunken text-muted' },
  system: { name: 'System', icon: Settings2, look: 'bg-sunken text-muted' },
};

/** The messages, oldest first, and then `children`: the message that is being streamed. */
export function Transcript({
  turns,
  usage,
  children,
}: {
  turns: readonly Turn[];
  usage: TokenUsage | undefined;
  children?: ReactNode;
}) {
  const asked = turns.filter(needsSteps).flatMap(({ job }) => job ?? []);
  const answers = useQueries({
    queries: asked.map((job) => ({
      ...jobStepsQuery(job.job_id),
      refetchInterval: !hasEnded(job) && liveMs,
    })),
  });
  const steps = new Map(asked.map(({ job_id }, i) => [job_id, answers[i]?.data?.data]));
  const tokens = new Map(usage?.breakdown.map((one) => [one.message_id, one]));
  return (
    <ol aria-label="Messages" className="flex flex-col">
      {turns.map((turn) => (
        <Fragment key={turn.messages[0]?.id ?? turn.job?.job_id}>
          {entriesOf(turn.messages, steps.get(turn.job?.job_id ?? '')).map((entry) => (
            <Statement key={entry.message.id} entry={entry} tokens={tokens} />
          ))}
          {isBroken(turn) && turn.job && <Broken job={turn.job} />}
        </Fragment>
      ))}
      {children}
    </ol>
  );
}

/** A message with the actions that it caused. */
function Statement({
  entry: { message, caused },
  tokens,
}: {
  entry: Entry;
  tokens: ReadonlyMap<string, Tokens>;
}) {
  const below = caused.length > 0 && (
    <ol
      aria-label={message.role === 'tool' ? 'Said within the tool' : 'Tools it called'}
      className={classes('flex flex-col', message.role === 'tool' && 'border-l pl-3')}
    >
      {caused.map((entry) => (
        <Statement key={entry.message.id} entry={entry} tokens={tokens} />
      ))}
    </ol>
  );
  if (message.role === 'tool') {
    return (
      <li className="pt-1.5">
        <ToolCall message={message} />
        {below}
      </li>
    );
  }
  return (
    <Said
      by={message.kind === 'summary' ? 'summary' : message.role}
      at={message.created_at}
      tokens={tokens.get(message.id)}
    >
      {message.content === '' ? (
        <p className="text-muted italic">
          {caused.some(({ message: { role } }) => role === 'tool')
            ? 'Called tools without a word.'
            : 'Said nothing.'}
        </p>
      ) : (
        <Body message={message} />
      )}
      {below}
    </Said>
  );
}

/** A turn that came to no answer. */
function Broken({ job: { job_id, status, error } }: { job: JobListItem }) {
  return (
    <li className="pt-5 pl-10 max-sm:pl-0">
      {status === 'failed' && error ? (
        <ErrorWords error={error} />
      ) : (
        <p className="text-muted italic">The job was {status} before it had answered.</p>
      )}
      <Link to="/jobs/$jobId" params={{ jobId: job_id }} className={classes('text-xs', textLink)}>
        The job of this turn
      </Link>
    </li>
  );
}

export function Said({
  by,
  at,
  tokens,
  children,
}: {
  /** A role of messages, or a summary. */
  by: string;
  at?: string;
  tokens?: Tokens | undefined;
  children: ReactNode;
}) {
  const { name, icon: Icon, look } = speakers[by] ?? { name: by, icon: Bot, look: '' };
  return (
    <li className="flex gap-3 pt-5 first:pt-0">
      <span
        className={classes('flex size-7 shrink-0 items-center justify-center rounded-full', look)}
        aria-hidden
      >
        <Icon className="size-4" />
      </span>
      <div className="min-w-0 grow">
        <p className="mb-1 flex min-h-7 flex-wrap items-center gap-x-3 text-xs text-muted">
          <span className="text-[13px] font-semibold text-ink">{name}</span>
          {at && <Time value={at} />}
          {tokens?.model && <span className="font-mono">{tokens.model}</span>}
          {tokens && <Cost {...tokens} />}
        </p>
        {children}
      </div>
    </li>
  );
}

/** Nothing for a cost of zero; a dash for an unknown cost. */
function Cost({ prompt_tokens, completion_tokens }: Tokens) {
  if (prompt_tokens === 0 && completion_tokens === 0) return null;
  return (
    <span className="ml-auto tabular-nums">
      {countText(prompt_tokens)} in · {countText(completion_tokens)} out
    </span>
  );
}

function Body({ message }: { message: Message }) {
  const content = contentOf(message);
  if (content.kind === 'data') return <Json label="Content" value={content.value} />;
  return (
    <>
      {content.name && <p className="mb-0.5 text-xs text-muted">{content.name}</p>}
      <Folded text={content.text} />
    </>
  );
}
