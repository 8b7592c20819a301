/** Links within text to the common resources. */
import { Link } from '@tanstack/react-router';
import { classes } from './classes.ts';
import { type SkillName, skillPath } from './Pickers.tsx';
import { aboveRowLink } from './Table.tsx';

/** How a link within text looks. */
export const textLink = 'text-accent-text hover:underline';

/** The page of a user: of what is kept, and how to take it out. */
export const UserLink = ({ id }: { id: string }) => (
  <Link to="/users/$userId" params={{ userId: id }} className={textLink}>
    {id}
  </Link>
);

/** A job by its id. */
export const JobLink = ({ id }: { id: string }) => (
  <Link to="/jobs/$jobId" params={{ jobId: id }} className={classes('font-mono text-xs', textLink)}>
    {id}
  </Link>
);

/** `isInRow`: in a row that leads elsewhere itself. */
export function AgentLink({ id, isInRow = false }: { id: string; isInRow?: boolean }) {
  const look = isInRow ? `${aboveRowLink} hover:underline` : textLink;
  // A webhook may be for all agents.
  if (id === '*') return 'All agents';
  return (
    <Link to="/agents/$agentId" params={{ agentId: id }} className={look}>
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
