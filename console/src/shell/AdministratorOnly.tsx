import type { ReactNode } from 'react';
import { ButtonLink } from '../ui/Button.tsx';
import { ShieldAlert } from '../ui/icons.tsx';
import { Empty } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { useSession } from './session.ts';

/** A page of /admin. A session with an API key sees a note, and no request is sent. */
export function AdministratorOnly({ title, children }: { title: string; children: ReactNode }) {
  const { kind, client_name } = useSession();
  if (kind === 'administrator') return children;
  return (
    <Page title={title}>
      <Section>
        <Empty
          icon={<ShieldAlert />}
          title="For the administrator only"
          action={<ButtonLink to="/">Go to the overview</ButtonLink>}
        >
          You are signed in with the API key “{client_name}”. Sign out, and sign in with the admin
          secret to see this page.
        </Empty>
      </Section>
    </Page>
  );
}
