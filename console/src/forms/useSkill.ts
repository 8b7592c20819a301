import { useQuery } from '@tanstack/react-query';
import { skillQuery } from '../api/skills.ts';
import { skillNameOf } from '../ui/Pickers.tsx';

/**
 * A skill named `category/version/name`, and an input to try it with; undefined while it is being read,
 * and where there is no active one of that name.
 */
export function useSkill(path: string) {
  const { skill_category, skill_version, skill_name } = skillNameOf(path);
  const { data, isLoading } = useQuery({
    ...skillQuery(skill_category, skill_version, skill_name),
    enabled: path !== '',
  });
  return { skill: data, isLoading, example: data?.examples?.[0]?.input };
}
