import type { FormEvent, ReactNode } from 'react';
import { Button } from '../ui/Button.tsx';
import { FormProblem } from './FormProblem.tsx';

/** Fields with what sends them, in a dialog. What is wrong stands beside the `fields` it is about. */
export function Form({
  error,
  fields,
  verb,
  busy,
  submit,
  onCancel,
  children,
}: {
  error: unknown;
  fields: readonly string[];
  /** What the button says: `Create agent`. */
  verb: string;
  busy: boolean;
  submit: () => void;
  onCancel: () => void;
  children: ReactNode;
}) {
  function onSubmit(event: FormEvent) {
    event.preventDefault();
    submit();
  }
  return (
    <form onSubmit={onSubmit} className="flex flex-col gap-4" noValidate>
      {children}
      <FormProblem error={error} fields={fields} />
      <div className="sticky -bottom-5 -mx-5 -mb-5 flex rounded-b-xl justify-end gap-2 border-t bg-surface px-5 py-3">
        <Button onClick={onCancel}>Cancel</Button>
        <Button type="submit" look="primary" busy={busy}>
          {verb}
        </Button>
      </div>
    </form>
  );
}
