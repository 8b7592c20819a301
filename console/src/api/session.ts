/** Who is signed in. The secret goes to the platform once and is kept nowhere in the page. */
import { queryOptions } from '@tanstack/react-query';
import { ApiError, ask, consoleHeader } from './client.ts';

export interface Session {
  readonly kind: 'administrator' | 'api_key';
  readonly organization_id: string;
  readonly client_name: string;
  readonly scopes: readonly string[];
  /** Those that may be entered. */
  readonly organizations: readonly string[];
  readonly expires_at: string;
}

async function request(method: string, content?: object): Promise<Session | null> {
  const response = await ask('/console/session', {
    method,
    headers: { ...consoleHeader, ...(content && { 'content-type': 'application/json' }) },
    ...(content && { body: JSON.stringify(content) }),
  });
  const answer: unknown = response.status === 204 ? null : await response.json();
  if (!response.ok) throw new ApiError(response.status, answer);
  return answer as Session | null;
}

/** Null when nobody is signed in. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  staleTime: Number.POSITIVE_INFINITY,
  // Whoever is still there has the session renewed.
  refetchInterval: 30 * 60_000,
  retry: false,
  queryFn: () => request('GET'),
});

export const signIn = (secret: string) => request('POST', { secret });
export const signOut = () => request('DELETE');
export const enterOrganization = (organization_id: string) => request('PUT', { organization_id });
