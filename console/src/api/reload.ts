import { queryOptions } from '@tanstack/react-query';
import { get, post } from './client.ts';
import { live } from './queries.ts';

/** How the last reload of the skills went, and what does not load; for the administrator alone. */
export const reloadQuery = queryOptions({
  queryKey: ['reload'],
  refetchInterval: live,
  async queryFn({ client, queryKey }) {
    const before = client.getQueryData<{ ended_at: string | null }>(queryKey);
    const now = await get('/admin/skills/reload');
    if (before !== undefined && before.ended_at !== now.ended_at) {
      void client.invalidateQueries({ queryKey: ['skills'] });
    }
    return now;
  },
});

export const reloadSkills = () => post('/admin/skills/reload');
