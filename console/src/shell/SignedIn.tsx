import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { pageOrganization } from '../api/organization.ts';
import { type Session, sessionQuery } from '../api/session.ts';
import { Problem } from '../ui/Loading.tsx';
import { OtherOrganization, SignInOver } from './Interrupted.tsx';
import { SignIn } from './SignIn.tsx';
import { SessionContext } from './session.ts';

/**
 * Shows its content to a session of the page's organization. When the session ends or is replaced, the
 * content stays with its inputs, and the user signs in above it.
 */
export function SignedIn({ children }: { children: ReactNode }) {
  const query = useQuery(sessionQuery);
  /** The last session with which this page could be used. */
  const [held, setHeld] = useState<Session | null>(null);
  const { data } = query;
  // A known session is kept while the platform cannot be reached.
  if (query.error && data === undefined) {
    return (
      <main className="mx-auto mt-24 max-w-lg px-4">
        <Problem error={query.error} retry={() => void query.refetch()} />
      </main>
    );
  }
  const organization = pageOrganization();
  if (data === undefined) return null;
  if (data === null || organization === null) return <SignIn />;
  const isUsable = !data.isOver && data.organizations.includes(organization);
  if (isUsable && held !== data) setHeld(data);
  if (held === null) {
    return isUsable ? null : <OtherOrganization session={data} organization={organization} />;
  }
  return (
    <SessionContext value={{ ...held, organization_id: organization }}>
      {children}
      {!isUsable && <SignInOver session={data} held={held} organization={organization} />}
    </SessionContext>
  );
}
