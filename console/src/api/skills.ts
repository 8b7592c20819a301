import { queryOptions } from '@tanstack/react-query';
import { api, body } from './client.ts';

export const skillsQuery = () =>
  queryOptions({
    queryKey: ['skills'],
    queryFn: () => body(api.GET('/api/skills')),
  });

/** Every version that was ever registered, deprecated ones too: for the administrator. */
export const allSkillsQuery = () =>
  queryOptions({
    queryKey: ['skills', 'all'],
    queryFn: () => body(api.GET('/admin/skills')),
  });

export const skillQuery = (category: string, version: string, skillName: string) =>
  queryOptions({
    queryKey: ['skills', category, version, skillName],
    queryFn: () =>
      body(
        api.GET('/api/skills/{category}/{version}/{skillName}', {
          params: { path: { category, version, skillName }, query: { include: 'examples' } },
        }),
      ),
  });

/** A version that may be inactive: for the administrator. */
export const anySkillQuery = (category: string, version: string, skillName: string) =>
  queryOptions({
    queryKey: ['skills', category, version, skillName, 'any'],
    queryFn: () =>
      body(
        api.GET('/admin/skills/{category}/{version}/{skillName}', {
          params: { path: { category, version, skillName }, query: { include: 'examples' } },
        }),
      ),
  });

export const skillUsagesQuery = (category: string, version: string, skillName: string) =>
  queryOptions({
    queryKey: ['skills', category, version, skillName, 'usages'],
    queryFn: () =>
      body(
        api.GET('/api/skills/{category}/{version}/{skillName}/usages', {
          params: { path: { category, version, skillName } },
        }),
      ),
  });

/** The settings that a version declares, with where the organization's values come from. */
export const skillConfigQuery = (id: string) =>
  queryOptions({
    queryKey: ['skills', id, 'config'],
    queryFn: () => body(api.GET('/api/skills/{id}/config', { params: { path: { id } } })),
  });

/** Sets values, and deletes those that are null. */
export const changeSkillConfig = (id: string, values: Record<string, string | null>) =>
  body(api.PUT('/api/skills/{id}/config', { params: { path: { id } }, body: values }));

/** Deletes all values of the organization. */
export const clearSkillConfig = (id: string) =>
  body(api.DELETE('/api/skills/{id}/config', { params: { path: { id } } }));

/** Disables or enables a version. */
export const setSkillActive = (
  path: { category: string; version: string; skillName: string },
  isActive: boolean,
) =>
  body(
    isActive
      ? api.POST('/admin/skills/{category}/{version}/{skillName}/activate', { params: { path } })
      : api.POST('/admin/skills/{category}/{version}/{skillName}/deprecate', { params: { path } }),
  );

/** Accepts a run and answers with its job at once. */
export const runSkill = (
  path: { category: string; version: string; skillName: string },
  agentId: string,
  input: unknown,
) =>
  body(
    api.POST('/api/{category}/{version}/{skillName}', {
      params: { path, header: { 'x-agent-id': agentId } },
      body: input,
    }),
  );
