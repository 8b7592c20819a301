import { useQuery } from '@tanstack/react-query';
import { skillsQuery } from '../api/skills.ts';
import { useMissingScopes, useSession } from '../shell/session.ts';
import { listedSkillPath, type SkillName, skillPath } from '../ui/Pickers.tsx';

/**
 * The scopes that the session lacks to have a skill run; null until the skills are read. None where the skill
 * is not listed: the platform decides.
 */
export function useMissingToRun(name: SkillName): readonly string[] | null {
  const isAll = useSession().scopes.includes('*');
  const { data = [], isLoading } = useQuery({ ...skillsQuery(), enabled: !isAll });
  const skill = data.find((one) => listedSkillPath(one) === skillPath(name));
  const missing = useMissingScopes(skill?.required_scopes ?? []);
  return isLoading ? null : missing;
}
