import type { Schema } from '../api/client.ts';
import { Status } from '../ui/Status.tsx';

/** An agent that takes work is well; nothing is under way because of that. */
export function AgentStatus({ status }: Pick<Schema<'Agent'>, 'status'>) {
  return <Status value={status} tone={status === 'active' ? 'good' : 'warn'} />;
}
