import { createContext, useContext } from 'react';
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

/** Whether the session has a scope. The platform decides; pages hide or explain what it would refuse. */
export function useHasScope(scope: string): boolean {
  const { scopes } = useSession();
  return scopes.includes('*') || scopes.includes(scope);
}
