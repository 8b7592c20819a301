import { useState } from 'react';
import type { Schema } from '../api/client.ts';
import { replaceCredential } from '../api/credentials.ts';
import { Dialog } from '../ui/Dialog.tsx';
import { Field, Input, issueOf } from '../ui/Field.tsx';
import { useAct } from '../ui/useAct.ts';
import { FormFrame } from './FormFrame.tsx';

const fields = ['provider', 'api_key', 'base_url'];

/** Stores an account with a provider, or another one in its place. A stored key is never shown. */
export function CredentialDialog({
  organizationId,
  credential,
  onClose,
}: {
  organizationId: string;
  credential: Schema<'Credential'> | null;
  onClose: () => void;
}) {
  const [provider, setProvider] = useState(credential?.provider ?? '');
  const [key, setKey] = useState('');
  const [url, setUrl] = useState(credential?.base_url ?? '');
  const save = useAct({
    act: () =>
      replaceCredential(organizationId, provider, {
        ...(key !== '' && { api_key: key }),
        ...(url !== '' && { base_url: url }),
      }),
    done: `The credentials of ${provider} are stored`,
    changes: [['credentials']],
    quiet: true,
    isSecret: true,
  });
  const { error } = save;
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      title={credential === null ? 'Add credentials' : `Replace the credentials of ${provider}`}
      description={`Agents of ${organizationId} use them within a second.`}
    >
      <FormFrame
        error={error}
        fields={fields}
        verb="Store"
        busy={save.isPending}
        onSubmit={() => save.mutate(undefined, { onSuccess: onClose })}
        onCancel={onClose}
      >
        {credential === null && (
          <Field
            label="Provider"
            hint="What stands before the slash of an agent’s model: openai, anthropic, ollama…"
            error={issueOf(error, 'provider')}
          >
            {(control) => (
              <Input
                {...control}
                required
                value={provider}
                onChange={(event) => setProvider(event.target.value)}
                placeholder="openai"
                autoComplete="off"
              />
            )}
          </Field>
        )}
        <Field
          label="API key"
          optional
          hint={
            credential?.has_api_key
              ? 'The stored key is not shown, and goes: enter one again, or none is sent.'
              : 'Kept encrypted, and never shown again. Empty sends none.'
          }
          error={issueOf(error, 'api_key')}
        >
          {(control) => (
            <Input
              {...control}
              type="password"
              autoComplete="off"
              value={key}
              onChange={(event) => setKey(event.target.value)}
              className="font-mono text-[13px]"
            />
          )}
        </Field>
        <Field
          label="Address"
          optional
          hint="Where its calls go. Empty is the platform’s address of this provider."
          error={issueOf(error, 'base_url')}
        >
          {(control) => (
            <Input
              {...control}
              type="url"
              value={url}
              onChange={(event) => setUrl(event.target.value)}
              placeholder="http://127.0.0.1:11434/v1"
              className="font-mono text-[13px]"
            />
          )}
        </Field>
      </FormFrame>
    </Dialog>
  );
}
