import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import { skillsQuery } from '../api/skills.ts';
import { Field } from '../ui/Field.tsx';
import { PickMany } from '../ui/PickMany.tsx';

const everything = ['*'];

/** The scopes of a key: all skills, or selected categories. */
export function ScopesField({
  values,
  onValues,
  error,
}: {
  values: readonly string[];
  onValues: (values: readonly string[]) => void;
  error?: string | undefined;
}) {
  const group = useId();
  const { data: skills = [] } = useQuery(skillsQuery());
  const isAll = values.includes('*');
  const choices = [...new Set(skills.map(({ category }) => category))].sort().map((value) => {
    const names = skills
      .filter(({ category }) => category === value)
      .map(({ skill_name }) => skill_name);
    return { value, about: [...new Set(names)].join(', ') };
  });
  return (
    <fieldset className="flex min-w-0 flex-col gap-2">
      <legend className="mb-1.5 text-[13px] font-medium">Scopes</legend>
      <label className="flex items-baseline gap-2 text-[13px]">
        <input
          type="radio"
          name={group}
          className="accent-accent"
          checked={!isAll}
          onChange={() => onValues([])}
        />
        <span>
          Skills of some categories
          <span className="block text-xs text-muted">The key can run nothing else.</span>
        </span>
      </label>
      <label className="flex items-baseline gap-2 text-[13px]">
        <input
          type="radio"
          name={group}
          className="accent-accent"
          checked={isAll}
          onChange={() => onValues(everything)}
        />
        <span>
          All skills <code className="text-xs text-muted">*</code>
          <span className="block text-xs text-muted">Also skills of future categories.</span>
        </span>
      </label>
      {!isAll && (
        <Field label="Categories" error={error}>
          {(control) => (
            <PickMany
              {...control}
              values={values}
              onValues={onValues}
              choices={choices}
              placeholder={values.length === 0 ? 'Choose categories…' : 'Add…'}
            />
          )}
        </Field>
      )}
    </fieldset>
  );
}
