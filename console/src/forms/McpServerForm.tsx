import { useState } from 'react';
import { addMcpServer, changeMcpServer, type McpServer } from '../api/mcp-servers.ts';
import { storedWords } from '../remote/words.ts';
import { useSession } from '../shell/session.ts';
import { Choice } from '../ui/Choice.tsx';
import { issueOf, SelectField, TextAreaField, TextField } from '../ui/Field.tsx';
import { CallFields } from './CallFields.tsx';
import { FormDialog } from './FormDialog.tsx';
import { authKinds, changeOf, draftOf, type McpServerDraft } from './mcp-server.ts';
import { NamedSecrets, newSecret } from './NamedSecrets.tsx';
import { OrganizationsField } from './OrganizationsField.tsx';
import { StoredSecretField } from './SecretField.tsx';

const fields = [
  ...[
    'name',
    'organizations',
    'url',
    'headers',
    'command',
    'args',
    'env',
    'timeout_ms',
    'idempotent_tools',
  ],
  ...['oauth.client_id', 'oauth.client_secret', 'oauth.issuer', 'oauth.scope'],
];
const ways = [
  { value: 'address', label: 'Address' },
  { value: 'command', label: 'Command' },
] as const;

interface PartProps {
  readonly draft: McpServerDraft;
  readonly set: (change: Partial<McpServerDraft>) => void;
  readonly error: unknown;
}

/** Adds an outside server, or changes the given one. */
export function McpServerForm({
  server,
  onClose,
}: {
  server: McpServer | null;
  onClose: () => void;
}) {
  const { organization_id: own } = useSession();
  const [draft, setDraft] = useState(() => draftOf(server, own));
  const set = (change: Partial<McpServerDraft>) => setDraft({ ...draft, ...change });
  return (
    <FormDialog
      wide
      title={server === null ? 'Add an outside server' : `Edit ${server.name}`}
      description="Its tools become skills. Those of the first refresh are active at once, unless an account shows them."
      verb={server === null ? 'Add' : 'Save'}
      fields={fields}
      act={() =>
        server === null
          ? addMcpServer(draft.name, changeOf(draft))
          : changeMcpServer(server.name, changeOf(draft))
      }
      done={storedWords}
      changes={[['mcp-servers'], ['skills'], ['accounts']]}
      onClose={onClose}
    >
      {(error) => (
        <>
          {server === null && (
            <TextField
              label="Name"
              hint="Its skills have the category mcp-, followed by the name."
              error={issueOf(error, 'name')}
              required
              value={draft.name}
              onValue={(name) => set({ name })}
              placeholder="tickets"
              autoComplete="off"
            />
          )}
          <div>
            <Choice
              label="How it is reached"
              value={draft.by}
              choices={ways}
              onValue={(by) => set({ by })}
            />
          </div>
          {draft.by === 'address' ? (
            <AddressFields draft={draft} set={set} error={error} />
          ) : (
            <CommandFields draft={draft} set={set} error={error} />
          )}
          <OrganizationsField
            values={draft.organizations}
            onValues={(organizations) => set({ organizations })}
            error={issueOf(error, 'organizations')}
          />
          <CallFields
            settings={draft.calls}
            onSettings={(calls) => set({ calls })}
            choices={toolsOf(server)}
            what="tools"
            hint="Called again after a failure. Others are not, because a call may have had an effect."
            field="idempotent_tools"
            error={error}
          />
          <label className="flex items-baseline gap-2 text-[13px]">
            <input
              type="checkbox"
              className="accent-accent"
              checked={draft.isTrusted}
              onChange={({ target }) => set({ isTrusted: target.checked })}
            />
            <span>
              Trust the annotations of the server
              <span className="block text-xs text-muted">
                A tool that calls itself idempotent or read-only is called again, too.
              </span>
            </span>
          </label>
        </>
      )}
    </FormDialog>
  );
}

const toolsOf = (server: McpServer | null) =>
  [...new Set(server?.skills.map(({ tool }) => tool))].map((value) => ({ value }));

function AddressFields({ draft, set, error }: PartProps) {
  const { auth, headers } = draft;
  return (
    <>
      <TextField
        label="Address"
        hint="Where it speaks the Model Context Protocol over HTTP."
        error={issueOf(error, 'url')}
        required
        type="url"
        value={draft.url}
        onValue={(url) => set({ url })}
        placeholder="https://tickets.example.com/mcp"
        className="font-mono text-[13px]"
      />
      <SelectField
        label="Authorization"
        value={auth}
        options={authKinds}
        onValue={(next) => {
          const isFirst = next === 'headers' && headers.length === 0;
          set({ auth: next, headers: isFirst ? [newSecret('authorization')] : headers });
        }}
      />
      {(auth === 'client_credentials' || auth === 'authorization_code') && (
        <OauthFields draft={draft} set={set} error={error} />
      )}
      {(auth === 'headers' || headers.length > 0) && (
        <NamedSecrets
          label="Headers"
          one="header"
          hint="Sent with each request. Kept encrypted, and never shown again."
          field="headers"
          error={error}
          secrets={headers}
          onSecrets={(next) => set({ headers: next })}
        />
      )}
    </>
  );
}

function OauthFields({ draft, set, error }: PartProps) {
  const isCode = draft.auth === 'authorization_code';
  const mono = 'font-mono text-[13px]';
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <TextField
        label="Client"
        optional={isCode}
        hint={isCode ? 'If empty, the platform registers one.' : 'Its id at the issuer.'}
        error={issueOf(error, 'oauth.client_id')}
        autoComplete="off"
        value={draft.clientId}
        onValue={(clientId) => set({ clientId })}
        className={mono}
      />
      <StoredSecretField
        label="Client secret"
        isStored={draft.hasSecret}
        optional={isCode || draft.hasSecret}
        error={issueOf(error, 'oauth.client_secret')}
        value={draft.clientSecret}
        onValue={(clientSecret) => set({ clientSecret })}
      />
      <TextField
        label="Issuer"
        optional={isCode && draft.clientId === ''}
        hint="The authorization server of the client; client and secret go to no other."
        error={issueOf(error, 'oauth.issuer')}
        type="url"
        value={draft.issuer}
        onValue={(issuer) => set({ issuer })}
        placeholder="https://login.example.com"
        className={mono}
      />
      <TextField
        label="Scopes"
        optional
        hint="Separated by spaces."
        error={issueOf(error, 'oauth.scope')}
        value={draft.scope}
        onValue={(scope) => set({ scope })}
        className={mono}
      />
    </div>
  );
}

function CommandFields({ draft, set, error }: PartProps) {
  return (
    <>
      <TextField
        label="Command"
        hint="A program on the machine of the platform. The operator has to allow commands with MCP_COMMANDS=on."
        error={issueOf(error, 'command')}
        required
        value={draft.command}
        onValue={(command) => set({ command })}
        placeholder="/usr/local/bin/mcp-server-filesystem"
        className="font-mono text-[13px]"
      />
      <TextAreaField
        label="Arguments"
        optional
        hint="One on each line."
        error={issueOf(error, 'args')}
        rows={3}
        spellCheck={false}
        value={draft.args}
        onValue={(args) => set({ args })}
        className="font-mono text-xs"
      />
      <NamedSecrets
        label="Environment"
        one="variable"
        hint="Kept encrypted, and never shown again. Nothing else of the platform’s environment is passed on."
        field="env"
        error={error}
        secrets={draft.env}
        onSecrets={(env) => set({ env })}
      />
    </>
  );
}
