import { useState } from 'react';
import { revokeApiKey } from '../api/api-keys.ts';
import type { Schema } from '../api/client.ts';
import { Confirm } from '../ui/Dialog.tsx';
import { Switch } from '../ui/Field.tsx';
import { useAct } from '../ui/useAct.ts';

/** Confirms the revocation of a key, and lists its effects. */
export function RevokeKey({
  apiKey: { id, client_name, organization_id },
  onClose,
}: {
  apiKey: Schema<'ApiKey'>;
  onClose: () => void;
}) {
  const [cancelsJobs, setCancelsJobs] = useState(false);
  const revoke = useAct({
    act: () => revokeApiKey(id, cancelsJobs),
    done: `${client_name} is revoked`,
    changes: [['api-keys'], ['jobs'], ['schedules'], ['triggers']],
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
        <li>Its queued jobs are cancelled.</li>
        <li>Schedules that were created with it skip their slots.</li>
        <li>Triggers that were created with it answer 404.</li>
      </ul>
      <p className="mt-2">
        To keep schedules and triggers working, create them again with another key. Its active jobs
        continue, but without models and tools.
      </p>
      <div className="mt-3 flex items-center gap-2 text-ink">
        <Switch
          label="Cancel its active jobs too"
          checked={cancelsJobs}
          onCheckedChange={setCancelsJobs}
        />
        <span aria-hidden>Cancel its active jobs too</span>
      </div>
    </Confirm>
  );
}
