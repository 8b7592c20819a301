import { useQuery } from '@tanstack/react-query';
import { type Limited, limitQuery, setLimit } from '../api/queue.ts';
import { NumberDialog } from './NumberDialog.tsx';

/** How many runs of an organization or an agent go on at a time. */
export function LimitDialog({ of, onClose }: { of: Limited; onClose: () => void }) {
  const query = useQuery({ ...limitQuery(of), select: (queue) => queue.max_concurrency });
  return (
    <NumberDialog
      title={`Limit of ${of.id}`}
      description="How many of its runs go on at a time, 1 to 10,000. Further jobs wait for a place."
      noun="limit"
      query={query}
      field="max_concurrency"
      label="Runs at a time"
      placeholder="No limit"
      hint="If empty, no limit."
      save={(limit) => setLimit(of, limit)}
      onClose={onClose}
    />
  );
}
