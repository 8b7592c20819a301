/** What runs wait for, as clients read of it. */
import type { Handle } from '../../adapters/database/database.ts';
import type { WaitKind } from '../../adapters/database/tables.ts';
import { timestamp } from '../../kernel/clock.ts';
import { countProviderWaits, findOpenWait } from './provider-waits.store.ts';

/** Runs that are read to count those that wait. */
const readMax = 10_000;

/** What a run waits for, such as `openai: rate limit`, with its end. */
export const providerWaitInWords = (name: string, at: number) =>
  `${name}, next try at ${timestamp(at)}`;

const objectInWords: Readonly<Record<Exclude<WaitKind, 'provider'>, string>> = {
  approval: 'a decision of a person',
  event: 'an event',
  run: 'a job that it has started',
  sleep: 'a time',
};

/** What a waiting job waits for, in words; null once that has come. */
export async function waitInWords(db: Handle, jobId: string): Promise<string | null> {
  const wait = await findOpenWait(db, { job_id: jobId });
  if (wait === undefined) return null;
  const { kind, name, due_at } = wait;
  if (kind === 'provider') return providerWaitInWords(name, Number(due_at));
  // A job ends when it ends: its deadline is the longest that any wait may last.
  const until = kind === 'run' ? '' : `, until ${timestamp(Number(due_at))}`;
  return `${objectInWords[kind]} (step ${name})${until}`;
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
