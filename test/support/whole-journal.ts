/** The journal of a claim with all kinds of steps, as a run and its thinking share it. */

import { readOperatorPrices } from '../../src/adapters/models/operator-prices.ts';
import { Prices } from '../../src/adapters/models/prices.ts';
import { Generations } from '../../src/core/agents/generations.ts';
import type { GenerationDeps } from '../../src/core/agents/thinking-claim.ts';
import { readTreeUse } from '../../src/core/jobs/child-jobs.store.ts';
import { streamedBytesOf } from '../../src/core/jobs/job-events.store.ts';
import { isHeld } from '../../src/core/jobs/leases.store.ts';
import { openJournal, type Journal as RunJournal } from '../../src/core/journal/journal.ts';
import type { JournalJob } from '../../src/core/journal/step-rows.ts';

/** In dollars for a million tokens: a token of the prompt of `a/model` costs a thousand nano-dollars, one of its answer two. */
const read = readOperatorPrices(
  JSON.stringify([{ model: 'a/model', from: '2020-01-01', input: 1, output: 2 }]),
);
const testPrices = 'prices' in read ? read.prices : [];

export type Journal = RunJournal & Generations;

/** Scheduled jobs are runs of `nightly`. */
export function openWholeJournal(
  world: Pick<GenerationDeps, 'database' | 'clock' | 'conversations'>,
  job: JournalJob,
  more: Partial<GenerationDeps> = {},
): Journal {
  const { database, clock, conversations } = world;
  const scheduledJobOf = async () => 'nightly';
  const tree = { jobsAbove: async () => [], readTreeUse, treeTokensMax: 1_000_000 };
  const prices = new Prices(testPrices);
  const known = { isHeld, scheduledJobOf, ...tree, prices, streamedBytesOf };
  const deps = { database, clock, conversations, ...known, ...more };
  const journal = openJournal(deps, job);
  const generations = new Generations(deps, journal.claim);
  return Object.assign(generations, { ...journal, claim: generations.claim });
}
