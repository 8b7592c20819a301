/** Fields that select a resource of the platform. */
import { useQuery } from '@tanstack/react-query';
import { agentsQuery } from '../api/agents.ts';
import { skillsQuery } from '../api/skills.ts';
import { Field, issueOf, Select } from './Field.tsx';

export function AgentField({
  value,
  onValue,
  error,
  label = 'Agent',
}: {
  value: string;
  onValue: (id: string) => void;
  error?: string | undefined;
  label?: string;
}) {
  const { data } = useQuery(agentsQuery());
  const ids = data?.data.map(({ id }) => id) ?? [];
  return (
    <Field label={label} error={error}>
      {(control) => (
        <Select {...control} value={value} onChange={(event) => onValue(event.target.value)}>
          {(ids.includes(value) ? ids : [value, ...ids]).map((id) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
        </Select>
      )}
    </Field>
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
  const { data } = useQuery(skillsQuery());
  const paths = (data ?? []).map(listedSkillPath);
  const known = paths.includes(value) || value === '' ? paths : [value, ...paths];
  return (
    <Field label="Skill" error={error}>
      {(control) => (
        <Select {...control} value={value} onChange={(event) => onValue(event.target.value)}>
          {value === '' && <option value="">Choose a skill…</option>}
          {known.map((path) => (
            <option key={path} value={path}>
              {path}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}
