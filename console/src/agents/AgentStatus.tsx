import type { Schema } from '../api/client.ts';
import { Status } from '../ui/Status.tsx';

/** An active agent is shown as good, not as running. */
export function AgentStatus({ status }: Pick<Schema<'Agent'>, 'status'>) {
  return <Status value={status} tone={status === 'active' ? 'good' : 'warn'} />;
}
