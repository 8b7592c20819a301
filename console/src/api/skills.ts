import { queryOptions } from '@tanstack/react-query';
import { api, body } from './client.ts';

export const skillsQuery = () =>
  queryOptions({
    queryKey: ['skills'],
    queryFn: () => body(api.GET('/api/skills')),
  });

export const skillQuery = (category: string, version: string, skillName: string) =>
  queryOptions({
    queryKey: ['skills', category, version, skillName],
    queryFn: () =>
      body(
        api.GET('/api/skills/{category}/{version}/{skillName}', {
          params: { path: { category, version, skillName } },
        }),
      ),
  });
