import type { JobStep } from '../api/jobs.ts';
import { Section } from '../ui/Page.tsx';
import { countText, Time } from '../ui/Time.tsx';
import { StartedJob } from './SpanDetails.tsx';
import { waitText } from './waits.ts';

/** What a job waits for now. What a person has to decide is shown by itself. */
export function Waits({ waits, total }: { waits: readonly JobStep[]; total: number }) {
  const shown = waits.filter(({ kind }) => kind !== 'approval');
  if (shown.length === 0) return null;
  return (
    <Section title="It waits" flush>
      <ul aria-label="What the job waits for" className="max-h-72 overflow-y-auto text-[13px]">
        {shown.map((wait) => (
          <li
            key={wait.step}
            className="flex flex-wrap items-baseline gap-x-3 gap-y-1 border-b px-4 py-2 last:border-0"
          >
            <span className="font-medium wrap-anywhere">{wait.name}</span>
            <What wait={wait} />
          </li>
        ))}
      </ul>
      {total > waits.length && (
        <p className="border-t px-4 py-2 text-xs text-muted">
          The first {countText(waits.length)} of {countText(total)} waits.
        </p>
      )}
    </Section>
  );
}

function What({ wait }: { wait: JobStep }) {
  const { kind, waits_for, due_at } = wait;
  if (kind === 'run' && waits_for?.job_id !== undefined) {
    return (
      <span className="flex flex-wrap items-center gap-2 text-muted">
        runs <StartedJob {...waits_for} jobId={waits_for.job_id} />
      </span>
    );
  }
  return (
    <span className="text-muted wrap-anywhere">
      {waitText(wait)}
      {due_at !== null && kind !== 'run' && (
        <>
          {' '}
          until <Time value={due_at} exact /> (<Time value={due_at} />)
        </>
      )}
    </span>
  );
}
