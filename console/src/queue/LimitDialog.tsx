import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type Limited, limitQuery, setLimit } from '../api/queue.ts';
import { FormDialog } from '../forms/FormDialog.tsx';
import { numberOf } from '../forms/numbers.ts';
import { issueOf, NumberField } from '../ui/Field.tsx';
import { Loaded } from '../ui/Loading.tsx';

/** How many runs of an organization or an agent go on at a time. */
export function LimitDialog({ of, onClose }: { of: Limited; onClose: () => void }) {
  const query = useQuery(limitQuery(of));
  const [typed, setTyped] = useState<string | null>(null);
  const text = typed ?? `${query.data?.max_concurrency ?? ''}`;
  return (
    <FormDialog
      title={`Limit of ${of.id}`}
      description="How many of its runs go on at a time, 1 to 10,000. Further jobs wait for a place."
      verb="Save the limit"
      isReady={query.data !== undefined}
      fields={['max_concurrency']}
      act={() => setLimit(of, numberOf(text))}
      done="The limit is saved"
      changes={[['queue']]}
      onClose={onClose}
    >
      {(error) => (
        <Loaded query={query} lines={2}>
          {() => (
            <NumberField
              label="Runs at a time"
              placeholder="No limit"
              hint="If empty, no limit."
              error={issueOf(error, 'max_concurrency')}
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
