import { useQuery } from '@tanstack/react-query';
import { skillQuery } from '../api/skills.ts';
import { skillNameOf } from '../ui/Pickers.tsx';

/** An input to try a skill with, named `category/version/name`; undefined while there is none. */
export function useExample(skill: string): unknown {
  const { skill_category, skill_version, skill_name } = skillNameOf(skill);
  const { data } = useQuery({
    ...skillQuery(skill_category, skill_version, skill_name),
    enabled: skill !== '',
  });
  return data?.examples?.[0]?.input;
}
