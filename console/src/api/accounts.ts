/** The organization's accounts at outside servers that require authorization. */
import { queryOptions } from '@tanstack/react-query';
import { api, body, type Schema } from './client.ts';
import { live } from './queries.ts';

export type Account = Schema<'Account'>;

export const accountsQuery = () =>
  queryOptions({
    queryKey: ['accounts'],
    queryFn: () => body(api.GET('/api/accounts')),
    refetchInterval: live,
  });

export const beginAuthorization = (server: string) =>
  body(api.POST('/api/accounts/{server}/authorize', { params: { path: { server } } }));

export const completeAuthorization = (
  server: string,
  answer: Schema<'AccountAuthorizationAnswer'>,
) =>
  body(api.POST('/api/accounts/{server}/complete', { params: { path: { server } }, body: answer }));

export const disconnectAccount = (server: string) =>
  body(api.DELETE('/api/accounts/{server}', { params: { path: { server } } }));
