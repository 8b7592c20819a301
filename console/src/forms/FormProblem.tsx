import { ApiError } from '../api/client.ts';
import { Problem } from '../ui/Loading.tsx';

/** The error of a form; empty if all faults are shown at its `fields`. */
export function FormProblem({ error, fields }: { error: unknown; fields: readonly string[] }) {
  if (error == null || isShownBy(error, fields)) return null;
  return <Problem error={inFull(error)} />;
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
