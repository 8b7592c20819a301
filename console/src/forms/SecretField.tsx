import type { ReactNode } from 'react';
import { Field, Input } from '../ui/Field.tsx';

/** For a secret of one's own, which no browser is to keep or to spell. */
export function SecretField({
  label,
  hint,
  error,
  value,
  disabled = false,
  onValue,
}: {
  label: string;
  hint: ReactNode;
  error: string | undefined;
  value: string;
  disabled?: boolean;
  onValue: (text: string) => void;
}) {
  return (
    <Field label={label} optional hint={hint} error={error}>
      {(control) => (
        <Input
          {...control}
          className="font-mono"
          autoComplete="off"
          spellCheck={false}
          disabled={disabled}
          value={value}
          onChange={(event) => onValue(event.target.value)}
        />
      )}
    </Field>
  );
}
