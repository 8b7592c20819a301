import { useQuery } from '@tanstack/react-query';
import { skillsQuery } from '../api/skills.ts';
import { useMissingScopes } from '../shell/session.ts';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { listedSkillPath } from '../ui/Pickers.tsx';
import { type Choice, PickManyField } from '../ui/PickMany.tsx';
import { Tags } from '../ui/Tags.tsx';

interface Patterns {
  readonly values: readonly string[];
  readonly onValues: (values: string[]) => void;
  readonly error?: string | undefined;
}

/** The skills whose call by its model needs a person's approval. */
export function AskBeforeField(patterns: Patterns) {
  const hint = 'When its model calls one of these, a person is asked first, on the page Approvals.';
  const missing = useMissingScopes(['approvals']);
  if (missing.length > 0) {
    return (
      <div className="flex flex-col gap-1.5">
        <p className="text-[13px] font-medium">Ask before</p>
        {patterns.values.length > 0 && <Tags values={patterns.values} />}
        <NeedsScope scopes={missing} act="Changing this" />
      </div>
    );
  }
  return <SkillPatternsField label="Ask before" hint={hint} {...patterns} />;
}

/** Patterns of skills: categories, single skills, or typed ones. */
export function SkillPatternsField({
  label = 'Skills',
  hint = 'Skills that its model may call as tools, if the job’s API key has their scopes. Few tools cost less and confuse less.',
  values,
  onValues,
  error,
}: Patterns & { label?: string; hint?: string }) {
  const { data: skills = [] } = useQuery(skillsQuery());
  const categories = [...new Set(skills.map(({ category }) => category))].sort();
  const choices: Choice[] = [
    ...categories.map((category) => {
      const names = skills
        .filter((skill) => skill.category === category)
        .map(({ skill_name }) => skill_name);
      return { value: `${category}/*`, about: `All of ${category}: ${names.join(', ')}` };
    }),
    ...skills.map((skill) => ({ value: listedSkillPath(skill), about: skill.display_name })),
    { value: '*', about: 'Every skill, also those to come' },
  ];
  return (
    <PickManyField
      label={label}
      optional
      error={error}
      hint={hint}
      values={values}
      onValues={onValues}
      choices={choices}
      placeholder="text/* or text/v1.0/summarize"
    />
  );
}
