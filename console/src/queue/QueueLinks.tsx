import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { addressOf, pageOrganization } from '../api/organization.ts';
import { skillNameOf } from '../ui/Pickers.tsx';

/** Leads to a list of jobs of an organization, where all of them can be cancelled: of another one that is another page. */
export function JobsLink({
  organization,
  filters,
  className,
  children,
}: {
  organization: string | null;
  filters: { status: 'queued' | 'active'; skill?: string; agent_id?: string; api_key_id?: string };
  className: string;
  children: ReactNode;
}) {
  if (organization === null || organization === pageOrganization()) {
    return (
      <Link to="/jobs" search={filters} className={className}>
        {children}
      </Link>
    );
  }
  return (
    <a
      href={addressOf(organization, `/jobs?${new URLSearchParams(filters)}`)}
      className={className}
    >
      {children}
    </a>
  );
}

export function SkillPageLink({
  skill,
  className,
  children,
}: {
  skill: string;
  className: string;
  children: ReactNode;
}) {
  const { skill_category: category, skill_version: version, skill_name: name } = skillNameOf(skill);
  return (
    <Link
      to="/skills/$category/$version/$name"
      params={{ category, version, name }}
      className={className}
    >
      {children}
    </Link>
  );
}
