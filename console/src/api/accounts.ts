/** The organization's accounts at outside servers that require authorization. */
import { queryOptions } from '@tanstack/react-query';
import { get, post, remove, type Schema } from './client.ts';
import { live } from './queries.ts';

export type Account = Schema<'Account'>;

export const accountsQuery = () =>
  queryOptions({
    queryKey: ['accounts'],
    queryFn: () => get('/api/accounts'),
    refetchInterval: live,
  });

export const beginAuthorization = (server: string) =>
  post('/api/accounts/{server}/authorize', { path: { server } });

export const completeAuthorization = (
  server: string,
  answer: Schema<'AccountAuthorizationAnswer'>,
) => post('/api/accounts/{server}/complete', { path: { server }, body: answer });

export const disconnectAccount = (server: string) =>
  remove('/api/accounts/{server}', { path: { server } });
