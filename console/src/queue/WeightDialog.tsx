import { useQuery } from '@tanstack/react-query';
import { setWeight, weightQuery } from '../api/queue.ts';
import { NumberDialog } from './NumberDialog.tsx';

/** How many slots an organization gets beside others that wait. */
export function WeightDialog({
  organizationId,
  onClose,
}: {
  organizationId: string;
  onClose: () => void;
}) {
  const query = useQuery({ ...weightQuery(organizationId), select: ({ weight }) => weight });
  return (
    <NumberDialog
      title={`Weight of ${organizationId}`}
      description="Its share of the slots while other organizations wait for one. Runs are not interrupted."
      noun="weight"
      query={query}
      field="weight"
      label="Weight"
      hint="1 to 100. With 2 it gets twice as many slots as an organization with 1, the default."
      save={(weight) => setWeight(organizationId, weight)}
      onClose={onClose}
    />
  );
}
