/** Organizations' credentials for providers of models; for the administrator alone. */
import { queryOptions } from '@tanstack/react-query';
import { get, put, remove, type Schema } from './client.ts';

/** As many as a page of the API may have: the providers of an organization are few. */
const most = 200;

export const credentialsQuery = (organizationId: string) =>
  queryOptions({
    queryKey: ['credentials', organizationId],
    queryFn: () =>
      get('/admin/organizations/{organizationId}/credentials', {
        path: { organizationId },
        query: { limit: most },
      }),
  });

/** Replaces the stored credentials of the provider. */
export const replaceCredential = (
  organizationId: string,
  provider: string,
  credential: Schema<'NewCredential'>,
) =>
  put('/admin/organizations/{organizationId}/credentials/{provider}', {
    path: { organizationId, provider },
    body: credential,
  });

export const deleteCredential = (organizationId: string, provider: string) =>
  remove('/admin/organizations/{organizationId}/credentials/{provider}', {
    path: { organizationId, provider },
  });
