/** The field `priority` of an agent, a schedule or a trigger. */
import type { Schema } from '../api/client.ts';
import { issueOf, SelectField } from '../ui/Field.tsx';

type Priority = Schema<'Agent'>['priority'];

/** The value as the platform takes it; null for none of its own. */
export const priorityOf = (text: string): Priority => (text === '' ? null : (text as Priority));

export const priorities = [{ value: 'high' }, { value: 'normal' }, { value: 'low' }] as const;

export function PriorityField({
  none,
  value,
  onValue,
  error,
}: {
  /** What counts where it has none. */
  none: string;
  value: string;
  onValue: (value: string) => void;
  error: unknown;
}) {
  return (
    <SelectField
      label="Priority"
      hint="Orders its jobs among those of the organization."
      error={issueOf(error, 'priority')}
      value={value}
      options={[{ value: '', label: none }, ...priorities]}
      onValue={onValue}
    />
  );
}
