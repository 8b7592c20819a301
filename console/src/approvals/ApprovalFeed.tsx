import { type KeyboardEvent, useEffect, useRef, useState } from 'react';
import type { Approval, Verb } from '../api/approvals.ts';
import { ApprovalCard } from './ApprovalCard.tsx';
import { type Deciding, DecisionDialog } from './DecisionDialog.tsx';

const verbs: Readonly<Record<string, Verb>> = { a: 'approve', r: 'reject' };
const steps: Readonly<Record<string, number>> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

const isWritten = (target: EventTarget) =>
  target instanceof HTMLElement && target.closest('input, textarea, select') !== null;

/**
 * A list of approvals with keyboard navigation (J, K) and decisions (A, R). After a decision the focus moves to the
 * approval that takes its place.
 */
export function ApprovalFeed({ approvals }: { approvals: readonly Approval[] }) {
  const feed = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState(0);
  const [deciding, setDeciding] = useState<Deciding | null>(null);
  const decided = useRef<{ id: string; index: number } | null>(null);
  const stop = Math.min(current, approvals.length - 1);

  function focus(index: number) {
    const articles = feed.current?.querySelectorAll('article');
    articles?.[Math.max(0, Math.min(index, articles.length - 1))]?.focus();
  }

  // The decided one leaves the list when that is read again, and its focus with it.
  useEffect(() => {
    const last = decided.current;
    if (last === null || approvals.some(({ approval_id }) => approval_id === last.id)) return;
    decided.current = null;
    focus(last.index);
  });

  function onKeyDown(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey || isWritten(event.target)) return;
    const step = steps[event.key];
    const verb = verbs[event.key.toLowerCase()];
    const approval = approvals[stop];
    if (step !== undefined) focus(stop + step);
    else if (verb !== undefined && approval?.status === 'pending') setDeciding({ approval, verb });
    else return;
    event.preventDefault();
  }

  return (
    <>
      <div ref={feed} role="feed" aria-label="Approvals" className="flex flex-col gap-4">
        {approvals.map((approval, i) => (
          <article
            key={approval.approval_id}
            aria-label={approval.title}
            aria-posinset={i + 1}
            aria-setsize={approvals.length}
            tabIndex={i === stop ? 0 : -1}
            onFocus={() => setCurrent(i)}
            onKeyDown={onKeyDown}
            className="min-w-0 rounded-lg border bg-surface shadow-low"
          >
            <ApprovalCard
              approval={approval}
              brief
              onDecide={(verb) => setDeciding({ approval, verb })}
            />
          </article>
        ))}
      </div>
      {deciding && (
        <DecisionDialog
          deciding={deciding}
          onClose={() => setDeciding(null)}
          onDecided={({ approval_id: id }) => {
            const index = approvals.findIndex(({ approval_id }) => approval_id === id);
            decided.current = { id, index };
          }}
        />
      )}
    </>
  );
}

/** The keys of the list, for those who use them. */
export function FeedKeys() {
  return (
    <p className="flex flex-wrap items-center gap-x-4 gap-y-1.5 text-xs text-muted max-sm:hidden">
      <Key names={['J', 'K']}>next, previous</Key>
      <Key names={['A']}>approve</Key>
      <Key names={['R']}>reject</Key>
      <Key names={['Ctrl Enter']}>decide, in the dialog</Key>
      <Key names={['Esc']}>close it undecided</Key>
    </p>
  );
}

function Key({ names, children }: { names: readonly string[]; children: string }) {
  return (
    <span className="inline-flex items-center gap-1.5">
      {names.map((name) => (
        <kbd key={name} className="rounded border bg-sunken px-1.5 font-sans">
          {name}
        </kbd>
      ))}
      {children}
    </span>
  );
}
