import type { QueryKey } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Dialog } from '../ui/Dialog.tsx';
import { useAct } from '../ui/useAct.ts';
import { FormFrame } from './FormFrame.tsx';

/** A form in a dialog, which closes once the platform has accepted it. What it sends is forgotten then. */
export function FormDialog<Result>({
  title,
  description,
  wide = false,
  verb,
  isReady = true,
  fields,
  act,
  done,
  changes,
  onClose,
  children,
}: {
  title: string;
  description?: ReactNode;
  wide?: boolean;
  verb: string;
  /** Whether the fields have what they begin with. */
  isReady?: boolean;
  /** The fields that show their issues themselves. */
  fields: readonly string[];
  act: () => Promise<Result>;
  done: string | ((result: Result) => string | undefined);
  changes: readonly QueryKey[];
  onClose: () => void;
  /** The fields; gets what was refused. */
  children: (error: unknown) => ReactNode;
}) {
  const save = useAct({ act, done, changes, quiet: true, isSecret: true });
  return (
    <Dialog open isForm wide={wide} onClose={onClose} title={title} description={description}>
      <FormFrame
        error={save.error}
        fields={fields}
        verb={verb}
        busy={save.isPending}
        isReady={isReady}
        onSubmit={() => save.mutate(undefined, { onSuccess: onClose })}
        onCancel={onClose}
      >
        {children(save.error)}
      </FormFrame>
    </Dialog>
  );
}
