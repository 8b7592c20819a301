import { useState } from 'react';
import { createApiKey } from '../api/api-keys.ts';
import { useSession } from '../shell/session.ts';
import { Dialog } from '../ui/Dialog.tsx';
import { Field, Input, issueOf, NumberField, TextField } from '../ui/Field.tsx';
import { useAct } from '../ui/useAct.ts';
import { FormFrame } from './FormFrame.tsx';
import { IssuedKey } from './IssuedKey.tsx';
import { numberOf } from './numbers.ts';
import { ScopesField } from './ScopesField.tsx';

const fields = [
  ...['client_name', 'organization_id', 'scopes', 'rate_limit', 'max_concurrency', 'expires_at'],
];
const organizationsId = 'organizations-of-keys';

/** Creates a key and shows it once, only in this dialog. */
export function NewApiKey({ onClose }: { onClose: () => void }) {
  const session = useSession();
  const [name, setName] = useState('');
  const [organization, setOrganization] = useState(session.organization_id);
  const [scopes, setScopes] = useState<readonly string[]>([]);
  const [limit, setLimit] = useState('');
  const [runs, setRuns] = useState('');
  const [expires, setExpires] = useState('');
  const create = useAct({
    act: () => {
      const rate = numberOf(limit);
      return createApiKey({
        client_name: name,
        scopes: [...scopes],
        ...(organization !== '' && { organization_id: organization }),
        ...(rate !== null && { rate_limit: rate }),
        max_concurrency: numberOf(runs),
        // The end of the day that was chosen, everywhere on earth the same.
        ...(expires !== '' && { expires_at: `${expires}T23:59:59.999Z` }),
      });
    },
    // A new organization can be entered from now on.
    changes: [['api-keys'], ['session']],
    quiet: true,
    isSecret: true,
  });
  const { error } = create;
  if (create.isSuccess) {
    const leave = () => {
      create.reset();
      onClose();
    };
    return <IssuedKey issued={create.data} onClose={leave} />;
  }
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      title="New API key"
      description="For a program or a person that uses the platform."
    >
      <FormFrame
        error={error}
        fields={fields}
        verb="Create key"
        busy={create.isPending}
        onSubmit={() => create.mutate()}
        onCancel={onClose}
      >
        <TextField
          label="Name"
          hint="The user of the key."
          error={issueOf(error, 'client_name')}
          value={name}
          onValue={setName}
          placeholder="nightly reports"
          autoComplete="off"
        />
        <Field
          label="Organization"
          hint="A key has access to its organization only. A new name creates an organization."
          error={issueOf(error, 'organization_id')}
        >
          {(control) => (
            <>
              <Input
                {...control}
                value={organization}
                onChange={(event) => setOrganization(event.target.value)}
                list={organizationsId}
                autoComplete="off"
              />
              <datalist id={organizationsId}>
                {session.organizations.map((id) => (
                  <option key={id} value={id} />
                ))}
              </datalist>
            </>
          )}
        </Field>
        <ScopesField values={scopes} onValues={setScopes} error={issueOf(error, 'scopes')} />
        <div className="grid gap-4 sm:grid-cols-2">
          <NumberField
            label="Requests a minute"
            optional
            hint="If empty, 100."
            error={issueOf(error, 'rate_limit')}
            placeholder="100"
            value={limit}
            onValue={setLimit}
          />
          <NumberField
            label="Runs at a time"
            optional
            hint="If empty, no limit."
            error={issueOf(error, 'max_concurrency')}
            placeholder="No limit"
            value={runs}
            onValue={setRuns}
          />
          <TextField
            label="Last day"
            optional
            hint="It expires at the end of this day, in UTC. If empty, never."
            error={issueOf(error, 'expires_at')}
            type="date"
            value={expires}
            onValue={setExpires}
          />
        </div>
      </FormFrame>
    </Dialog>
  );
}
