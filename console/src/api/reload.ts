import { queryOptions } from '@tanstack/react-query';
import { api, body } from './client.ts';
import { live } from './queries.ts';

/** How the last reload of the skills went, and what does not load; for the administrator alone. */
export const reloadQuery = queryOptions({
  queryKey: ['reload'],
  refetchInterval: live,
  async queryFn({ client, queryKey }) {
    const before = client.getQueryData<{ ended_at: string | null }>(queryKey);
    const now = await body(api.GET('/admin/skills/reload'));
    if (before !== undefined && before.ended_at !== now.ended_at) {
      void client.invalidateQueries({ queryKey: ['skills'] });
    }
    return now;
  },
});

export const reloadSkills = () => body(api.POST('/admin/skills/reload'));
