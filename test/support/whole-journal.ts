/** The journal of a claim with all kinds of steps, as a run and its thinking share it. */
import { type Generations, openGenerations } from '../../src/agents/generations.ts';
import type { GenerationDeps } from '../../src/agents/thinking-claim.ts';
import { isHeld } from '../../src/jobs/leases.store.ts';
import { openJournal, type Journal as RunJournal } from '../../src/journal/journal.ts';
import type { JournalJob } from '../../src/journal/step-rows.ts';

export type Journal = RunJournal & Generations;

/** Scheduled jobs are runs of `nightly`. */
export function openWholeJournal(
  world: Pick<GenerationDeps, 'database' | 'clock' | 'conversations'>,
  job: JournalJob,
  more: Partial<GenerationDeps> = {},
): Journal {
  const { database, clock, conversations } = world;
  const scheduledJobOf = async () => 'nightly';
  const agentsAbove = async () => [];
  const deps = { database, clock, conversations, isHeld, scheduledJobOf, agentsAbove, ...more };
  const journal = openJournal(deps, job);
  return { ...journal, ...openGenerations(deps, journal.claim) };
}
