import { createContext, useContext } from 'react';
import type { Session } from '../api/session.ts';

export const SessionContext = createContext<Session | null>(null);

/** Who is signed in; every page but the one where one signs in may ask. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('Nobody is signed in');
  return session;
}

/** Whether whoever is signed in may use what is under /admin. */
export const useIsAdministrator = (): boolean => useSession().kind === 'administrator';
