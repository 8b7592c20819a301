import { IconButton } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import type { LucideIcon } from '../ui/Icon.tsx';
import {
  Brain,
  Check,
  ChevronRight,
  CircleCheck,
  CircleDot,
  CircleX,
  Clock,
  CornerDownRight,
  FoldVertical,
  Moon,
  Play,
  Radio,
  Shield,
  SquareMinus,
  SquarePlus,
  UserCheck,
  Wrench,
} from '../ui/icons.tsx';
import type { Span } from './spans.ts';

const icons: Record<Span['kind'], LucideIcon> = {
  accepted: CircleDot,
  queued: Clock,
  attempt: Play,
  model: Brain,
  summary: FoldVertical,
  generate: Brain,
  tool: Wrench,
  guard: Shield,
  skill: Wrench,
  step: Check,
  sleep: Moon,
  provider: Moon,
  event: Radio,
  approval: UserCheck,
  run: CornerDownRight,
  settled: CircleCheck,
};
/** Indents by depth of a step; deeper steps use the last one. */
const indents = [
  'pl-4 max-sm:pl-2',
  'pl-8 max-sm:pl-4',
  'pl-12 max-sm:pl-6',
  'pl-16 max-sm:pl-8',
  'pl-20 max-sm:pl-10',
];

/** The name of a row of a timeline, which opens it, and folds the steps below it. */
export function SpanName({
  span,
  isOpen,
  onToggle,
  isFolded,
  onFold,
}: {
  span: Span;
  isOpen: boolean;
  onToggle: () => void;
  /** Whether the steps below it are hidden. */
  isFolded: boolean;
  onFold: () => void;
}) {
  const Icon = span.kind === 'settled' && span.tone !== 'good' ? CircleX : icons[span.kind];
  return (
    <span
      className={classes(
        'flex min-w-0 items-center',
        span.depth !== undefined && indents[Math.min(span.depth, indents.length - 1)],
      )}
    >
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={onToggle}
        className="flex h-8 w-full min-w-0 items-center gap-2 text-left outline-none after:absolute after:inset-0 focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-accent"
      >
        <ChevronRight
          aria-hidden
          className={classes(
            'size-3.5 shrink-0 text-muted transition-transform max-sm:hidden',
            isOpen && 'rotate-90',
          )}
        />
        <Icon
          aria-hidden
          className={classes('size-3.5 shrink-0', span.error ? 'text-bad' : 'text-muted')}
        />
        <span className={classes('truncate', span.kind === 'attempt' && 'font-medium')}>
          {span.label}
        </span>
      </button>
      {span.isParent && (
        <IconButton
          label={
            isFolded ? `Show the steps below ${span.label}` : `Hide the steps below ${span.label}`
          }
          icon={isFolded ? <SquarePlus /> : <SquareMinus />}
          aria-expanded={!isFolded}
          onClick={onFold}
          className="relative z-10 size-6!"
        />
      )}
    </span>
  );
}
