import { useQuery } from '@tanstack/react-query';
import { skillQuery } from '../api/skills.ts';
import { skillNameOf } from '../ui/Pickers.tsx';

/** A skill named `category/version/name`, and an input to try it with; undefined while there is none. */
export function useSkill(path: string) {
  const { skill_category, skill_version, skill_name } = skillNameOf(path);
  const { data } = useQuery({
    ...skillQuery(skill_category, skill_version, skill_name),
    enabled: path !== '',
  });
  return { skill: data, example: data?.examples?.[0]?.input };
}
