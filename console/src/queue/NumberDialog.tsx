import type { UseQueryResult } from '@tanstack/react-query';
import { useState } from 'react';
import { FormDialog } from '../forms/FormDialog.tsx';
import { numberOf } from '../forms/numbers.ts';
import { issueOf, NumberField } from '../ui/Field.tsx';
import { Loaded } from '../ui/Loading.tsx';

/** Changes one number of the queues: only after its value was read, since an empty field has a meaning. */
export function NumberDialog({
  title,
  description,
  noun,
  query,
  field,
  label,
  placeholder,
  hint,
  save,
  onClose,
}: {
  title: string;
  description: string;
  /** What is saved, such as `limit`. */
  noun: string;
  query: UseQueryResult<number | null>;
  /** The name of the field in the request. */
  field: string;
  label: string;
  placeholder?: string;
  hint: string;
  save: (value: number | null) => Promise<unknown>;
  onClose: () => void;
}) {
  const [typed, setTyped] = useState<string | null>(null);
  const text = typed ?? `${query.data ?? ''}`;
  return (
    <FormDialog
      title={title}
      description={description}
      verb={`Save the ${noun}`}
      isReady={query.data !== undefined}
      fields={[field]}
      act={() => save(numberOf(text))}
      done={`The ${noun} is saved`}
      changes={[['queue']]}
      onClose={onClose}
    >
      {(error) => (
        <Loaded query={query} lines={2}>
          {() => (
            <NumberField
              label={label}
              {...(placeholder === undefined ? {} : { placeholder })}
              hint={hint}
              error={issueOf(error, field)}
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
