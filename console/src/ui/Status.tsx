import type { ReactNode } from 'react';
import { classes } from './classes.ts';

export type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'accent' | 'neutral';

const tones: Record<Tone, { badge: string; dot: string }> = {
  good: { badge: 'bg-good-soft text-good-text', dot: 'bg-good' },
  warn: { badge: 'bg-warn-soft text-warn-text', dot: 'bg-warn' },
  bad: { badge: 'bg-bad-soft text-bad-text', dot: 'bg-bad' },
  busy: { badge: 'bg-busy-soft text-busy-text', dot: 'bg-busy animate-pulse' },
  accent: { badge: 'bg-accent-soft text-accent-text', dot: 'bg-accent' },
  neutral: { badge: 'bg-sunken text-muted ring-1 ring-inset ring-line', dot: 'bg-muted' },
};

/** The states of jobs, conversations, deliveries, agents, runs of schedules, approvals, and their colours. */
const toneOf: Record<string, Tone> = {
  completed: 'good',
  delivered: 'good',
  fired: 'good',
  caught_up: 'good',
  run_now: 'good',
  ok: 'good',
  available: 'good',
  enabled: 'good',
  queued: 'neutral',
  pending: 'neutral',
  cancelled: 'neutral',
  disabled: 'neutral',
  deprecated: 'neutral',
  revoked: 'neutral',
  active: 'busy',
  waiting: 'accent',
  approved: 'good',
  rejected: 'bad',
  delivering: 'busy',
  paused: 'warn',
  degraded: 'warn',
  missed: 'warn',
  overlapped: 'warn',
  interrupted: 'warn',
  expired: 'warn',
  failed: 'bad',
  failing: 'bad',
  unhealthy: 'bad',
};

const words = (text: string) => text.replaceAll('_', ' ');

/** A state as a word with a colour; the colour has no meaning alone. */
export function Status({
  value,
  tone,
  children,
}: {
  value: string;
  tone?: Tone;
  children?: ReactNode;
}) {
  const { badge, dot } = tones[tone ?? toneOf[value] ?? 'neutral'];
  return (
    <span
      className={classes(
        'inline-flex h-5.5 items-center gap-1.5 rounded-full px-2 text-xs font-medium whitespace-nowrap',
        badge,
      )}
    >
      <span className={classes('size-1.5 rounded-full', dot)} aria-hidden />
      {children ?? words(value)}
    </span>
  );
}

/** Whether a schedule, a trigger, a webhook or a version of a skill is in use: one pair of words for all. */
export const Enabled = ({ is }: { is: boolean }) => <Status value={is ? 'enabled' : 'disabled'} />;

/** A small fact beside something: a version, a tag, a scope. */
export function Tag({ children, tone = 'neutral' }: { children: ReactNode; tone?: Tone }) {
  return (
    <span
      className={classes(
        'inline-flex h-5 items-center rounded px-1.5 font-mono text-xs whitespace-nowrap',
        tones[tone].badge,
      )}
    >
      {children}
    </span>
  );
}

/** In place of a value that there is not. */
export function Nothing() {
  return <span className="text-muted">–</span>;
}
