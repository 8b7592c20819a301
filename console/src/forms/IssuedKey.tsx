import { useState } from 'react';
import type { Schema } from '../api/client.ts';
import { Button } from '../ui/Button.tsx';
import { Code } from '../ui/Code.tsx';
import { Confirm, Dialog } from '../ui/Dialog.tsx';
import { SecretOnce } from '../ui/SecretOnce.tsx';

/** A new key, the one time that it is shown; whoever closes it is asked whether they have it. */
export function IssuedKey({
  issued: { client_name, organization_id, plaintext_key },
  onClose,
}: {
  issued: Schema<'IssuedApiKey'>;
  onClose: () => void;
}) {
  const [isLeaving, setLeaving] = useState(false);
  const curl = `curl -s ${location.origin}/api/skills \\\n  -H 'x-api-key: ${plaintext_key}'`;
  return (
    <>
      <Dialog
        open
        onClose={() => setLeaving(true)}
        title="The key is there"
        description={`${client_name}, of the organization ${organization_id}`}
      >
        <SecretOnce label="API key" value={plaintext_key}>
          <div className="flex flex-col gap-1.5">
            <p className="text-[13px] font-medium">Try it: what it may run</p>
            <Code text={curl} label="curl" />
          </div>
        </SecretOnce>
        <div className="mt-5 flex justify-end">
          <Button look="primary" onClick={onClose}>
            I have copied it
          </Button>
        </div>
      </Dialog>
      <Confirm
        open={isLeaving}
        onClose={() => setLeaving(false)}
        title="Have you copied the key?"
        verb="Close it"
        keep="Go back"
        act={async () => onClose()}
      >
        It is not shown again. Without it, you can only make another one.
      </Confirm>
    </>
  );
}
