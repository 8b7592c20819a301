import type { JsonSchema } from '../skills/schema.ts';
import { Choice } from '../ui/Choice.tsx';
import { TextAreaField } from '../ui/Field.tsx';
import { lazyPart } from '../ui/lazily.tsx';
import type { Issues } from './SchemaForm.tsx';
import type { Input } from './useInput.ts';

const SchemaForm = lazyPart(async () => (await import('./SchemaForm.tsx')).SchemaForm);

const ways = [
  { value: 'form', label: 'Form' },
  { value: 'json', label: 'JSON' },
] as const;

/** Whether an input is filled into a form or written as JSON. */
export function InputWay({ input }: { input: Input }) {
  return <Choice label="Write it as" value={input.way} choices={ways} onValue={input.turnTo} />;
}

/** The input of a skill, to be filled in: a form made of its schema, or JSON. */
export function InputFields({
  input,
  schema,
  issues,
}: {
  input: Input;
  schema: JsonSchema;
  /** What the platform refused. */
  issues: Issues;
}) {
  if (input.way === 'form') {
    return (
      <div>
        <SchemaForm
          key={input.filled}
          schema={schema}
          value={input.value}
          onValue={input.change}
          issues={issues}
        />
      </div>
    );
  }
  return (
    <TextAreaField
      label="Input as JSON"
      error={input.fault ?? textOf(issues)}
      rows={12}
      spellCheck={false}
      className="field-sizing-content max-h-[32rem] min-h-56 resize-y font-mono text-xs"
      value={input.text}
      onValue={input.write}
    />
  );
}

/** The error message itself names a single fault. */
const textOf = (issues: Issues): string | undefined =>
  issues.length < 2 ? undefined : issues.map(({ field, issue }) => `${field} ${issue}`).join('; ');
