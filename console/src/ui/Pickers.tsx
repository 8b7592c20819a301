/** Fields that select a resource of the platform. */
import { useQuery } from '@tanstack/react-query';
import { agentsQuery } from '../api/agents.ts';
import { skillsQuery } from '../api/skills.ts';
import { useSession } from '../shell/session.ts';
import { issueOf, SelectField } from './Field.tsx';
import { FilterSelect } from './Filters.tsx';

export function AgentField({
  value,
  onValue,
  error,
  label = 'Agent',
  others = [],
}: {
  value: string;
  onValue: (id: string) => void;
  error?: string | undefined;
  label?: string;
  /** Choices before the agents. */
  others?: readonly { readonly value: string; readonly label: string }[];
}) {
  const { data } = useQuery(agentsQuery());
  const ids = data?.data.map(({ id }) => id) ?? [];
  const isKnown = ids.includes(value) || others.some((one) => one.value === value);
  return (
    <SelectField
      label={label}
      error={error}
      value={value}
      options={[...others, ...(isKnown ? ids : [value, ...ids]).map((id) => ({ value: id }))]}
      onValue={onValue}
    />
  );
}

/** Narrows a list down to those of one agent. */
export function AgentFilter({
  value,
  onValue,
}: {
  value: string | undefined;
  onValue: (id: string | undefined) => void;
}) {
  const agents = useQuery(agentsQuery()).data?.data ?? [];
  return (
    <FilterSelect
      label="Agent"
      value={value}
      onValue={onValue}
      options={agents.map(({ id }) => ({ value: id }))}
    />
  );
}

/** A skill's category, name and version. */
export interface SkillName {
  readonly skill_category: string;
  readonly skill_name: string;
  readonly skill_version: string;
}

export const skillPath = ({ skill_category, skill_name, skill_version }: SkillName): string =>
  `${skill_category}/${skill_version}/${skill_name}`;

/** The same of a skill as the platform lists it. */
export const listedSkillPath = (skill: {
  readonly category: string;
  readonly version: string;
  readonly skill_name: string;
}): string => `${skill.category}/${skill.version}/${skill.skill_name}`;

/** All that the platform found wrong with the skill that was named. */
export function skillIssueOf(error: unknown): string | undefined {
  const fields = ['skill_category', 'skill_name', 'skill_version'];
  const issues = fields.flatMap((field) => issueOf(error, field) ?? []);
  return issues.length === 0 ? undefined : issues.join('; ');
}

export function skillNameOf(path: string): SkillName {
  const [skill_category = '', skill_version = '', skill_name = ''] = path.split('/');
  return { skill_category, skill_version, skill_name };
}

/** Its value is `category/version/name`. */
export function SkillField({
  value,
  onValue,
  error,
}: {
  value: string;
  onValue: (path: string) => void;
  error?: string | undefined;
}) {
  const { data = [] } = useQuery(skillsQuery());
  const { scopes } = useSession();
  const isMissing = (scope: string) => !scopes.includes('*') && !scopes.includes(scope);
  const listed = data.map((skill) => {
    const path = listedSkillPath(skill);
    const missing = skill.required_scopes.filter(isMissing).join(', ');
    return missing === ''
      ? { value: path, label: path }
      : { value: path, label: `${path} (needs the scope ${missing})`, disabled: true };
  });
  const isKnown = value === '' || listed.some((one) => one.value === value);
  const options = isKnown ? listed : [{ value, label: value }, ...listed];
  return (
    <SelectField
      label="Skill"
      error={error}
      value={value}
      options={value === '' ? [{ value, label: 'Choose a skill…' }, ...options] : options}
      onValue={onValue}
    />
  );
}
