import type { Schema } from '../api/client.ts';
import { Code } from '../ui/Code.tsx';
import { SecretOnce } from '../ui/SecretOnce.tsx';

/** A new key, the one time that it is shown. */
export function IssuedKey({
  issued: { client_name, organization_id, plaintext_key },
  onClose,
}: {
  issued: Schema<'IssuedApiKey'>;
  onClose: () => void;
}) {
  const curl = `curl -s ${location.origin}/api/skills \\\n  -H 'x-api-key: ${plaintext_key}'`;
  return (
    <SecretOnce
      title="API key created"
      description={`${client_name}, of the organization ${organization_id}`}
      label="API key"
      value={plaintext_key}
      lost="Without it, you can only make another key."
      onClose={onClose}
    >
      <div className="flex flex-col gap-1.5">
        <p className="text-[13px] font-medium">Try it: list its skills</p>
        <Code text={curl} label="curl" />
      </div>
    </SecretOnce>
  );
}
