import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { sessionQuery } from '../api/session.ts';
import { Problem } from '../ui/Loading.tsx';
import { SignIn } from './SignIn.tsx';
import { SessionContext } from './session.ts';

/** Shows its content to those who are signed in, to others where one does. */
export function SignedIn({ children }: { children: ReactNode }) {
  const query = useQuery(sessionQuery);
  // One that is there is believed while it cannot be asked for again.
  if (query.error && query.data === undefined) {
    return (
      <main className="mx-auto mt-24 max-w-lg px-4">
        <Problem error={query.error} retry={() => void query.refetch()} />
      </main>
    );
  }
  if (query.data === undefined) return null;
  if (query.data === null) return <SignIn />;
  return <SessionContext value={query.data}>{children}</SessionContext>;
}
