import { queryOptions } from '@tanstack/react-query';
import { api, body, get, post, put, remove, type Schema } from './client.ts';

export const skillsQuery = () =>
  queryOptions({
    queryKey: ['skills'],
    queryFn: () => get('/api/skills'),
  });

/** Every version that was ever registered, deprecated ones too: for the administrator. */
export const allSkillsQuery = () =>
  queryOptions({
    queryKey: ['skills', 'all'],
    queryFn: () => get('/admin/skills'),
  });

export const skillQuery = (category: string, version: string, skillName: string) =>
  queryOptions({
    queryKey: ['skills', category, version, skillName],
    queryFn: () =>
      get('/api/skills/{category}/{version}/{skillName}', {
        path: { category, version, skillName },
        query: { include: 'examples' },
      }),
  });

/** A version that may be inactive: for the administrator. */
export const anySkillQuery = (category: string, version: string, skillName: string) =>
  queryOptions({
    queryKey: ['skills', category, version, skillName, 'any'],
    queryFn: () =>
      get('/admin/skills/{category}/{version}/{skillName}', {
        path: { category, version, skillName },
        query: { include: 'examples' },
      }),
  });

export const skillUsagesQuery = (category: string, version: string, skillName: string) =>
  queryOptions({
    queryKey: ['skills', category, version, skillName, 'usages'],
    queryFn: () =>
      get('/api/skills/{category}/{version}/{skillName}/usages', {
        path: { category, version, skillName },
      }),
  });

/** The settings that a version declares, with where the organization's values come from. */
export const skillConfigQuery = (id: string) =>
  queryOptions({
    queryKey: ['skills', id, 'config'],
    queryFn: () => get('/api/skills/{id}/config', { path: { id } }),
  });

/** Sets values, and deletes those that are null. */
export const changeSkillConfig = (id: string, values: Record<string, string | null>) =>
  put('/api/skills/{id}/config', { path: { id }, body: values });

/** Deletes all values of the organization. */
export const clearSkillConfig = (id: string) => remove('/api/skills/{id}/config', { path: { id } });

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
export type Priority = Schema<'Job'>['priority'];

export const runSkill = (
  path: { category: string; version: string; skillName: string },
  { agentId, priority }: { readonly agentId: string; readonly priority: Priority | '' },
  input: unknown,
) =>
  post('/api/{category}/{version}/{skillName}', {
    path,
    header: { 'x-agent-id': agentId, ...(priority !== '' && { 'x-priority': priority }) },
    body: input,
  });
