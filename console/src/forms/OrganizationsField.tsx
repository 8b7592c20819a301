import { useId } from 'react';
import { useSession } from '../shell/session.ts';
import { PickManyField } from '../ui/PickMany.tsx';
import { RadioOption } from '../ui/RadioOption.tsx';

/** How the API names all organizations. */
const everyone = ['*'];

/** The organizations that the skills of a service outside belong to. */
export function OrganizationsField({
  values,
  onValues,
  error,
}: {
  values: readonly string[];
  onValues: (values: readonly string[]) => void;
  error?: string | undefined;
}) {
  const group = useId();
  const { organizations, organization_id: own } = useSession();
  const isAll = values.includes('*');
  return (
    <fieldset className="flex min-w-0 flex-col gap-2" aria-describedby={`${group}-why`}>
      <legend className="mb-1.5 text-[13px] font-medium">Organizations</legend>
      <p id={`${group}-why`} className="text-xs text-muted">
        Each of them acts with the credentials that are set here. A path or an argument may hold
        one, too.
      </p>
      <RadioOption
        group={group}
        label="Some organizations"
        hint="For all others the skills do not exist."
        checked={!isAll}
        onChoose={() => onValues([own])}
      />
      <RadioOption
        group={group}
        label="All organizations"
        hint="Also future ones."
        checked={isAll}
        onChoose={() => onValues(everyone)}
      />
      {!isAll && (
        <PickManyField
          label="Organizations of its skills"
          error={error}
          values={values}
          onValues={onValues}
          choices={organizations.map((value) => ({ value }))}
          placeholder="Choose organizations…"
        />
      )}
    </fieldset>
  );
}
