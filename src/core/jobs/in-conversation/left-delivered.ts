/**
 * Jobs that wait for the end of a run that has their message, where that end was recorded without theirs: the skill was loaded as
 * one that continues no conversations meanwhile. Part of the sweep.
 */
import { lockFamilies } from '../families.store.ts';
import type { Settler } from '../settle.ts';
import { recordEffects, type Settled } from '../settle-effects.ts';
import { cancelledError, type JobError } from '../states.ts';
import { listLeft } from './delivered.store.ts';
import { type End, endAs } from './delivered.ts';

/** Jobs that one sweep ends. */
const sweptMax = 100;

/** Ends them as the others have ended; a job that is gone has been cancelled. */
export async function endLeftDelivered(settler: Settler): Promise<void> {
  const { database, clock } = settler.context;
  const left = await listLeft(database.read, { limit: sweptMax });
  if (left.length === 0) return;
  await database.write(async (tx) => {
    const now = clock.now();
    const ids = left.map(({ id }) => id);
    await lockFamilies(tx, ids);
    const settled: Settled[] = [];
    for (const one of left) settled.push(...(await endAs(tx, [one.id], endOf(one), now)));
    if (settled.length > 0) await recordEffects(settler, tx, settled, now);
  });
}

type Left = Awaited<ReturnType<typeof listLeft>>[number];

function endOf({ status, output, error }: Left): End {
  if (status === 'completed' && output !== null) return { status, output };
  if (status !== 'failed' || error === null) return { status: 'cancelled', error: cancelledError };
  return { status, error: JSON.parse(error) as JobError };
}
