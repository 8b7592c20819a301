/** Links within text, to the things that are named everywhere. */
import { Link } from '@tanstack/react-router';
import { type SkillName, skillPath } from './Pickers.tsx';

/** How a link within text looks. */
export const textLink = 'text-accent-text hover:underline';

export function AgentLink({ id }: { id: string }) {
  return (
    <Link to="/agents/$agentId" params={{ agentId: id }} className={textLink}>
      {id}
    </Link>
  );
}

/** Named by its whole path. */
export function SkillLink({ skill }: { skill: SkillName }) {
  const { skill_category: category, skill_version: version, skill_name: name } = skill;
  return (
    <Link
      to="/skills/$category/$version/$name"
      params={{ category, version, name }}
      className={textLink}
    >
      {skillPath(skill)}
    </Link>
  );
}
