import { useState } from 'react';
import { addMcpServer } from '../api/mcp-servers.ts';
import { Dialog } from '../ui/Dialog.tsx';
import { issueOf, TextField } from '../ui/Field.tsx';
import { useAct } from '../ui/useAct.ts';
import { FormFrame } from './FormFrame.tsx';

const fields = ['name', 'url', 'headers.authorization'];

/** Adds an outside server by its address. What else can be set is for the API. */
export function NewMcpServer({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [authorization, setAuthorization] = useState('');
  const save = useAct({
    act: () =>
      addMcpServer({ name, url, ...(authorization !== '' && { headers: { authorization } }) }),
    done: ({ status, skills }) =>
      status === 'failing'
        ? `${name} is added, but could not be reached`
        : `${name} is added, with ${skills.length} skills`,
    changes: [['mcp-servers'], ['skills']],
    quiet: true,
    isSecret: true,
  });
  const { error } = save;
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      title="Add an outside server"
      description="Its tools become skills that are active at once."
    >
      <FormFrame
        error={error}
        fields={fields}
        verb="Add"
        busy={save.isPending}
        onSubmit={() => save.mutate(undefined, { onSuccess: onClose })}
        onCancel={onClose}
      >
        <TextField
          label="Name"
          hint="Its skills have the category mcp-, followed by the name."
          error={issueOf(error, 'name')}
          required
          value={name}
          onValue={setName}
          placeholder="tickets"
          autoComplete="off"
        />
        <TextField
          label="Address"
          hint="Where it speaks the Model Context Protocol over HTTP."
          error={issueOf(error, 'url')}
          required
          type="url"
          value={url}
          onValue={setUrl}
          placeholder="https://tickets.example.com/mcp"
          className="font-mono text-[13px]"
        />
        <TextField
          label="Authorization"
          optional
          hint="The header, such as Bearer and a token. Kept encrypted, and never shown again."
          error={issueOf(error, 'headers.authorization')}
          type="password"
          autoComplete="off"
          value={authorization}
          onValue={setAuthorization}
          className="font-mono text-[13px]"
        />
      </FormFrame>
    </Dialog>
  );
}
