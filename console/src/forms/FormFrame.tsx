import type { ReactNode } from 'react';
import { Button } from '../ui/Button.tsx';
import { FormProblem } from './FormProblem.tsx';
import { submitOnCtrlEnter } from './submit-keys.ts';

/**
 * The frame of a form in a dialog: fields, errors that belong to no field, and buttons that stay visible. Ctrl Enter
 * submits it from any field. `fields` are the names of fields that show their own errors.
 */
export function FormFrame({
  verb,
  busy,
  isReady = true,
  error,
  fields,
  onSubmit,
  onCancel,
  children,
}: {
  /** The label of the button: `Create schedule`. */
  verb: string;
  busy: boolean;
  /** Whether the fields have what they begin with, so that it can be sent. */
  isReady?: boolean;
  error: unknown;
  fields: readonly string[];
  onSubmit: () => void;
  onCancel: () => void;
  children: ReactNode;
}) {
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady && !busy) onSubmit();
      }}
      onKeyDown={submitOnCtrlEnter}
      className="flex flex-col gap-4"
    >
      {children}
      <FormProblem error={error} fields={fields} />
      <div className="sticky -bottom-5 -mx-5 -mb-5 flex justify-end gap-2 rounded-b-xl border-t bg-surface px-5 py-3.5">
        <Button onClick={onCancel}>Cancel</Button>
        <Button type="submit" look="primary" busy={busy} disabled={!isReady}>
          {verb}
        </Button>
      </div>
    </form>
  );
}
