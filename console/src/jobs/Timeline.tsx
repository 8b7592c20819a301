/**
 * What a job did, drawn to scale: a table whose middle column is an axis of time, so that it can be
 * read, and gone through with the keyboard, like any other. A row opens to show the rest.
 */
import { Fragment, useEffect, useState } from 'react';
import type { JobEvent } from '../api/follow.ts';
import { type JobStep, stepsPageSize } from '../api/jobs.ts';
import { Button } from '../ui/Button.tsx';
import { Problem, Skeleton } from '../ui/Loading.tsx';
import { countText, durationText } from '../ui/Time.tsx';
import { lengthOf } from './intervals.ts';
import { SpanDetails } from './SpanDetails.tsx';
import { SpanName } from './SpanName.tsx';
import { isMoment, isOverDays, spanText } from './span-text.ts';
import { type Span, spansOf, unfolded } from './spans.ts';
import { type StepUsage, usageOfSteps, usageText } from './step-usage.ts';
import { Grid, Ticks, usePlace } from './TimelineAxis.tsx';
import { Bar, useCrosshair } from './TimelineBar.tsx';
import { timeScale } from './time-scale.ts';
import { useRunningJob } from './useRunningJob.ts';

/** How often active bars grow. */
const growsEveryMs = 200;

/** The end of the axis: the present while the job is active. */
function useEnd(spans: readonly Span[]): number {
  const isLive = spans.some(({ to }) => to === null);
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isLive) return;
    const timer = setInterval(() => setNow(Date.now()), growsEveryMs);
    return () => clearInterval(timer);
  }, [isLive]);
  const known = Math.max(...spans.map(({ from, to }) => to ?? from));
  // The clock of this machine may be behind the platform's.
  return isLive ? Math.max(now, known) : known;
}

export function Timeline({
  jobId,
  spans: all,
  events,
  caption = 'Timeline of the job',
}: {
  jobId: string;
  spans: readonly Span[];
  events: readonly JobEvent[];
  caption?: string;
}) {
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const spans = unfolded(all, folded);
  const usages = usageOfSteps(all.flatMap(({ step }) => step ?? []).sort(byNumber));
  const isCounted = usages.size > 0;
  const [open, setOpen] = useState<string | null>(null);
  const [pointed, setPointed] = useState<string | null>(null);
  const end = useEnd(all);
  const scale = timeScale(all, end);
  const hasDay = isOverDays(scale.start, end);
  const { axis, line, label, onPointerMove, onPointerLeave } = useCrosshair(scale);
  const { left, width } = usePlace(axis);
  const described = spans.find(({ key }) => key === pointed);
  const folds = scale.stretches.filter(({ isFolded }) => isFolded);
  return (
    <>
      <div className="relative" onPointerMove={onPointerMove} onPointerLeave={onPointerLeave}>
        <Grid scale={scale} left={left} width={width} />
        <table className="w-full table-fixed text-[13px]">
          <caption className="sr-only">{caption}</caption>
          <thead>
            <tr className="border-b bg-sunken text-left text-xs text-muted">
              <th scope="col" className="w-64 px-4 font-medium max-lg:w-48 max-sm:w-36 max-sm:px-3">
                What
              </th>
              <th ref={axis} scope="col" className="p-0 font-normal">
                <span className="sr-only">When</span>
                <Ticks scale={scale} room={width} />
              </th>
              {isCounted && (
                <th scope="col" className="w-48 px-4 text-right font-medium max-lg:hidden">
                  Models
                </th>
              )}
              <th scope="col" className="w-28 px-4 text-right font-medium max-sm:w-24 max-sm:px-3">
                Duration
              </th>
            </tr>
          </thead>
          <tbody>
            {spans.map((span) => (
              <Fragment key={span.key}>
                <tr
                  onPointerEnter={() => setPointed(span.key)}
                  onPointerLeave={() => setPointed(null)}
                  onFocus={() => setPointed(span.key)}
                  onBlur={() => setPointed(null)}
                  className="relative border-b border-line/60 transition-colors last:border-0 hover:bg-hover"
                >
                  <th scope="row" className="px-4 py-0 text-left font-normal max-sm:px-3">
                    <SpanName
                      span={span}
                      isOpen={open === span.key}
                      onToggle={() => setOpen(open === span.key ? null : span.key)}
                      isFolded={folded.has(span.key)}
                      onFold={() => setFolded(folded.symmetricDifference(new Set([span.key])))}
                    />
                  </th>
                  <td className="p-0">
                    <span className="sr-only">{spanText(span, end, hasDay)}</span>
                    <div aria-hidden className="relative h-8">
                      <Bar span={span} scale={scale} end={end} />
                    </div>
                  </td>
                  {isCounted && (
                    <td className="truncate px-4 text-right text-muted tabular-nums max-lg:hidden">
                      <Spent usage={usages.get(span.step?.step ?? 0)} />
                    </td>
                  )}
                  <td className="px-4 text-right whitespace-nowrap text-muted tabular-nums max-sm:px-3">
                    {!isMoment(span) && durationText((span.to ?? end) - span.from)}
                  </td>
                </tr>
                {open === span.key && (
                  <tr className="border-b border-line/60 last:border-0">
                    <td colSpan={3} className="relative z-10 bg-sunken px-4 py-3 max-sm:px-3">
                      <SpanDetails jobId={jobId} span={span} events={events} />
                      {span.step?.waits_for?.job_id !== undefined && (
                        <StartedTrace jobId={span.step.waits_for.job_id} />
                      )}
                    </td>
                    {isCounted && (
                      <td aria-hidden className="relative z-10 bg-sunken max-lg:hidden" />
                    )}
                  </tr>
                )}
              </Fragment>
            ))}
          </tbody>
        </table>
        <div
          ref={line}
          aria-hidden
          hidden
          className="pointer-events-none absolute inset-y-0 border-l border-accent"
        >
          <span
            ref={label}
            className="absolute top-1.5 left-0 -translate-x-1/2 rounded bg-accent px-1.5 py-0.5 text-xs whitespace-nowrap text-on-accent tabular-nums"
          />
        </div>
      </div>
      {folds.length > 0 && (
        <p className="border-t px-4 py-2 text-xs text-muted">
          Not to scale where it is hatched: nothing ran for {durationText(lengthOf(folds))} there.
        </p>
      )}
      <p
        aria-hidden
        className="truncate border-t px-4 py-2 text-xs text-muted tabular-nums max-sm:hidden"
      >
        {described
          ? `${described.label} · ${spanText(described, end, hasDay)}`
          : 'Point at a row for its exact times; open it for all that is known of it.'}
      </p>
    </>
  );
}

const byNumber = (a: JobStep, b: JobStep) => a.step - b.step;

/** What a step took of models, with all steps below it. */
function Spent({ usage }: { usage: StepUsage | undefined }) {
  return usage === undefined ? null : <span title={usageText(usage)}>{usageText(usage)}</span>;
}

/** The steps of a job that a step started, once they are asked for. */
function StartedTrace({ jobId }: { jobId: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div className="mt-3">
      <Button size="small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? 'Hide the steps of this job' : 'Show the steps of this job'}
      </Button>
      {isOpen && <Steps jobId={jobId} />}
    </div>
  );
}

function Steps({ jobId }: { jobId: string }) {
  const { job, steps, events, isReady } = useRunningJob(jobId);
  if (job.error !== null && job.data === undefined) return <Problem error={job.error} />;
  if (!isReady || job.data === undefined) return <Skeleton lines={3} />;
  const total = steps?.total ?? 0;
  return (
    <div className="mt-2 overflow-hidden rounded-md border bg-surface">
      <Timeline
        jobId={jobId}
        caption="Timeline of a job that it started"
        spans={spansOf(job.data, events, steps?.data ?? [])}
        events={events}
      />
      {total > stepsPageSize && (
        <p className="border-t px-4 py-2 text-xs text-muted">
          The first {stepsPageSize} of {countText(total)} steps: the page of the job has all.
        </p>
      )}
    </div>
  );
}
