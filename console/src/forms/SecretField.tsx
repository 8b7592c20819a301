import type { ComponentProps } from 'react';
import { TextField } from '../ui/Field.tsx';

/** For a secret of one's own, which no browser is to keep or to spell. */
export function SecretField(props: ComponentProps<typeof TextField>) {
  return (
    <TextField className="font-mono" autoComplete="off" spellCheck={false} optional {...props} />
  );
}
