/** The processes of a cluster; an embedded platform is one process. */
import { opensSealedSecrets } from '../../adapters/database/signing-secrets.ts';
import type { Context } from '../../core/context/context.ts';
import type { JobQueue } from '../../core/jobs/queues.ts';
import type { Turns } from '../../core/jobs/turns/turns.ts';
import { Processes } from '../../platform/processes/processes.ts';
import { ThisProcess } from '../../platform/processes/this-process.ts';
import type { Parts } from './parts.ts';

export interface ComposedProcesses {
  /** Null where the platform is embedded. */
  readonly cluster: Processes | null;
  readonly local: ThisProcess;
}

/** Records the first heartbeat. */
export async function composeProcesses(
  { config, version, executors, cluster }: Parts,
  context: Context,
  turns: ReadonlyMap<JobQueue, Turns>,
): Promise<ComposedProcesses> {
  const facts = { roles: [...config.roles], version, executors, turns };
  if (cluster === null) return { cluster: null, local: new ThisProcess(context.clock, facts) };
  const processes = new Processes(context, facts, [opensSealedSecrets]);
  await processes.beat();
  return { cluster: processes, local: processes };
}
