import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useEffect, useState } from 'react';
import { wordsOf } from '../api/client.ts';
import { type Session, sessionQuery, signIn } from '../api/session.ts';
import { Button } from '../ui/Button.tsx';
import { TextField } from '../ui/Field.tsx';
import { Logo } from './Logo.tsx';

/** What is shown to a browser that is not signed in. */
export function SignIn() {
  const client = useQueryClient();
  return (
    <SignInFrame
      title="Sign in"
      about="With the admin secret for everything, or with an API key for its organization."
    >
      <SignInForm onSignedIn={(session) => client.setQueryData(sessionQuery.queryKey, session)} />
    </SignInFrame>
  );
}

/** A page of its own, before there is a menu. */
export function SignInFrame({
  title,
  about,
  children,
}: {
  title: string;
  about: ReactNode;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Skillwright`;
  }, [title]);
  return (
    <main className="flex min-h-dvh flex-col items-center justify-center gap-6 px-4 pb-[12vh]">
      <Logo className="text-lg" />
      <div className="w-full max-w-sm rounded-xl border bg-surface p-6 shadow-low">
        <h1 className="text-lg font-semibold">{title}</h1>
        <p className="mt-1 text-[13px] leading-relaxed text-muted">{about}</p>
        {children}
      </div>
    </main>
  );
}

export function SignInForm({ onSignedIn }: { onSignedIn: (session: Session) => void }) {
  const [secret, setSecret] = useState('');
  const entering = useMutation({
    mutationFn: signIn,
    onSuccess: (session) => session !== null && onSignedIn(session),
    // It would keep the secret.
    gcTime: 0,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (secret.trim() !== '') entering.mutate(secret.trim());
  }
  return (
    <form onSubmit={submit} className="mt-5 flex flex-col gap-4">
      <TextField
        label="Admin secret or API key"
        error={entering.error ? wordsOf(entering.error) : undefined}
        hint={
          <>
            The secret was shown when the platform was first started. It is kept in{' '}
            <code className="font-mono">admin-secret</code> in its data directory.
          </>
        }
        type="password"
        name="secret"
        autoComplete="current-password"
        autoFocus
        required
        value={secret}
        onValue={setSecret}
      />
      <Button type="submit" look="primary" busy={entering.isPending}>
        Sign in
      </Button>
    </form>
  );
}
