/** What runs a skill version by itself: the newest rows of a table that name it, and how many there are. */
import type { Kysely, SelectQueryBuilder } from 'kysely';
import { countOf } from './count-of.ts';
import type { Handle } from './database.ts';
import type { Tables } from './tables.ts';

/** Makes the query from one that selects the columns to be listed. */
export function newestOfSkill<T extends 'scheduled_jobs' | 'agent_triggers', Row>(
  select: (kysely: Kysely<Tables>) => SelectQueryBuilder<Tables, T, Row>,
) {
  return async (
    { kysely }: Handle,
    organizationId: string,
    skill: { category: string; name: string; version: string },
    limit: number,
  ) => {
    const found = (select(kysely) as SelectQueryBuilder<Tables, 'scheduled_jobs', Row>)
      .where('organization_id', '=', organizationId)
      .where('skill_category', '=', skill.category)
      .where('skill_name', '=', skill.name)
      .where('skill_version', '=', skill.version);
    const [rows, total] = await Promise.all([
      found.orderBy('id', 'desc').limit(limit).execute(),
      countOf(found.clearSelect()),
    ]);
    return { rows, total };
  };
}
