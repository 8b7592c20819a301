/**
 * The journal of one claim of a job: what its run does is on record before and after it happens, and what
 * is on record is not done again. Steps and waits of the run's code are here; the calls of models and their
 * tools are further kinds of steps of the same claim (`src/core/agents/generations.ts`).
 */
import { bind } from '../../kernel/bind.ts';
import {
  type ClaimDeps,
  type ClaimRecords,
  type OpenClaim,
  openClaim,
  writeRest,
} from './claim-writes.ts';
import { beginStep, endStep, noteTold } from './journal-steps.ts';
import type { JournalJob } from './step-rows.ts';
import { beginWait, endsOfWaits } from './waits.ts';

export type Journal = ReturnType<typeof openJournal>;

export function openJournal(deps: ClaimDeps, job: JournalJob) {
  const claim = openClaim(deps, job);
  const verbs = { beginStep, endStep, noteTold, beginWait, endsOfWaits, records, writeRest };
  return { claim, ...bind(claim, verbs) };
}

/** What the job has on record, as this claim found and continued it. */
function records(claim: OpenClaim): Promise<ClaimRecords> {
  return claim.records();
}
