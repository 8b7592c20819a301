/** What a call of a model was sent, with what is new against the turn before. */
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { type JobStep, type StepPrompt, stepPromptQuery } from '../api/jobs.ts';
import { Choice } from '../ui/Choice.tsx';
import { Code } from '../ui/Code.tsx';
import { classes } from '../ui/classes.ts';
import { Problem, Skeleton } from '../ui/Loading.tsx';
import { countText } from '../ui/Time.tsx';
import { notKeptWords, type PromptPart, partsOfPrompt, shownJson } from './prompt-parts.ts';

export function SentPrompt({ jobId, step }: { jobId: string; step: JobStep }) {
  const { prompt: state } = step;
  const [view, setView] = useState<'difference' | 'whole'>('difference');
  const isKept = state === 'kept';
  const difference = useQuery({
    ...stepPromptQuery(jobId, step.step, 'difference'),
    enabled: isKept,
  });
  const whole = useQuery({
    ...stepPromptQuery(jobId, step.step, 'whole'),
    enabled: isKept && view === 'whole',
  });
  if (state === null) return null;
  const query = view === 'whole' && !difference.isError ? whole : difference;
  return (
    <section aria-label="What was sent" className="flex min-w-0 flex-col gap-2">
      <div className="flex flex-wrap items-center gap-2">
        <h4 className="text-xs font-medium text-muted">What was sent</h4>
        {isKept && (
          <Choice
            label="How much of it"
            value={view}
            choices={[
              { value: 'difference', label: 'New' },
              { value: 'whole', label: 'All of it' },
            ]}
            onValue={setView}
          />
        )}
        {difference.data && <Sizes prompt={difference.data} />}
      </div>
      {!isKept && <p className="text-[13px] text-muted">{notKeptWords[state]}</p>}
      {query.isError && <Problem error={query.error} retry={() => void query.refetch()} />}
      {isKept && query.isPending && <Skeleton lines={3} />}
      {difference.data && query.data && (
        <Parts difference={difference.data} whole={view === 'whole' ? query.data : null} />
      )}
    </section>
  );
}

function Sizes({ prompt: { bytes, since_step: since } }: { prompt: StepPrompt }) {
  const against = since === null ? 'the first of its dialogue' : `against step ${since}`;
  return (
    <span className="text-xs text-muted">
      {countText(bytes)} bytes, {against}
    </span>
  );
}

function Parts({ difference, whole }: { difference: StepPrompt; whole: StepPrompt | null }) {
  if (difference.difference === null) {
    return <p className="text-[13px] text-muted">{notKeptWords.expired}</p>;
  }
  const parts = partsOfPrompt(difference.difference, whole?.body ?? null);
  if (parts.length === 0) return <p className="text-[13px] text-muted">Nothing is new.</p>;
  return (
    <ul className="flex min-w-0 flex-col gap-2">
      {parts.map((part) => (
        <li key={part.key} className="min-w-0">
          <Part part={part} />
        </li>
      ))}
    </ul>
  );
}

const looks: Record<PromptPart['change'], { word: string; look: string }> = {
  added: { word: 'new', look: 'border-good' },
  removed: { word: 'no longer sent', look: 'border-bad' },
  same: { word: '', look: 'border-line' },
};

function Part({ part }: { part: PromptPart }): ReactNode {
  const { word, look } = looks[part.change];
  return (
    <div className={classes('min-w-0 border-l-4 pl-2', look)}>
      <p className="mb-1 font-mono text-xs break-words text-muted">
        {part.title}
        {word !== '' && <span className="ml-2 font-sans">{word}</span>}
      </p>
      {part.count === undefined && <Code label={part.title} text={shownJson(part.value)} />}
    </div>
  );
}
