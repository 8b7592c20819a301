import type { ReactNode } from 'react';
import { ApiError } from '../api/client.ts';
import { Button } from '../ui/Button.tsx';
import { Problem } from '../ui/Loading.tsx';

/**
 * Fields, and beneath them what the platform refused that none of them shows, and what to press.
 * `fields` are the names under which they show an issue of their own.
 */
export function FormFrame({
  verb,
  busy,
  error,
  fields,
  onSubmit,
  onCancel,
  children,
}: {
  /** What the button says: `Create schedule`. */
  verb: string;
  busy: boolean;
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
        onSubmit();
      }}
      className="flex flex-col gap-4"
    >
      {children}
      {error != null && !isShownBy(error, fields) && <Problem error={inFull(error)} />}
      <div className="sticky bottom-0 -mx-5 -mb-5 flex justify-end gap-2 border-t bg-surface px-5 py-3">
        <Button onClick={onCancel}>Cancel</Button>
        <Button type="submit" look="primary" busy={busy}>
          {verb}
        </Button>
      </div>
    </form>
  );
}

const isOf = (issueField: string, field: string) =>
  issueField === field || issueField.startsWith(`${field}.`);

function isShownBy(error: unknown, fields: readonly string[]): boolean {
  if (!(error instanceof ApiError) || error.details.length === 0) return false;
  return error.details.every((issue) => fields.some((field) => isOf(issue.field, field)));
}

/** With the issues that belong to no field of the form. */
function inFull(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.details.length === 0) return error;
  const issues = error.details.map(({ field, issue }) => `${field} ${issue}`);
  return new Error(`${error.message}: ${issues.join('; ')}`);
}
