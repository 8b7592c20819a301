import { useQueries } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Fragment, type ReactNode } from 'react';
import type { Message, TokenUsage } from '../api/conversations.ts';
import { hasEnded, type JobListItem, type JobStep, jobStepsQuery } from '../api/jobs.ts';
import { live } from '../api/queries.ts';
import { ErrorWords } from '../jobs/ErrorWords.tsx';
import { type StepUsage, usageOfSteps } from '../jobs/step-usage.ts';
import { Markdown } from '../markdown/Markdown.tsx';
import { Button } from '../ui/Button.tsx';
import { Json } from '../ui/Code.tsx';
import { classes } from '../ui/classes.ts';
import type { LucideIcon } from '../ui/Icon.tsx';
import { Bot, FoldVertical, Pencil, RotateCcw, Settings2, User } from '../ui/icons.tsx';
import { textLink } from '../ui/Links.tsx';
import { moneyText } from '../ui/Money.ts';
import { countText, Time } from '../ui/Time.tsx';
import { contentOf } from './content.ts';
import { Files } from './Files.tsx';
import { Folded } from './Folded.tsx';
import { ToolCall } from './ToolCall.tsx';
import {
  type Entry,
  entriesOf,
  isBroken,
  needsSteps,
  type Turn,
  withoutMisleadingTools,
} from './turns.ts';

type Tokens = TokenUsage['breakdown'][number];

/** Turns at the end whose steps are read to show the usage of their tools. */
const measuredTurns = 10;

/** Writes a message of the user anew, or has it answered again. */
type OnAnew = (
  how: 'write' | 'answer',
  said: { messageId: string; text: string; files: readonly string[] },
) => void;

/** Details of a turn's messages from its steps. */
type StepOf = (messageId: string) => { step: JobStep; usage: StepUsage | undefined } | undefined;

const speakers: Record<string, { name: string; icon: LucideIcon; look: string }> = {
  user: { name: 'User', icon: User, look: 'bg-accent-soft text-accent-text' },
  assistant: { name: 'Assistant', icon: Bot, look: 'bg-good-soft text-good-text' },
  summary: { name: 'Summary of what was before', icon: FoldVertical, look: 'bg-sunken text-muted' },
  unfinished: { name: 'Answer that broke off', icon: Bot, look: 'bg-sunken text-muted' },
  system: { name: 'System', icon: Settings2, look: 'bg-sunken text-muted' },
};

/** The messages, oldest first, and then `children`: the message that is being streamed. */
export function Transcript({
  turns,
  usage,
  onRetry,
  onAnew,
  children,
}: {
  turns: readonly Turn[];
  usage: TokenUsage | undefined;
  /** Repeats the task of the last turn if it has no answer. */
  onRetry?: ((turn: Turn) => void) | undefined;
  onAnew?: OnAnew | undefined;
  children?: ReactNode;
}) {
  const jobsOfTurns = turns
    .filter((turn, i) => needsSteps(turn) || (i >= turns.length - measuredTurns && hasTools(turn)))
    .flatMap(({ job }) => job ?? []);
  const answers = useQueries({
    queries: jobsOfTurns.map((job) => ({
      ...jobStepsQuery(job.job_id),
      refetchInterval: !hasEnded(job) && live,
    })),
  });
  const steps = new Map(jobsOfTurns.map(({ job_id }, i) => [job_id, answers[i]]));
  const tokens = new Map(usage?.breakdown.map((one) => [one.message_id, one]));
  return (
    <ol aria-label="Messages" className="flex flex-col">
      {turns.map((turn, i) => {
        const answer = steps.get(turn.job?.job_id ?? '');
        const all = answer?.data?.data;
        const { messages } = answer?.isPending ? withoutMisleadingTools(turn) : turn;
        const byMessage = new Map(all?.map((step) => [step.message_id, step]));
        const usages = usageOfSteps(all ?? []);
        const stepOf: StepOf = (messageId) => {
          const step = byMessage.get(messageId);
          return step && { step, usage: usages.get(step.step) };
        };
        const retry = i === turns.length - 1 && onRetry ? () => onRetry(turn) : undefined;
        return (
          <Fragment key={turn.messages[0]?.id ?? turn.job?.job_id}>
            {entriesOf(messages, all).map((entry) => (
              <Statement
                key={entry.message.id}
                entry={entry}
                tokens={tokens}
                stepOf={stepOf}
                trialOf={turn.job?.is_trial ? turn.job.job_id : undefined}
                isOpen={turn.job !== undefined && !hasEnded(turn.job)}
                actions={onAnew && actionsOn(turn, entry.message, onAnew)}
              />
            ))}
            {isBroken(turn) && turn.job && <Broken job={turn.job} onRetry={retry} />}
          </Fragment>
        );
      })}
      {children}
    </ol>
  );
}

/** What may be done with a message: one of the user is written anew, the last answer of a turn is given again. */
function actionsOn({ messages }: Turn, message: Message, onAnew: OnAnew): ReactNode {
  const asked =
    message.role === 'user'
      ? message
      : messages.at(-1) === message && message.role === 'assistant'
        ? messages.findLast(({ role }) => role === 'user')
        : undefined;
  const content = asked && contentOf(asked);
  if (asked === undefined || content?.kind !== 'text') return null;
  const said = { messageId: asked.id, text: content.text, files: content.files ?? [] };
  return message.role === 'user' ? (
    <Button size="small" look="quiet" icon={<Pencil />} onClick={() => onAnew('write', said)}>
      Edit
    </Button>
  ) : (
    <Button size="small" look="quiet" icon={<RotateCcw />} onClick={() => onAnew('answer', said)}>
      Answer again
    </Button>
  );
}

const hasTools = ({ messages }: Turn) => messages.some(({ role }) => role === 'tool');

/** A message with the actions that it caused. */
function Statement({
  entry: { message, caused },
  tokens,
  stepOf,
  trialOf,
  isOpen,
  actions,
}: {
  entry: Entry;
  tokens: ReadonlyMap<string, Tokens>;
  stepOf: StepOf;
  /** The job of its turn, where that had instructions of its own. */
  trialOf: string | undefined;
  /** Whether its turn goes on, so that its tools may be still to come. */
  isOpen: boolean;
  actions?: ReactNode;
}) {
  const below = caused.length > 0 && (
    <ol
      aria-label={message.role === 'tool' ? 'Said within the tool' : 'Tools it called'}
      className={classes('flex flex-col', message.role === 'tool' && 'border-l pl-3')}
    >
      {caused.map((entry) => (
        <Statement
          key={entry.message.id}
          entry={entry}
          tokens={tokens}
          stepOf={stepOf}
          trialOf={trialOf}
          isOpen={isOpen}
        />
      ))}
    </ol>
  );
  const known = stepOf(message.id);
  if (message.role === 'tool') {
    return (
      <li className="pt-1.5">
        <ToolCall
          message={message}
          took={known && { ms: known.step.duration_ms, usage: known.usage }}
        />
        <Files ids={idsOf(message)} />
        {below}
      </li>
    );
  }
  return (
    <Said
      by={message.kind === 'message' ? message.role : message.kind}
      at={message.created_at}
      model={message.model}
      tokens={tokens.get(message.id)}
      {...(message.role === 'user' && { trialOf })}
    >
      {message.content === '' ? (
        <p className="text-muted italic">
          {isOpen || caused.some(({ message: { role } }) => role === 'tool')
            ? 'Called tools without a word.'
            : 'Said nothing.'}
        </p>
      ) : (
        <Body message={message} />
      )}
      {below}
      {actions && <p className="-ml-2 mt-1">{actions}</p>}
    </Said>
  );
}

/** A turn without an answer. */
function Broken({
  job: { job_id, status, error },
  onRetry,
}: {
  job: JobListItem;
  onRetry: (() => void) | undefined;
}) {
  return (
    <li className="pt-5 pl-10 max-sm:pl-0">
      {status === 'failed' && error ? (
        <ErrorWords error={error} />
      ) : (
        <p className="text-muted italic">The job was {status} before it had answered.</p>
      )}
      <p className="mt-1 flex flex-wrap items-center gap-3">
        {onRetry && (
          <Button size="small" onClick={onRetry}>
            Try again
          </Button>
        )}
        <Link to="/jobs/$jobId" params={{ jobId: job_id }} className={classes('text-xs', textLink)}>
          The job of this turn
        </Link>
      </p>
    </li>
  );
}

export function Said({
  by,
  at,
  model,
  tokens,
  trialOf,
  children,
}: {
  /** A role of messages, or a summary. */
  by: string;
  at?: string;
  model?: string | null;
  tokens?: Tokens | undefined;
  /** The job that had instructions of its own for this message. */
  trialOf?: string | undefined;
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
          {trialOf !== undefined && (
            <Link
              to="/jobs/$jobId"
              params={{ jobId: trialOf }}
              className="rounded bg-warn-soft px-1.5 py-0.5 text-warn-text hover:underline"
            >
              Unsaved instructions
            </Link>
          )}
          {model && <span className="font-mono">{model}</span>}
          {tokens && <Cost {...tokens} />}
        </p>
        {children}
      </div>
    </li>
  );
}

/** Nothing for a cost of zero; a dash for an unknown cost. */
function Cost({ prompt_tokens, completion_tokens, cost_usd }: Tokens) {
  if (prompt_tokens === 0 && completion_tokens === 0) return null;
  return (
    <span className="ml-auto tabular-nums">
      {countText(prompt_tokens)} in · {countText(completion_tokens)} out
      {cost_usd === null ? '' : ` · ${moneyText(cost_usd)}`}
    </span>
  );
}

const idsOf = ({ files }: Message) => files?.map(({ id }) => id) ?? [];

/** Whether it only says the names of its pictures, which are shown anyway. */
const isNamesAlone = ({ content, files }: Message) =>
  files !== undefined && content === `[${files.map(({ name }) => name).join(', ')}]`;

function Body({ message }: { message: Message }) {
  const content = contentOf(message);
  if (content.kind === 'data') {
    return (
      <>
        <Json label="Content" value={content.value} />
        <Files ids={idsOf(message)} />
      </>
    );
  }
  return (
    <>
      {content.name && content.name !== 'task' && (
        <p className="mb-0.5 text-xs text-muted">{content.name}</p>
      )}
      {message.role !== 'assistant' ? (
        <Folded text={content.text} />
      ) : (
        isNamesAlone(message) || <Markdown text={content.text} />
      )}
      <Files ids={content.files ?? idsOf(message)} />
    </>
  );
}
