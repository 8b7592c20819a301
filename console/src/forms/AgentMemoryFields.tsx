/** The fields `memory` and `recall` of an agent. */
import type { Schema } from '../api/client.ts';
import { issueOf, NumberField, SelectField } from '../ui/Field.tsx';
import { numberOf } from './numbers.ts';

type Texts = Readonly<Record<'memory' | 'recall', string>>;

const memoryUses = [
  { value: 'user', label: 'model writes the user’s' },
  { value: 'read_write', label: 'reads and writes all' },
  { value: 'read', label: 'reads only' },
  { value: 'off' },
];

/** The values of these fields as the platform takes them. */
export const memoryOf = (text: string) => text as Schema<'Agent'>['memory'];
export function recallOf(text: string): Schema<'Agent'>['recall'] {
  const limit = numberOf(text);
  return limit === null ? null : { limit };
}

export function AgentMemoryFields({
  values,
  onValue,
  error,
}: {
  values: Texts;
  onValue: (name: keyof Texts, value: string) => void;
  error: unknown;
}) {
  return (
    <div className="grid gap-5 sm:grid-cols-2">
      <SelectField
        label="Memory"
        hint="With “model writes the user’s” its skills still write all memories."
        error={issueOf(error, 'memory')}
        value={values.memory}
        options={memoryUses}
        onValue={(value) => onValue('memory', value)}
      />
      <NumberField
        label="Memories in the prompt"
        optional
        hint="The best for the task, 1 to 20. If empty, none."
        error={issueOf(error, 'recall')}
        value={values.recall}
        onValue={(value) => onValue('recall', value)}
      />
    </div>
  );
}
