/** The list of processes of an embedded platform: this process alone, without heartbeats. */
import { newId } from '../../kernel/ids.ts';
import { type Processes, type ProcessesDeps, type ProcessFacts, processView } from './processes.ts';

export function createSingleProcess(
  { clock }: Pick<ProcessesDeps, 'clock'>,
  facts: ProcessFacts,
): Pick<Processes, 'id' | 'claimed' | 'begun' | 'list'> {
  const row = {
    ...facts,
    id: newId(),
    started_at: clock.now(),
    last_claim_at: 0,
    last_job_at: 0,
  };
  return {
    id: row.id,
    claimed() {
      row.last_claim_at = clock.now();
    },
    begun() {
      row.last_job_at = clock.now();
    },
    list: async () => [processView({ ...row, skills: row.skills(), seen_at: clock.now() })],
  };
}
