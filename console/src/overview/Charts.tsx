import type { ReactNode } from 'react';
import type { Schema } from '../api/client.ts';
import type { Series } from '../ui/Chart.tsx';
import { Choice } from '../ui/Choice.tsx';
import { lazyPart } from '../ui/lazily.tsx';
import { Section } from '../ui/Page.tsx';
import { durationText } from '../ui/Time.tsx';

const Chart = lazyPart(async () => (await import('../ui/Chart.tsx')).Chart, { waiting: null });

const seconds = [
  { value: 'duration', label: 'Duration' },
  { value: 'tokens', label: 'Tokens' },
] as const;

/** Milliseconds that a clock shows as round. */
const durationSteps = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * 1_000),
  ...[1, 2, 5, 10, 15, 30, 60, 120, 360, 720].map((n) => n * 60_000),
];

/** What ended when, and how long it took or how many tokens. */
export function Charts({
  statistics: { buckets, bucket_seconds, totals },
  second,
  onSecond,
}: {
  statistics: Schema<'Statistics'>;
  second: 'duration' | 'tokens';
  onSecond: (second: 'duration' | 'tokens') => void;
}) {
  const times = buckets.map(({ start }) => Date.parse(start) / 1000);
  const per = bucket_seconds === 60 ? 'per minute' : `per ${bucket_seconds / 60} minutes`;
  const ended: Series[] = [
    {
      name: 'Completed',
      colour: 'good',
      look: 'bars',
      values: buckets.map(({ completed }) => completed),
      summary: totals.completed,
    },
    {
      name: 'Failed',
      colour: 'bad',
      look: 'bars',
      values: buckets.map(({ failed }) => failed),
      summary: totals.failed,
    },
  ];
  const duration: Series[] = [
    {
      name: 'Average duration',
      colour: 'accent',
      // Bars, because a line would connect minutes across gaps without runs.
      look: 'bars',
      values: buckets.map(({ average_duration_ms }) => average_duration_ms),
      summary: averageOf(buckets),
    },
  ];
  const tokens: Series[] = [
    {
      name: 'Tokens',
      colour: 'busy',
      look: 'bars',
      values: buckets.map(({ total_tokens }) => total_tokens),
      summary: totals.total_tokens,
    },
  ];
  return (
    <div className="grid gap-5 lg:grid-cols-2">
      <Section title={`Runs that ended, ${per}`}>
        <Drawn>
          <Chart label={`Runs that ended, ${per}`} times={times} series={ended} />
        </Drawn>
      </Section>
      <Section
        title={second === 'tokens' ? `Tokens of models, ${per}` : 'How long runs took'}
        actions={<Choice label="Chart" value={second} choices={seconds} onValue={onSecond} />}
      >
        <Drawn>
          {second === 'tokens' ? (
            <Chart label={`Tokens of models, ${per}`} times={times} series={tokens} />
          ) : (
            <Chart
              label={`Average duration, ${per}`}
              times={times}
              series={duration}
              format={durationText}
              steps={durationSteps}
            />
          )}
        </Drawn>
      </Section>
    </div>
  );
}

/** Share of all ended runs; null without any. */
function averageOf(buckets: Schema<'Statistics'>['buckets']): number | null {
  let runs = 0;
  let ms = 0;
  for (const { completed, failed, average_duration_ms } of buckets) {
    runs += completed + failed;
    ms += (completed + failed) * (average_duration_ms ?? 0);
  }
  return runs === 0 ? null : ms / runs;
}

/** Keeps the place of a chart whose code is under way. */
const Drawn = ({ children }: { children: ReactNode }) => <div className="min-h-51">{children}</div>;
