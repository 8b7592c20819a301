import type { Hold, QueueState } from '../api/queue.ts';
import { classes } from '../ui/classes.ts';
import { CircleCheck, Hourglass, TriangleAlert } from '../ui/icons.tsx';
import { durationText } from '../ui/Time.tsx';
import { atLeastText } from './counts.ts';
import { Reason } from './Reason.tsx';

/** A job that is due begins within some milliseconds; after this time its wait is worth a look. */
const longMs = 5_000;

const tones = {
  good: { look: 'border-good/40 bg-good-soft text-good-text', Icon: CircleCheck },
  neutral: { look: 'bg-surface', Icon: Hourglass },
  warn: { look: 'border-warn/40 bg-warn-soft text-warn-text', Icon: TriangleAlert },
};

/** The answer to "why is it slow", in a sentence or two, with the ways to what changes it. */
export function Verdict({ state, isOfAll }: { state: QueueState; isOfAll: boolean }) {
  const { as_of, queues } = state;
  const waiting = queues.reduce((sum, queue) => sum + queue.waiting, 0);
  const since = queues.map(({ oldest }) => oldest && Date.parse(oldest.since)).filter(isNumber);
  const waitedMs = since.length === 0 ? 0 : Math.max(0, Date.parse(as_of) - Math.min(...since));
  const holds = holdsOf(state);
  const isSlow = holds.length > 0 || waitedMs > longMs;
  const isNone = waiting === 0 && !queues.some(({ at_least }) => at_least);
  const tone = isSlow ? 'warn' : isNone ? 'good' : 'neutral';
  const { look, Icon } = tones[tone];
  return (
    <section
      aria-label="Why jobs wait"
      className={classes('flex gap-3 rounded-lg border px-4 py-3.5 shadow-low', look)}
    >
      <Icon className="mt-0.5 size-5 shrink-0" aria-hidden />
      <div className="min-w-0">
        <p className="font-semibold text-balance">{titleOf(state, waitedMs)}</p>
        {holds.length > 0 && (
          <ul className="mt-1.5 flex flex-col gap-2 text-[13px] leading-relaxed">
            {holds.map((hold) => (
              <Reason key={hold.message} hold={hold} isOfAll={isOfAll} />
            ))}
          </ul>
        )}
        {waiting > 0 && holds.length === 0 && (
          <p className="mt-1 text-[13px] leading-relaxed">
            Nothing holds them: they begin as workers come to them.
          </p>
        )}
        <Later state={state} />
      </div>
    </section>
  );
}

/** Those that begin later are slow by request, or wait for their next attempt. */
function Later({ state: { as_of, queues } }: { state: QueueState }) {
  const jobs = queues.filter(({ queue }) => queue !== 'webhooks');
  const later = jobs.reduce((sum, queue) => sum + queue.later, 0);
  if (later === 0) return null;
  const next = jobs
    .map(({ next_at }) => (next_at === null ? null : Date.parse(next_at)))
    .filter(isNumber);
  const inMs = Math.max(0, Math.min(...next) - Date.parse(as_of));
  const count = atLeastText(
    later,
    jobs.some(({ at_least }) => at_least),
  );
  return (
    <p className="mt-1 text-[13px] leading-relaxed">
      {count} {later === 1 ? 'job begins' : 'jobs begin'} later, as requested or for another attempt
      {next.length > 0 && `: the next in ${durationText(inMs)}`}.
    </p>
  );
}

const isNumber = (value: number | null): value is number => value !== null;

function titleOf({ queues }: QueueState, waitedMs: number): string {
  const waiting = queues.reduce((sum, queue) => sum + queue.waiting, 0);
  const isAtLeast = queues.some(({ at_least }) => at_least);
  if (waiting === 0) {
    return isAtLeast
      ? 'Very many jobs are queued: how many wait for a slot was not counted.'
      : 'Nothing waits for a slot.';
  }
  const isOfJobs = queues.every(({ queue, waiting: n }) => queue !== 'webhooks' || n === 0);
  const [one, many] = isOfJobs ? ['job waits', 'jobs wait'] : ['entry waits', 'entries wait'];
  const count = atLeastText(waiting, isAtLeast);
  return `${count} ${waiting === 1 ? one : many}, the oldest for ${durationText(waitedMs)}.`;
}

/** What keeps jobs from beginning goes before what lets them begin in turn. */
const order: readonly Hold['code'][] = [
  'no_worker',
  'slots_taken',
  'skill_not_loaded',
  'paused',
  'limit',
  'organization_share',
  'priority',
];

/** Each reason once: of all, of organizations and of skills. */
function holdsOf({ held_by, organizations, skills }: QueueState): Hold[] {
  const named = organizations.data.flatMap((group) =>
    group.held_by
      .filter(({ code }) => code === 'organization_share')
      .map((hold) => ({
        ...hold,
        message: `${group.name}: ${hold.message}`,
        subject: {
          type: 'organization' as const,
          id: group.name,
          organization_id: group.organization_id,
        },
      })),
  );
  // The queue names organizations beyond their share together; each says more.
  const ofAll =
    named.length > 0 ? held_by.filter(({ code }) => code !== 'organization_share') : held_by;
  const all = [...ofAll, ...named, ...skills.data.flatMap((group) => group.held_by)];
  const isFirst = (hold: Hold, i: number) => all.findIndex((other) => isSame(other, hold)) === i;
  return all.filter(isFirst).toSorted((a, b) => order.indexOf(a.code) - order.indexOf(b.code));
}

/** A limit of which the queue and a skill count different jobs is one reason. */
function isSame(a: Hold, b: Hold): boolean {
  if (a.message === b.message) return true;
  return limitText(a) !== null && limitText(a) === limitText(b);
}

const limitText = ({ code, message }: Hold) =>
  code === 'limit' || code === 'paused' ? message.slice(message.indexOf(':')) : null;
