import { useState } from 'react';
import type { Schema } from '../api/client.ts';
import { replaceCredential } from '../api/credentials.ts';
import { issueOf, SelectField, TextField } from '../ui/Field.tsx';
import { FormDialog } from './FormDialog.tsx';

const fields = ['provider', 'api_key', 'base_url', 'protocol'];

type Protocol = NonNullable<Schema<'Credential'>['protocol']>;

const protocols: readonly { value: Protocol | ''; label: string }[] = [
  { value: '', label: 'The usual one' },
  { value: 'chat', label: 'Chat completions' },
  { value: 'responses', label: 'Responses (OpenAI)' },
  { value: 'messages', label: 'Messages (Anthropic)' },
  { value: 'gemini', label: 'Gemini (Google)' },
  { value: 'mistral', label: 'Chat completions of Mistral' },
  { value: 'converse', label: 'Converse (Amazon Bedrock)' },
];

/** Stores a credential for a provider, or another one in its place. A stored key is never shown. */
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
  const [protocol, setProtocol] = useState<Protocol | ''>(credential?.protocol ?? '');
  return (
    <FormDialog
      title={credential === null ? 'Add credentials' : `Replace the credentials of ${provider}`}
      description={`Agents of ${organizationId} use them within a second.`}
      verb="Store"
      fields={fields}
      act={() =>
        replaceCredential(organizationId, provider, {
          ...(key !== '' && { api_key: key }),
          ...(url !== '' && { base_url: url }),
          ...(protocol !== '' && { protocol }),
        })
      }
      done={`The credentials of ${provider} are stored`}
      changes={[['credentials']]}
      onClose={onClose}
    >
      {(error) => (
        <>
          {credential === null && (
            <TextField
              label="Provider"
              hint="The part before the slash of an agent’s model: openai, anthropic, ollama…"
              error={issueOf(error, 'provider')}
              required
              value={provider}
              onValue={setProvider}
              placeholder="openai"
              autoComplete="off"
            />
          )}
          <TextField
            label="API key"
            optional
            hint={
              credential?.has_api_key
                ? 'The stored key is not shown, and goes: enter one again, or none is sent.'
                : 'Kept encrypted, and never shown again. Empty sends none.'
            }
            error={issueOf(error, 'api_key')}
            type="password"
            autoComplete="off"
            value={key}
            onValue={setKey}
            className="font-mono text-[13px]"
          />
          <TextField
            label="Address"
            optional
            hint="The address of its API. If empty, the platform’s address of this provider."
            error={issueOf(error, 'base_url')}
            type="url"
            value={url}
            onValue={setUrl}
            placeholder="http://127.0.0.1:11434/v1"
            className="font-mono text-[13px]"
          />
          <SelectField
            label="Protocol"
            hint="What a server at another address speaks."
            error={issueOf(error, 'protocol')}
            value={protocol}
            options={protocols}
            onValue={setProtocol}
          />
        </>
      )}
    </FormDialog>
  );
}
