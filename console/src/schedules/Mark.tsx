import { Link } from '@tanstack/react-router';
import type { ScheduledRun } from '../api/schedules.ts';
import { classes } from '../ui/classes.ts';
import type { LucideIcon } from '../ui/Icon.tsx';
import {
  Ban,
  Check,
  CircleDashed,
  Clock,
  FileWarning,
  KeyRound,
  Layers,
  Loader,
  Pause,
  Puzzle,
  ShieldX,
  X,
} from '../ui/icons.tsx';
import type { Tone } from '../ui/Status.tsx';
import { type Fate, fateOf, fateTone, runWords } from './outcomes.ts';

const icons: Record<Fate, LucideIcon> = {
  completed: Check,
  failed: X,
  cancelled: Ban,
  waiting: Loader,
  gone: CircleDashed,
  missed: Clock,
  overlapped: Layers,
  agent_paused: Pause,
  key_revoked: KeyRound,
  skill_inactive: Puzzle,
  insufficient_scope: ShieldX,
  input_invalid: FileWarning,
};

const looks: Record<Tone, string> = {
  good: 'bg-good-soft text-good-text ring-good/40',
  bad: 'bg-bad-soft text-bad-text ring-bad/50',
  warn: 'bg-warn-soft text-warn-text ring-warn/60',
  busy: 'bg-busy-soft text-busy-text ring-busy/50',
  accent: 'bg-accent-soft text-accent-text ring-accent/40',
  neutral: 'bg-sunken text-muted ring-line-strong',
};

/** The shape has the same meaning as the colour. */
export function FateIcon({ fate }: { fate: Fate }) {
  const Icon = icons[fate];
  return (
    <span
      className={classes(
        'inline-flex size-4 shrink-0 items-center justify-center rounded ring-1 ring-inset',
        looks[fateTone[fate]],
      )}
      aria-hidden
    >
      <Icon className="size-2.5" strokeWidth={3} />
    </span>
  );
}

/** What became of one slot; leads to its job where it has one. */
export function Mark({
  run,
  onLook,
}: {
  run: ScheduledRun;
  onLook: (run: ScheduledRun | null) => void;
}) {
  const shared = {
    'aria-label': runWords(run),
    title: runWords(run),
    className: 'inline-flex items-center gap-0.5 rounded transition-transform hover:scale-115',
    onMouseEnter: () => onLook(run),
    onMouseLeave: () => onLook(null),
    onFocus: () => onLook(run),
    onBlur: () => onLook(null),
  };
  const icon = (
    <>
      <FateIcon fate={fateOf(run)} />
      {run.slots > 1 && <span className="text-xs tabular-nums">×{run.slots}</span>}
    </>
  );
  if (run.job_id === null) {
    return (
      <button type="button" {...shared} onClick={() => onLook(run)}>
        {icon}
      </button>
    );
  }
  return (
    <Link to="/jobs/$jobId" params={{ jobId: run.job_id }} preload={false} {...shared}>
      {icon}
    </Link>
  );
}
