/** For the administrator alone. */
import { queryOptions } from '@tanstack/react-query';
import { get, post, remove, type Schema } from './client.ts';

/** All keys there are or were, the newest first. */
export const apiKeysQuery = () =>
  queryOptions({
    queryKey: ['api-keys'],
    queryFn: () => get('/admin/api-keys'),
  });

export const createApiKey = (
  key: Omit<Schema<'NewApiKey'>, 'rate_limit'> & { rate_limit?: number },
) => post('/admin/api-keys', { body: key as Schema<'NewApiKey'> });

/** Revokes a key; with `cancelsJobs` its jobs that run are cancelled, too. */
export const revokeApiKey = (id: string, cancelsJobs: boolean) =>
  remove('/admin/api-keys/{id}', {
    path: { id },
    query: { cancel_jobs: cancelsJobs ? 'true' : 'false' },
  });

/** What a key is now; `now` is in milliseconds. */
export function stateOf({ enabled, expires_at }: Schema<'ApiKey'>, now: number) {
  if (!enabled) return 'revoked';
  return expires_at !== null && Date.parse(expires_at) <= now ? 'expired' : 'enabled';
}
