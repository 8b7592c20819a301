import { useQuery } from '@tanstack/react-query';
import { pendingCountQuery } from '../api/approvals.ts';
import { countText } from '../ui/Time.tsx';

/** The number of pending approvals, for the menu; nothing for zero. */
export function PendingCount() {
  const { data: count = 0 } = useQuery(pendingCountQuery());
  if (count === 0) return null;
  return (
    <span className="ml-auto rounded-full bg-accent px-1.5 text-xs font-medium text-on-accent tabular-nums">
      {countText(count)}
      <span className="sr-only"> pending</span>
    </span>
  );
}
