/** Organizations' credentials for providers of models; for the administrator alone. */
import { queryOptions } from '@tanstack/react-query';
import { api, body, type Schema } from './client.ts';

/** As many as a page of the API may have: the providers of an organization are few. */
const most = 200;

export const credentialsQuery = (organizationId: string) =>
  queryOptions({
    queryKey: ['credentials', organizationId],
    queryFn: () =>
      body(
        api.GET('/admin/organizations/{organizationId}/credentials', {
          params: { path: { organizationId }, query: { limit: most } },
        }),
      ),
  });

/** Replaces the stored credentials of the provider. */
export const replaceCredential = (
  organizationId: string,
  provider: string,
  credential: Schema<'NewCredential'>,
) =>
  body(
    api.PUT('/admin/organizations/{organizationId}/credentials/{provider}', {
      params: { path: { organizationId, provider } },
      body: credential,
    }),
  );

export const deleteCredential = (organizationId: string, provider: string) =>
  body(
    api.DELETE('/admin/organizations/{organizationId}/credentials/{provider}', {
      params: { path: { organizationId, provider } },
    }),
  );
