import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schema } from '../api/client.ts';
import { credentialsQuery, deleteCredential } from '../api/credentials.ts';
import { live } from '../api/queries.ts';
import { CredentialDialog } from '../forms/CredentialDialog.tsx';
import { Button } from '../ui/Button.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { KeySquare, Pencil, Plus, Trash2 } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Menu } from '../ui/Menu.tsx';
import { Section } from '../ui/Page.tsx';
import { type Column, Table } from '../ui/Table.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';

type Credential = Schema<'Credential'>;

/** The accounts that an organization has with providers of models, in place of the platform's. */
export function Credentials({ organizationId }: { organizationId: string }) {
  const [editing, setEditing] = useState<Credential | 'new' | null>(null);
  const [deleting, setDeleting] = useState<Credential | null>(null);
  const query = useQuery({ ...credentialsQuery(organizationId), refetchInterval: live });
  const remove = useAct({
    act: ({ provider }: Credential) => deleteCredential(organizationId, provider),
    done: 'The credentials are deleted',
    changes: [['credentials']],
    quiet: true,
  });
  const add = (
    <Button size="small" icon={<Plus />} onClick={() => setEditing('new')}>
      Add credentials
    </Button>
  );
  return (
    <Section title={`Providers of models for ${organizationId}`} actions={add} flush>
      <Loaded query={query} lines={3}>
        {({ data }) => (
          <Table
            caption={`Credentials of ${organizationId}`}
            columns={columnsOf(setEditing, setDeleting)}
            rows={data}
            rowKey={({ provider }) => provider}
            empty={
              <Empty icon={<KeySquare />} title="No credentials">
                The agents of {organizationId} use the providers in the platform’s environment. Add
                credentials to use an account of its own.
              </Empty>
            }
          />
        )}
      </Loaded>
      {editing && (
        <CredentialDialog
          organizationId={organizationId}
          credential={editing === 'new' ? null : editing}
          onClose={() => setEditing(null)}
        />
      )}
      {deleting && (
        <Confirm
          open
          onClose={() => setDeleting(null)}
          title={`Delete the credentials of ${deleting.provider}?`}
          verb="Delete"
          act={() => remove.mutateAsync(deleting)}
        >
          The key cannot be shown or brought back. Agents of {organizationId} use what the
          platform’s environment says of {deleting.provider} then, and fail where it says nothing.
        </Confirm>
      )}
    </Section>
  );
}

const columnsOf = (
  onEdit: (credential: Credential) => void,
  onDelete: (credential: Credential) => void,
): readonly Column<Credential>[] => [
  {
    header: 'Provider',
    cell: ({ provider }) => <span className="font-medium">{provider}</span>,
  },
  {
    header: 'Key',
    cell: ({ has_api_key }) =>
      has_api_key ? 'stored, encrypted' : <span className="text-muted">none is sent</span>,
  },
  {
    header: 'Address',
    from: 'sm',
    grows: true,
    cell: ({ base_url }) =>
      base_url === null ? (
        <span className="text-muted">the platform’s</span>
      ) : (
        <span className="font-mono text-xs" title={base_url}>
          {base_url}
        </span>
      ),
  },
  {
    header: 'Updated',
    align: 'right',
    from: 'sm',
    cell: ({ updated_at }) => <Time value={updated_at} />,
  },
  {
    header: 'Actions',
    isHeaderHidden: true,
    align: 'right',
    cell: (credential) => (
      <div className="-my-1.5 inline-flex">
        <Menu
          label={`What can be done with ${credential.provider}`}
          items={[
            { label: 'Replace', icon: <Pencil />, act: () => onEdit(credential) },
            {
              label: 'Delete',
              icon: <Trash2 />,
              isDanger: true,
              act: () => onDelete(credential),
            },
          ]}
        />
      </div>
    ),
  },
];
