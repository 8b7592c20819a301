import { Link } from '@tanstack/react-router';
import { useIsAdministrator } from '../shell/session.ts';
import type { LucideIcon } from '../ui/Icon.tsx';
import { CalendarClock, KeyRound, Play, Send } from '../ui/icons.tsx';
import { Section } from '../ui/Page.tsx';

interface Step {
  readonly icon: LucideIcon;
  readonly title: string;
  readonly about: string;
  readonly to: string;
  readonly isAdmin?: boolean;
}

const steps: readonly Step[] = [
  {
    icon: Play,
    title: 'Run a skill',
    about: 'Count the words of a text, and watch the run as it happens.',
    to: '/skills/text/v1.0/word-count',
  },
  {
    icon: KeyRound,
    title: 'Create an API key',
    about: 'So that your own programs can run skills.',
    to: '/api-keys',
    isAdmin: true,
  },
  {
    icon: CalendarClock,
    title: 'Schedule it',
    about: 'Run a skill every night or every minute.',
    to: '/schedules',
  },
  {
    icon: Send,
    title: 'Connect a webhook',
    about: 'Notify another service when a run completes or fails.',
    to: '/webhooks',
  },
];

export function FirstSteps() {
  const isAdministrator = useIsAdministrator();
  const shown = steps.filter(({ isAdmin }) => !isAdmin || isAdministrator);
  return (
    <Section title="First steps" flush>
      <ol className="grid gap-px overflow-hidden rounded-b-lg bg-line sm:grid-cols-2">
        {shown.map(({ icon: Icon, title, about, to }, i) => (
          <li
            key={to}
            className="relative flex items-start gap-3.5 bg-surface px-4 py-4 transition-colors last:odd:col-span-full hover:bg-hover"
          >
            <span className="rounded-lg bg-accent-soft p-2 text-accent-text">
              <Icon className="size-4.5" aria-hidden />
            </span>
            <div className="min-w-0">
              <Link to={to} className="font-medium after:absolute after:inset-0">
                {i + 1}. {title}
              </Link>
              <p className="mt-0.5 text-[13px] leading-relaxed text-muted">{about}</p>
            </div>
          </li>
        ))}
      </ol>
    </Section>
  );
}
