/** The runs that wait for a provider of models, as clients read of them. */
import type { Handle } from '../../adapters/database/database.ts';
import { timestamp } from '../../kernel/clock.ts';
import { countProviderWaits, findProviderOfJob } from './provider-waits.store.ts';

/** Runs that are read to count those that wait. */
const readMax = 10_000;

/** What a run waits for, such as `openai: rate limit`, with its end. */
export const providerWaitInWords = (name: string, at: number) =>
  `${name}, next try at ${timestamp(at)}`;

/** The provider that a waiting job waits for, in words; null where it waits for none. */
export async function providerOfJob(db: Handle, jobId: string): Promise<string | null> {
  const wait = await findProviderOfJob(db, { job_id: jobId });
  return wait === undefined ? null : providerWaitInWords(wait.name, Number(wait.due_at));
}

/** For what runs of an organization wait, or of all where it is null, and how many. */
export async function waitsForProviders(db: Handle, organizationId: string | null) {
  const counted = { organization_id: organizationId, limit: readMax };
  const rows = await countProviderWaits(db, counted);
  return rows.map(({ waits_for, runs, next_at }) => ({
    inWords: providerWaitInWords(waits_for, Number(next_at)),
    runs: Number(runs),
  }));
}
