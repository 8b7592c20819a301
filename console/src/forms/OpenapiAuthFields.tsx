import { issueOf, SelectField, TextField } from '../ui/Field.tsx';
import type { ImportPartProps } from './OpenapiImportForm.tsx';
import { authKinds } from './openapi-import.ts';
import { StoredSecretField } from './SecretField.tsx';

/** What each kind has: the name of the first field, its secret, and their fields in the API. */
const parts = {
  header: { who: 'Header', whoField: 'auth.name', secret: 'Value', secretField: 'auth.value' },
  query: { who: 'Parameter', whoField: 'auth.name', secret: 'Value', secretField: 'auth.value' },
  basic: {
    ...{ who: 'User', whoField: 'auth.username' },
    ...{ secret: 'Password', secretField: 'auth.password' },
  },
  oauth_client_credentials: {
    ...{ who: 'Client', whoField: 'auth.client_id' },
    ...{ secret: 'Client secret', secretField: 'auth.client_secret' },
  },
} as const;

const placesOfCredentials = [
  { value: 'header', label: 'a header' },
  { value: 'body', label: 'the body' },
] as const;

const mono = 'font-mono text-[13px]';

/** How requests are authorized. */
export function OpenapiAuthFields({ draft, set, error }: ImportPartProps) {
  const part = draft.auth === 'none' ? null : parts[draft.auth];
  const isStored = draft.auth === draft.storedAuth;
  return (
    <>
      <SelectField
        label="Authorization"
        value={draft.auth}
        options={authKinds}
        onValue={(auth) => set({ auth })}
      />
      {part !== null && (
        <div className="grid gap-4 sm:grid-cols-2">
          <TextField
            label={part.who}
            error={issueOf(error, part.whoField)}
            value={draft.who}
            onValue={(who) => set({ who })}
            placeholder={draft.auth === 'header' ? 'authorization' : ''}
            autoComplete="off"
            className={mono}
          />
          <StoredSecretField
            label={part.secret}
            isStored={isStored}
            error={issueOf(error, part.secretField)}
            value={draft.secret}
            onValue={(secret) => set({ secret })}
          />
        </div>
      )}
      {draft.auth === 'oauth_client_credentials' && (
        <TokenFields draft={draft} set={set} error={error} />
      )}
    </>
  );
}

function TokenFields({ draft, set, error }: ImportPartProps) {
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <TextField
        label="Address of tokens"
        error={issueOf(error, 'auth.token_url')}
        type="url"
        value={draft.tokenUrl}
        onValue={(tokenUrl) => set({ tokenUrl })}
        placeholder="https://login.example.com/token"
        className={mono}
      />
      <SelectField
        label="Client and secret are sent in"
        value={draft.credentialsIn}
        options={placesOfCredentials}
        onValue={(credentialsIn) => set({ credentialsIn })}
      />
      <TextField
        label="Scopes"
        optional
        error={issueOf(error, 'auth.scope')}
        value={draft.scope}
        onValue={(scope) => set({ scope })}
        className={mono}
      />
      <TextField
        label="Audience"
        optional
        error={issueOf(error, 'auth.audience')}
        value={draft.audience}
        onValue={(audience) => set({ audience })}
        className={mono}
      />
    </div>
  );
}
