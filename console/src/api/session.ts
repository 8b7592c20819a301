/** The session. The secret is sent to the platform once and is not kept in the page. */
import { queryOptions } from '@tanstack/react-query';
import { ApiError, ask, consoleHeaders } from './client.ts';
import { arrive } from './organization.ts';

export interface Session {
  readonly kind: 'administrator' | 'api_key';
  /** Null for the administrator. */
  readonly api_key_id: string | null;
  readonly client_name: string;
  readonly scopes: readonly string[];
  /** With `strict`, memories, schedules and other areas need the scope of their name. */
  readonly permissions: 'open' | 'strict';
  /** The organizations whose pages may be opened. */
  readonly organizations: readonly string[];
  readonly expires_at: string;
  /** Whether the session ended while a page was open; the page stays, so that the user can sign in again. */
  readonly isOver?: boolean;
}

async function request(method: string, content?: object): Promise<Session | null> {
  const response = await ask('/console/session', {
    method,
    headers: { ...consoleHeaders(), ...(content && { 'content-type': 'application/json' }) },
    ...(content && { body: JSON.stringify(content) }),
  });
  const answer: unknown = response.status === 204 ? null : await response.json();
  if (!response.ok) throw new ApiError(response.status, answer);
  const session = answer as Session | null;
  if (session !== null) arrive(session.organizations);
  return session;
}

/** Null without a session. */
export const readSession = () => request('GET');
export const signIn = (secret: string) => request('POST', { secret });
export const signOut = () => request('DELETE');

/** Null when the page was opened by a browser that is not signed in. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  staleTime: Number.POSITIVE_INFINITY,
  // A page that is open for hours has its session renewed.
  refetchInterval: 30 * 60_000,
  // Another tab may have signed out, or in with another secret.
  refetchOnWindowFocus: 'always',
  retry: false,
  async queryFn({ client, queryKey }): Promise<Session | null> {
    const session = await readSession();
    const before = client.getQueryData<Session | null>(queryKey);
    return session === null && before ? { ...before, isOver: true } : session;
  },
});
