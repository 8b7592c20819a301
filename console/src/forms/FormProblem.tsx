import { ApiError } from '../api/client.ts';
import { Problem } from '../ui/Loading.tsx';

/** Why a form was refused; nothing where all that is wrong stands beside `fields`. */
export function FormProblem({ error, fields }: { error: unknown; fields: readonly string[] }) {
  if (error === null) return null;
  const details = error instanceof ApiError ? error.details : [];
  const elsewhere = details.filter(({ field }) => !fields.includes(field.split('.')[0] ?? ''));
  if (details.length > 0 && elsewhere.length === 0) return null;
  return (
    <div className="flex flex-col gap-2">
      <Problem error={error} />
      {elsewhere.length > 0 && (
        <ul className="list-disc pl-5 text-xs text-bad-text">
          {elsewhere.map(({ field, issue }) => (
            <li key={`${field} ${issue}`}>
              <code>{field}</code> {issue}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
