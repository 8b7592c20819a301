import { type ReactNode, useState } from 'react';
import { changedStatuses, type ManyFilters, type ManyVerb } from '../api/many-jobs.ts';
import { useMissingToRun } from '../skills/useMissingToRun.ts';
import { Button } from '../ui/Button.tsx';
import { CircleX, RotateCcw } from '../ui/icons.tsx';
import { Permitted } from '../ui/NeedsScope.tsx';
import { skillNameOf } from '../ui/Pickers.tsx';
import { ManyJobsDialog } from './ManyJobsDialog.tsx';

/** Cancels or repeats all jobs of a list, by its filters; the API needs at least one. */
export function ManyJobs({
  filters,
  skill,
}: {
  /** Those of the list, read when a button is clicked: its window of time moves. */
  filters: () => ManyFilters;
  /** The skill of the list, as `category/version/name`. */
  skill: string | undefined;
}) {
  const [asked, setAsked] = useState<{ verb: ManyVerb; filters: ManyFilters } | null>(null);
  const { status } = filters();
  const offers = (verb: ManyVerb) => status === undefined || changedStatuses[verb].includes(status);
  const ask = (verb: ManyVerb) => setAsked({ verb, filters: filters() });
  const retry = (
    <Button size="small" icon={<RotateCcw />} onClick={() => ask('retry')}>
      Retry all
    </Button>
  );
  return (
    <>
      {offers('retry') && (skill === undefined ? retry : <Retried skill={skill}>{retry}</Retried>)}
      {offers('cancel') && (
        <Button size="small" look="danger" icon={<CircleX />} onClick={() => ask('cancel')}>
          Cancel all
        </Button>
      )}
      {asked && <ManyJobsDialog {...asked} onClose={() => setAsked(null)} />}
    </>
  );
}

/** A retry needs the scopes of its skill. */
function Retried({ skill, children }: { skill: string; children: ReactNode }) {
  const missing = useMissingToRun(skillNameOf(skill));
  return (
    <Permitted missing={missing} act="A retry">
      {children}
    </Permitted>
  );
}
