import { revokeApiKey } from '../api/api-keys.ts';
import type { Schema } from '../api/client.ts';
import { Confirm } from '../ui/Dialog.tsx';
import { useAct } from '../ui/useAct.ts';

/** Asks before a key is revoked, and says what stops with it. */
export function RevokeKey({
  apiKey: { id, client_name, organization_id },
  onClose,
}: {
  apiKey: Schema<'ApiKey'>;
  onClose: () => void;
}) {
  const revoke = useAct({
    act: () => revokeApiKey(id),
    done: `${client_name} is revoked`,
    changes: [['api-keys']],
    quiet: true,
  });
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Revoke ${client_name}?`}
      verb="Revoke"
      act={() => revoke.mutateAsync()}
    >
      <p>It cannot be enabled again. What stops in {organization_id}:</p>
      <ul className="mt-2 list-disc pl-5">
        <li>Requests with this key are refused, within a second.</li>
        <li>Schedules that were made with it skip their slots.</li>
        <li>Triggers that were made with it answer 404.</li>
      </ul>
      <p className="mt-2">
        To have these go on, make them anew with another key. Jobs that wait run to their end, but
        call no further skill as a tool.
      </p>
    </Confirm>
  );
}
