/** Shown when the session cannot open the page: it has ended, or belongs to another organization. */
import { useQueryClient } from '@tanstack/react-query';
import { createPortal } from 'react-dom';
import { addressOf } from '../api/organization.ts';
import { resumeQueries } from '../api/queries.ts';
import { type Session, sessionQuery } from '../api/session.ts';
import { SignInForm, SignInFrame } from './SignIn.tsx';

interface Foreign {
  readonly session: Session;
  /** Of the page. */
  readonly organization: string;
}

/** An address of an organization that the session does not open, such as a shared link. */
export function OtherOrganization({ session, organization }: Foreign) {
  return (
    <SignInFrame
      title="Another organization"
      about={<SignedInElsewhere session={session} organization={organization} />}
    >
      <SignInForm onSignedIn={(next) => loadFor(next, organization)} />
    </SignInFrame>
  );
}

/**
 * Over a page whose session has ended, or was replaced by one of another organization. The page stays as it was after a sign-in with the same secret; with another secret it is reloaded.
 */
export function SignInOver({ session, held, organization }: Foreign & { held: Session }) {
  const client = useQueryClient();
  function signedIn(next: Session) {
    const isSame = next.kind === held.kind && next.api_key_id === held.api_key_id;
    if (!isSame) return loadFor(next, organization);
    client.setQueryData(sessionQuery.queryKey, next);
    resumeQueries();
  }
  const title = session.isOver ? 'Your session has ended' : 'Another organization';
  // In the top layer of the browser, so that a dialog of the page cannot be above it.
  return createPortal(
    <dialog
      ref={showOver}
      aria-labelledby="sign-in-over"
      // A dialog of the page would take them for its own.
      onKeyDown={(event) => event.stopPropagation()}
      onCancel={(event) => event.preventDefault()}
      className="m-auto w-[calc(100vw-2rem)] max-w-sm rounded-xl border bg-surface p-6 text-ink shadow-high backdrop:bg-[oklch(15%_0.02_265/45%)]"
    >
      <h2 id="sign-in-over" className="text-lg font-semibold">
        {title}
      </h2>
      <p className="mt-1 text-[13px] leading-relaxed text-muted">
        {session.isOver ? (
          `Sign in again as ${held.client_name}, and this page is as you left it.`
        ) : (
          <SignedInElsewhere session={session} organization={organization} />
        )}
      </p>
      <SignInForm onSignedIn={signedIn} />
    </dialog>,
    document.body,
  );
}

function showOver(dialog: HTMLDialogElement | null) {
  dialog?.showModal();
  return () => dialog?.close();
}

function SignedInElsewhere({ session, organization }: Foreign) {
  const [own = 'default'] = session.organizations;
  return (
    <>
      This page is of the organization “{organization}”, and this browser is signed in to “{own}” as{' '}
      {session.client_name}. Sign in to “{organization}” here, or{' '}
      <a href={addressOf(own)} className="text-accent-text underline">
        go to “{own}”
      </a>
      .
    </>
  );
}

/** Reloads this page for another session, or opens that session's first page if it has no access. */
function loadFor({ organizations }: Session, organization: string): void {
  const [first = organization] = organizations;
  if (organizations.includes(organization)) location.reload();
  else location.assign(addressOf(first));
}
