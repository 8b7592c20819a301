/** The fields `memory`, `recall`, `profile` and `memory_formation` of an agent. */
import type { Schema } from '../api/client.ts';
import { issueOf, NumberField, SelectField, TextField } from '../ui/Field.tsx';
import { numberOf } from './numbers.ts';

type Texts = Readonly<Record<'memory' | 'recall' | 'profile' | 'quiet' | 'former', string>>;

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

export function profileOf(text: string): Schema<'Agent'>['profile'] {
  const max_bytes = numberOf(text);
  return max_bytes === null ? null : { max_bytes };
}

/** `kept` is the present setting, whose other fields stay. */
export function formationOf(
  quiet: string,
  former: string,
  kept: Schema<'Agent'>['memory_formation'] = null,
): Schema<'Agent'>['memory_formation'] {
  const quiet_seconds = numberOf(quiet);
  return quiet_seconds === null ? null : { ...kept, quiet_seconds, model: former.trim() || null };
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
      <NumberField
        label="Bytes of a user’s profile"
        optional
        hint="Up to how many its model keeps, 200 to 8,192; 4,096 is usual. If empty, it writes no profiles."
        error={issueOf(error, 'profile')}
        value={values.profile}
        onValue={(value) => onValue('profile', value)}
      />
      <NumberField
        label="Memories form after"
        optional
        hint="Seconds for which a conversation has been quiet, 0 to 86,400. If empty, none form."
        error={
          issueOf(error, 'memory_formation') ?? issueOf(error, 'memory_formation.quiet_seconds')
        }
        value={values.quiet}
        onValue={(value) => onValue('quiet', value)}
      />
      <TextField
        label="Model that forms memories"
        optional
        hint="provider/model. If empty, the agent’s."
        error={issueOf(error, 'memory_formation.model')}
        value={values.former}
        onValue={(value) => onValue('former', value)}
        className="font-mono text-[13px]"
      />
    </div>
  );
}
