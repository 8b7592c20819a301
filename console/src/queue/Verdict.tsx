import { CircleCheck, Hourglass, TriangleAlert } from 'lucide-react';
import type { Hold, QueueState } from '../api/queue.ts';
import { classes } from '../ui/classes.ts';
import { countText, durationText } from '../ui/Time.tsx';

/** A job that is due begins within some milliseconds; after this time its wait is worth a look. */
const longMs = 5_000;

const tones = {
  good: { look: 'border-good/40 bg-good-soft text-good-text', Icon: CircleCheck },
  neutral: { look: 'bg-surface', Icon: Hourglass },
  warn: { look: 'border-warn/40 bg-warn-soft text-warn-text', Icon: TriangleAlert },
};

/** The answer to "why is it slow", in a sentence or two. */
export function Verdict({ state }: { state: QueueState }) {
  const { as_of, queues } = state;
  const waiting = queues.reduce((sum, queue) => sum + queue.waiting, 0);
  const since = queues.map(({ oldest }) => oldest && Date.parse(oldest.since)).filter(isNumber);
  const waitedMs = since.length === 0 ? 0 : Math.max(0, Date.parse(as_of) - Math.min(...since));
  const holds = holdsOf(state);
  const isOfJobs = queues.every(({ queue, waiting: n }) => queue !== 'webhooks' || n === 0);
  const isSlow = holds.length > 0 || waitedMs > longMs;
  const tone = waiting === 0 ? 'good' : isSlow ? 'warn' : 'neutral';
  const { look, Icon } = tones[tone];
  return (
    <section
      aria-label="Why jobs wait"
      className={classes('flex gap-3 rounded-lg border px-4 py-3.5 shadow-low', look)}
    >
      <Icon className="mt-0.5 size-5 shrink-0" aria-hidden />
      <div className="min-w-0">
        <p className="font-semibold text-balance">{titleOf(waiting, waitedMs, isOfJobs)}</p>
        {holds.length > 0 && (
          <ul className="mt-1 flex flex-col gap-0.5 text-[13px] leading-relaxed">
            {holds.map(({ message }) => (
              <li key={message} className="wrap-anywhere">
                {message}
              </li>
            ))}
          </ul>
        )}
        {waiting > 0 && holds.length === 0 && (
          <p className="mt-1 text-[13px] leading-relaxed">
            Nothing holds them: they begin as workers come to them.
          </p>
        )}
      </div>
    </section>
  );
}

const isNumber = (value: number | null): value is number => value !== null;

function titleOf(waiting: number, waitedMs: number, isOfJobs: boolean): string {
  if (waiting === 0) return 'Nothing waits for a slot.';
  const [one, many] = isOfJobs ? ['job waits', 'jobs wait'] : ['entry waits', 'entries wait'];
  const noun = waiting === 1 ? one : many;
  return `${countText(waiting)} ${noun}, the oldest for ${durationText(waitedMs)}.`;
}

/** Each reason once: of all, of organizations and of skills. */
function holdsOf({ held_by, organizations, skills }: QueueState): Hold[] {
  const named = organizations.data.flatMap((group) =>
    group.held_by
      .filter(({ code }) => code === 'organization_share')
      .map(({ code, message }) => ({ code, message: `${group.name}: ${message}` })),
  );
  const all = [...held_by, ...named, ...skills.data.flatMap((group) => group.held_by)];
  return all.filter(({ message }, i) => all.findIndex((other) => other.message === message) === i);
}
