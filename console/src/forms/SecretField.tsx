import type { ComponentProps } from 'react';
import { TextField } from '../ui/Field.tsx';

/** For a secret of one's own, which no browser is to keep or to spell. */
export function SecretField(props: ComponentProps<typeof TextField>) {
  return (
    <TextField className="font-mono" autoComplete="off" spellCheck={false} optional {...props} />
  );
}

/** For a secret of the platform's users, which is stored encrypted; an empty one keeps the stored one. */
export function StoredSecretField({
  isStored,
  ...props
}: Omit<ComponentProps<typeof TextField>, 'hint' | 'type'> & { readonly isStored: boolean }) {
  return (
    <SecretField
      type="password"
      optional={isStored}
      hint={isStored ? 'If empty, the stored one stays.' : 'Kept encrypted, and never shown again.'}
      {...props}
    />
  );
}
