import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { boundedTotalMax } from '../api/jobs.ts';
import {
  changeMany,
  countMany,
  type ManyFilters,
  type ManyProgress,
  type ManyVerb,
} from '../api/many-jobs.ts';
import { Button } from '../ui/Button.tsx';
import { Dialog } from '../ui/Dialog.tsx';
import { Loaded, Problem } from '../ui/Loading.tsx';
import { countText } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';
import { meaningOf } from './words.ts';

const words = {
  cancel: {
    title: 'Cancel all jobs of this list?',
    verb: 'Cancel',
    effect:
      'Queued and waiting jobs will not run. Active ones are told to stop; what they have done outside the platform stays done.',
    none: 'No job of this list can be cancelled: all of them have ended.',
    begun: 'Cancelled jobs',
    doing: 'cancelled',
  },
  retry: {
    title: 'Run all failed jobs of this list again?',
    verb: 'Retry',
    effect: 'Each runs again as a new job. Jobs that were run again before are left out.',
    none: 'No job of this list can be run again.',
    begun: 'Jobs that run again',
    doing: 'run again',
  },
} as const;

/** A count that ends at a bound. */
const bounded = (n: number) =>
  n >= boundedTotalMax ? `${countText(boundedTotalMax)} or more` : countText(n);
const jobs = (n: number) => `${bounded(n)} ${n === 1 ? 'job' : 'jobs'}`;

/** Shows how many jobs it is about, before the click that changes them, and then how far it is. */
export function ManyJobsDialog({
  verb,
  filters,
  onClose,
}: {
  verb: ManyVerb;
  filters: ManyFilters;
  onClose: () => void;
}) {
  const [stop] = useState(() => new AbortController());
  const [progress, setProgress] = useState<ManyProgress | null>(null);
  const count = useQuery({
    queryKey: ['jobs', 'many', verb, filters],
    queryFn: () => countMany(verb, filters),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const change = useAct({
    act: () => changeMany(verb, filters, count.data ?? 0, setProgress, stop.signal),
    changes: [['jobs', 'list'], ['queue']],
    quiet: true,
  });
  const { title, begun, verb: label, effect, none } = words[verb];
  const isOfCancelled = verb === 'retry' && filters.status === 'cancelled';
  const close = () => {
    stop.abort();
    onClose();
  };
  const hasBegun = !change.isIdle;
  return (
    <Dialog
      open
      onClose={close}
      isForm
      title={hasBegun ? begun : isOfCancelled ? cancelledTitle : title}
    >
      <div className="flex flex-col gap-4">
        {hasBegun && <Progress verb={verb} progress={progress} total={count.data ?? 0} />}
        {change.error && <Problem error={change.error} />}
        {!hasBegun && (
          <Loaded query={count} lines={2}>
            {(total) =>
              total === 0 ? (
                <p>{none}</p>
              ) : (
                <div className="flex flex-col gap-2">
                  <p>
                    <strong>{jobs(total)}</strong> of this list{' '}
                    {verb === 'cancel'
                      ? `${total === 1 ? 'has' : 'have'} not ended.`
                      : 'can run again.'}
                  </p>
                  <p className="text-[13px] leading-relaxed text-muted">{effect}</p>
                </div>
              )
            }
          </Loaded>
        )}
        <div className="flex flex-wrap justify-end gap-2">
          {change.isPending ? (
            <Button onClick={close}>Stop</Button>
          ) : (
            <Button onClick={close}>Close</Button>
          )}
          {!hasBegun && count.data !== undefined && count.data > 0 && (
            <Button
              look={verb === 'cancel' ? 'danger' : 'primary'}
              onClick={() => change.mutate(undefined)}
            >
              {label} {jobs(count.data)}
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  );
}

const cancelledTitle = 'Run all cancelled jobs of this list again?';

/** How many are done and left; in the end what became of them. */
function Progress({
  verb,
  progress,
  total,
}: {
  verb: ManyVerb;
  progress: ManyProgress | null;
  total: number;
}) {
  const { done, stopping, refused, remaining, pausedFor } = progress ?? {
    done: 0,
    stopping: 0,
    refused: {},
    remaining: total,
    pausedFor: null,
  };
  const refusals = Object.entries(refused);
  const came = done + stopping + refusals.reduce((sum, [, n]) => sum + n, 0);
  const share = came + remaining === 0 ? 1 : came / (came + remaining);
  return (
    <div role="status" className="flex flex-col gap-2">
      <progress
        aria-label="Progress"
        value={share}
        max={1}
        className="h-1.5 w-full overflow-hidden rounded-full bg-sunken [&::-moz-progress-bar]:bg-accent [&::-webkit-progress-bar]:bg-sunken [&::-webkit-progress-value]:bg-accent"
      />
      <p className="tabular-nums">
        {countText(done)} {words[verb].doing}
        {stopping > 0 && `, ${countText(stopping)} stopping`}
        {remaining > 0 && `, ${bounded(remaining)} left`}.
      </p>
      {pausedFor !== null && (
        <p className="text-[13px] text-warn-text">
          The platform takes no more requests for now. It goes on in {countText(pausedFor)}
          {'\u00a0'}s.
        </p>
      )}
      {refusals.length > 0 && (
        <ul className="text-[13px] text-muted">
          {refusals.map(([code, n]) => (
            <li key={code}>
              {countText(n)} refused with {code}
              {meaningOf(code) === undefined ? '.' : `: ${meaningOf(code)}`}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
