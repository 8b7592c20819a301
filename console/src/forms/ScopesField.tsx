import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import { skillsQuery } from '../api/skills.ts';
import { PickManyField } from '../ui/PickMany.tsx';
import { RadioOption } from '../ui/RadioOption.tsx';

const everything = ['*'];

/** The scopes that are no categories of skills. */
const others = [
  { value: 'approvals', about: 'decide what runs ask a person' },
  { value: 'budgets', about: 'set and delete budgets' },
  { value: 'events', about: 'send events to runs that wait' },
  { value: 'memories', about: 'read and change the memories of users' },
  { value: 'user-data', about: 'take out and erase all that is kept of a user' },
  ...['registry', 'conversations', 'schedules', 'webhooks'].map((value) => ({
    ...{ value, about: 'where API_KEY_PERMISSIONS is strict' },
  })),
];

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
  const known = new Set(choices.map(({ value }) => value));
  const all = [...choices, ...others.filter(({ value }) => !known.has(value))];
  return (
    <fieldset className="flex min-w-0 flex-col gap-2">
      <legend className="mb-1.5 text-[13px] font-medium">Scopes</legend>
      <RadioOption
        group={group}
        label="Some scopes"
        hint="Categories of skills that it may run, and what else it may do."
        checked={!isAll}
        onChoose={() => onValues([])}
      />
      <RadioOption
        group={group}
        label={
          <>
            Everything <code className="text-xs text-muted">*</code>
          </>
        }
        hint="All skills, also of future categories, and all data."
        checked={isAll}
        onChoose={() => onValues(everything)}
      />
      {!isAll && (
        <PickManyField
          label="Scopes of the key"
          error={error}
          values={values}
          onValues={onValues}
          choices={all}
          placeholder="Choose scopes…"
        />
      )}
    </fieldset>
  );
}
