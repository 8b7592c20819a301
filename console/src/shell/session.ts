import { createContext, useCallback, useContext } from 'react';
import type { Session } from '../api/session.ts';

/** A session as a page has it. */
interface PageSession extends Session {
  /** The organization of the page. */
  readonly organization_id: string;
}

export const SessionContext = createContext<PageSession | null>(null);

/** Who is signed in; every page but the one where one signs in may ask. */
export function useSession(): PageSession {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('No session');
  return session;
}

/** Whether the session may use /admin. */
export const useIsAdministrator = (): boolean => useSession().kind === 'administrator';

/** Which of these scopes a session lacks. The platform decides; pages hide or explain what it would refuse. */
export function missingScopes(
  { scopes }: Pick<Session, 'scopes'>,
  needed: readonly string[],
): readonly string[] {
  return scopes.includes('*') ? [] : needed.filter((scope) => !scopes.includes(scope));
}

/** Which of these scopes the session of the page lacks. */
export const useMissingScopes = (needed: readonly string[]): readonly string[] =>
  missingScopes(useSession(), needed);

/** Whether the session has a scope. */
export const useHasScope = (scope: string): boolean => useMissingScopes([scope]).length === 0;

/** What a session needs to open a page. */
export interface Needed {
  /** A scope. */
  readonly scope?: string;
  /** A scope that is needed where the platform's permissions are strict. */
  readonly area?: string;
}

/** Tells whether the session has what a page needs. */
export function useMayOpen(): (needed: Needed) => boolean {
  const { scopes, permissions } = useSession();
  return useCallback(
    ({ scope, area }) => {
      const has = (one: string) => scopes.includes('*') || scopes.includes(one);
      const isAreaOpen = area === undefined || permissions === 'open' || has(area);
      return isAreaOpen && (scope === undefined || has(scope));
    },
    [scopes, permissions],
  );
}

/** Whether one of the scopes is enough to reach the memories of users. */
export function useReachesUsers(): boolean {
  return useMissingScopes(['memories', 'user-data']).length < 2;
}
