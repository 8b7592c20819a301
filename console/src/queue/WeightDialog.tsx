import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { setWeight, weightQuery } from '../api/queue.ts';
import { FormDialog } from '../forms/FormDialog.tsx';
import { numberOf } from '../forms/numbers.ts';
import { issueOf, NumberField } from '../ui/Field.tsx';
import { Loaded } from '../ui/Loading.tsx';

/** How many slots an organization gets beside others that wait. */
export function WeightDialog({
  organizationId,
  onClose,
}: {
  organizationId: string;
  onClose: () => void;
}) {
  const query = useQuery(weightQuery(organizationId));
  const [typed, setTyped] = useState<string | null>(null);
  const text = typed ?? `${query.data?.weight ?? ''}`;
  return (
    <FormDialog
      title={`Weight of ${organizationId}`}
      description="Its share of the slots while other organizations wait for one. Runs are not interrupted."
      verb="Save the weight"
      isReady={query.data !== undefined}
      fields={['weight']}
      act={() => setWeight(organizationId, numberOf(text))}
      done="The weight is saved"
      changes={[['queue']]}
      onClose={onClose}
    >
      {(error) => (
        <Loaded query={query} lines={2}>
          {() => (
            <NumberField
              label="Weight"
              hint="1 to 100. With 2 it gets twice as many slots as an organization with 1, the default."
              error={issueOf(error, 'weight')}
              value={text}
              inputMode="numeric"
              onValue={setTyped}
            />
          )}
        </Loaded>
      )}
    </FormDialog>
  );
}
